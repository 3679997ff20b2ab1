"""Whether a fit debiases at all: fields of its summary.

Relevance is more than a click rate only where factors that share items have different propensities. That is not so for
the baselines, under a plan that merges all factors, and where every component has one factor.
"""

from __future__ import annotations

from typing import Any

from elute.estimate.models.base import Estimator
from elute.identify.merged import MergedFactors

BASELINE = "baseline: click rates as they are, nothing debiased"

ALONE = "No component has two factors, so there is nothing to debias with: relevance is raw click rates, no debiasing."


def describe_debiasing(estimator: Estimator, merged: MergedFactors | None) -> dict[str, Any]:
    """`baseline`, `debiases`, and `caution`: what a reader must know of that, or None. `merged`: under the plan."""
    if estimator.propensities_are == "ignored":
        return {"baseline": True, "debiases": False, "caution": BASELINE}
    caution = "" if merged is None else merged.caution
    if estimator.propensities_are == "given":
        return {"baseline": False, "debiases": True, "caution": caution or None}
    left = len(estimator.component_) if merged is None else merged.propensities_after
    debiases = left > int(estimator.component_.max()) + 1
    return {"baseline": False, "debiases": debiases, "caution": caution or (None if debiases else ALONE)}
