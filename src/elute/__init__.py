"""elute separates relevance from bias in click logs, and says first whether that can be done at all."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elute.counts import Counts
    from elute.errors import EluteError
    from elute.identify.check import Check, check
    from elute.log import ClickLog, read_log
    from elute.repair.intervention import swap
    from elute.repair.merging import merge
    from elute.repair.plan import MergePlan, SwapPlan

__version__ = version("elute")

_HOMES = {
    "Check": "elute.identify.check",
    "ClickLog": "elute.log",
    "Counts": "elute.counts",
    "EluteError": "elute.errors",
    "MergePlan": "elute.repair.plan",
    "SwapPlan": "elute.repair.plan",
    "check": "elute.identify.check",
    "merge": "elute.repair.merging",
    "read_log": "elute.log",
    "swap": "elute.repair.intervention",
}
__all__ = [
    "Check",
    "ClickLog",
    "Counts",
    "EluteError",
    "MergePlan",
    "SwapPlan",
    "__version__",
    "check",
    "merge",
    "read_log",
    "swap",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import elute` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'elute' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
