"""elute separates relevance from bias in click logs, and says first whether that can be done at all."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elute.auditing.audit import Audit
    from elute.auditing.cmip.metric import cmip
    from elute.cells.counts import Counts
    from elute.cells.formula import BiasFormula
    from elute.checking.check import Check
    from elute.errors import EluteError, NotEstimable, NotRecoverable
    from elute.estimate.inference.bootstrap import bootstrap
    from elute.estimate.models.affine import Affine
    from elute.estimate.models.ctr import CTR
    from elute.estimate.models.dla import DLA
    from elute.estimate.models.em import RegressionEM
    from elute.estimate.models.harvest import Harvest
    from elute.estimate.models.ipw import IPW, AffineIPW
    from elute.estimate.models.naive import Naive
    from elute.estimate.models.pbm import PBM
    from elute.estimate.models.score_adjusted import ScoreAdjusted
    from elute.estimate.models.two_tower import TwoTower
    from elute.fits.fit import Fit
    from elute.identify.generic.identifiability import generic_identifiability
    from elute.io.logs.convert import Conversion
    from elute.log import ClickLog, read_log
    from elute.repair.looks.following import Following
    from elute.repair.plan import MergePlan, ScorePlan, SwapPlan
    from elute.repair.swapping.constraints import Constraints
    from elute.reporting.page import Report
    from elute.valuing.value import Value
    from elute.verbs.audit import audit
    from elute.verbs.check import certify, check
    from elute.verbs.convert import convert
    from elute.verbs.counting.count import Counted, count
    from elute.verbs.counting.sql import Statement, sql
    from elute.verbs.counting.watch import watch
    from elute.verbs.export import Exported, export
    from elute.verbs.fit import fit
    from elute.verbs.follow import follow
    from elute.verbs.judge import Judged, judge
    from elute.verbs.rank import Ranked, rank
    from elute.verbs.repair import link, merge, swap
    from elute.verbs.report import report
    from elute.verbs.simulate import Simulated, simulate
    from elute.verbs.train import Trained, train
    from elute.verbs.value import value
    from elute.watching.watch import Watch

    __version__: str

if os.name != "posix":
    raise ImportError("elute runs on Linux and macOS; on Windows, use it in the Windows Subsystem for Linux (WSL)")

_HOMES = {
    "Affine": "elute.estimate.models.affine",
    "AffineIPW": "elute.estimate.models.ipw",
    "Audit": "elute.auditing.audit",
    "BiasFormula": "elute.cells.formula",
    "CTR": "elute.estimate.models.ctr",
    "Check": "elute.checking.check",
    "ClickLog": "elute.log",
    "Constraints": "elute.repair.swapping.constraints",
    "Conversion": "elute.io.logs.convert",
    "Counted": "elute.verbs.counting.count",
    "Counts": "elute.cells.counts",
    "DLA": "elute.estimate.models.dla",
    "EluteError": "elute.errors",
    "Exported": "elute.verbs.export",
    "Fit": "elute.fits.fit",
    "Following": "elute.repair.looks.following",
    "Harvest": "elute.estimate.models.harvest",
    "IPW": "elute.estimate.models.ipw",
    "Judged": "elute.verbs.judge",
    "MergePlan": "elute.repair.plan",
    "Naive": "elute.estimate.models.naive",
    "NotEstimable": "elute.errors",
    "NotRecoverable": "elute.errors",
    "PBM": "elute.estimate.models.pbm",
    "Ranked": "elute.verbs.rank",
    "RegressionEM": "elute.estimate.models.em",
    "Report": "elute.reporting.page",
    "ScoreAdjusted": "elute.estimate.models.score_adjusted",
    "ScorePlan": "elute.repair.plan",
    "Simulated": "elute.verbs.simulate",
    "Statement": "elute.verbs.counting.sql",
    "SwapPlan": "elute.repair.plan",
    "Trained": "elute.verbs.train",
    "TwoTower": "elute.estimate.models.two_tower",
    "Value": "elute.valuing.value",
    "Watch": "elute.watching.watch",
    "audit": "elute.verbs.audit",
    "bootstrap": "elute.estimate.inference.bootstrap",
    "certify": "elute.verbs.check",
    "check": "elute.verbs.check",
    "cmip": "elute.auditing.cmip.metric",
    "convert": "elute.verbs.convert",
    "count": "elute.verbs.counting.count",
    "export": "elute.verbs.export",
    "fit": "elute.verbs.fit",
    "follow": "elute.verbs.follow",
    "generic_identifiability": "elute.identify.generic.identifiability",
    "judge": "elute.verbs.judge",
    "link": "elute.verbs.repair",
    "merge": "elute.verbs.repair",
    "rank": "elute.verbs.rank",
    "read_log": "elute.log",
    "report": "elute.verbs.report",
    "simulate": "elute.verbs.simulate",
    "sql": "elute.verbs.counting.sql",
    "swap": "elute.verbs.repair",
    "train": "elute.verbs.train",
    "value": "elute.verbs.value",
    "watch": "elute.verbs.counting.watch",
}
__all__ = [
    "CTR",
    "DLA",
    "IPW",
    "PBM",
    "Affine",
    "AffineIPW",
    "Audit",
    "BiasFormula",
    "Check",
    "ClickLog",
    "Constraints",
    "Conversion",
    "Counted",
    "Counts",
    "EluteError",
    "Exported",
    "Fit",
    "Following",
    "Harvest",
    "Judged",
    "MergePlan",
    "Naive",
    "NotEstimable",
    "NotRecoverable",
    "Ranked",
    "RegressionEM",
    "Report",
    "ScoreAdjusted",
    "ScorePlan",
    "Simulated",
    "Statement",
    "SwapPlan",
    "Trained",
    "TwoTower",
    "Value",
    "Watch",
    "__version__",
    "audit",
    "bootstrap",
    "certify",
    "check",
    "cmip",
    "convert",
    "count",
    "export",
    "fit",
    "follow",
    "generic_identifiability",
    "judge",
    "link",
    "merge",
    "rank",
    "read_log",
    "report",
    "simulate",
    "sql",
    "swap",
    "train",
    "value",
    "watch",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import elute` costs nothing."""
    if name == "__version__":
        return import_module("importlib.metadata").version("elute")
    if name not in _HOMES:
        raise AttributeError(f"module 'elute' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
