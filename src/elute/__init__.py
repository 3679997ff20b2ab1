"""elute separates relevance from bias in click logs, and says first whether that can be done at all."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elute.audit.cmip.metric import cmip
    from elute.counts import Counts
    from elute.errors import EluteError
    from elute.estimate.affine import Affine
    from elute.estimate.bootstrap import bootstrap
    from elute.estimate.certificate import certify
    from elute.estimate.ctr import CTR
    from elute.estimate.dla import DLA
    from elute.estimate.em import RegressionEM
    from elute.estimate.harvest import Harvest
    from elute.estimate.ipw import IPW, AffineIPW
    from elute.estimate.naive import Naive
    from elute.estimate.pbm import PBM
    from elute.estimate.two_tower import TwoTower
    from elute.identify.check import Check, check
    from elute.identify.generic import generic_identifiability
    from elute.log import ClickLog, read_log
    from elute.repair.intervention import swap
    from elute.repair.merging import merge
    from elute.repair.plan import MergePlan, SwapPlan
    from elute.report.page import Report

_HOMES = {
    "Affine": "elute.estimate.affine",
    "AffineIPW": "elute.estimate.ipw",
    "CTR": "elute.estimate.ctr",
    "Check": "elute.identify.check",
    "ClickLog": "elute.log",
    "Counts": "elute.counts",
    "DLA": "elute.estimate.dla",
    "EluteError": "elute.errors",
    "Harvest": "elute.estimate.harvest",
    "IPW": "elute.estimate.ipw",
    "MergePlan": "elute.repair.plan",
    "Naive": "elute.estimate.naive",
    "PBM": "elute.estimate.pbm",
    "RegressionEM": "elute.estimate.em",
    "Report": "elute.report.page",
    "SwapPlan": "elute.repair.plan",
    "TwoTower": "elute.estimate.two_tower",
    "bootstrap": "elute.estimate.bootstrap",
    "certify": "elute.estimate.certificate",
    "check": "elute.identify.check",
    "cmip": "elute.audit.cmip.metric",
    "generic_identifiability": "elute.identify.generic",
    "merge": "elute.repair.merging",
    "read_log": "elute.log",
    "swap": "elute.repair.intervention",
}
__all__ = [
    "CTR",
    "DLA",
    "IPW",
    "PBM",
    "Affine",
    "AffineIPW",
    "Check",
    "ClickLog",
    "Counts",
    "EluteError",
    "Harvest",
    "MergePlan",
    "Naive",
    "RegressionEM",
    "Report",
    "SwapPlan",
    "TwoTower",
    "__version__",
    "bootstrap",
    "certify",
    "check",
    "cmip",
    "generic_identifiability",
    "merge",
    "read_log",
    "swap",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import elute` costs nothing."""
    if name == "__version__":
        return version("elute")
    if name not in _HOMES:
        raise AttributeError(f"module 'elute' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
