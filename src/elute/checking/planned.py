"""What a check says of the plan that it was made under."""

from __future__ import annotations

from typing import Any

from elute.identify.components import LinkingPlan
from elute.identify.merged import MergedFactors


def is_doubted(plan: LinkingPlan | None) -> bool:
    """Whether it takes on trust what the log does not bear out."""
    return plan is not None and plan.assumption is not None and plan.assumption.doubted


def list_trusted(plan: LinkingPlan | None, caution: str) -> list[str]:
    """Sentences on what rests on the plan alone."""
    assumed = None if plan is None else plan.assumption
    return [*([caution] if caution else []), *([] if assumed is None else [assumed.sentence])]


def describe_planned(plan: LinkingPlan | None, merged: MergedFactors | None) -> dict[str, Any]:
    """The fields of `elute check --plan --json`."""
    fields: dict[str, Any] = {} if plan is None else {"plan": plan.method}
    if merged is not None:
        fields |= {"debiases": merged.debiases, "caution": merged.caution or None}
    if plan is not None and plan.assumption is not None:
        fields["assumption"] = plan.assumption.to_dict()
    return fields
