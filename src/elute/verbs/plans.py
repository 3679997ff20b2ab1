"""Whatever stands for a repair plan, as a plan."""

from __future__ import annotations

from pathlib import Path

from elute.errors import EluteError
from elute.repair.plan import MergePlan, SwapPlan, load

PlanSource = MergePlan | SwapPlan | str | Path
"""A plan, or the file that holds one."""


def as_plan(source: PlanSource) -> MergePlan | SwapPlan:
    """The plan."""
    return load(source) if isinstance(source, str | Path) else source


def as_merge_plan(source: PlanSource | None) -> MergePlan | None:
    """A merge plan, the only kind that changes a fit."""
    plan = None if source is None else as_plan(source)
    if plan is not None and not isinstance(plan, MergePlan):
        named = f"{source} is" if isinstance(source, str | Path) else "this is"
        raise EluteError(f"{named} a swap plan: show its swaps to users, then fit the log that results")
    return plan
