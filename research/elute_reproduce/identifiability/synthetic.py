"""What the fully synthetic reproductions share: fitting a method to a set and scoring it as section 5.1 does."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from elute.auditing.ranking_metrics import ndcg
from elute.auditing.recovery import click_mse, mcc
from elute.cells.counts import Counts
from elute.checking.check import check
from elute.estimate.models.base import Estimator
from elute.repair.merge_plan import plan_merges
from elute.repair.plan import MergePlan
from elute.repair.swap_plan import plan_swaps
from elute_reproduce.identifiability.paper_sets import PaperSet

CLICKS = 10**6
"""Clicks are drawn as Binomial(10⁶, p) for every impression: nearly free of noise."""

AT = (1, 3, 5, 10)
METRICS = ("MCC", *(f"nDCG@{k}" for k in AT), "click MSE")
SETTLED = "settled"
"""1 where the fit had come to rest, 0 where its steps had run out."""


def measure(
    world: PaperSet, model: Estimator, rng: np.random.Generator, *, clicks: int = CLICKS, merging: bool = False
) -> dict[str, float]:
    """Draw clicks, fit, and score; with `plan_merging` under the cheapest merge plan of the log."""
    with world.draw_log(clicks, rng) as log:
        plan = plan_merges(check(log)) if merging else None
        return score(world, log.counts(), model.fit(log, plan, allow_unidentified=True))


def score(world: PaperSet, counts: Counts, model: Estimator) -> dict[str, float]:
    """The metrics of Table 1. Relevance is taken at the scale the model itself ended at: where a set is not
    recoverable, that scale differs between components, and this is what the paper measures. Click MSE is against
    the click rates drawn: against the true probabilities, the noise of the draws alone makes 3·10⁻⁸."""
    doc = model.relevance_["doc"].to_numpy()
    relevance = np.full(len(world.relevance), np.nan)
    relevance[doc] = model.solution_.relevance
    shown = slice(0, world.listed)
    lists = np.arange(0, world.listed + 1, 10)
    found = {"MCC": mcc(world.relevance[doc], relevance[doc])}
    for k in AT:
        found[f"nDCG@{k}"] = ndcg(world.grade[shown], relevance[world.doc[shown]], lists, k).mean
    rate = counts.clicks / counts.impressions
    predicted = model.relevance_values_[items_of(counts)] * model.propensity_[counts.factor]
    return found | {"click MSE": click_mse(rate, predicted, counts.impressions), SETTLED: float(model.converged_)}


def propensity_curve(model: Estimator) -> np.ndarray:
    """Propensities by position at the model's own scale."""
    order = pc.sort_indices(model.factors_["position"]).to_numpy()
    return np.asarray(model.own_propensity_[order])


def intervene(world: PaperSet, rng: np.random.Generator) -> PaperSet:
    """The set with the swaps of least cost shown (Algorithm 2), planned from a fit under node merging."""
    with world.draw_log(CLICKS, rng) as log:
        planned = plan_swaps(check(log))
    return world.show([(swap.item["doc"], swap.target["position"]) for swap in planned.swaps])


def plan_merging(world: PaperSet, rng: np.random.Generator) -> MergePlan:
    """The cheapest merges of a set."""
    with world.draw_log(CLICKS, rng) as log:
        return plan_merges(check(log))


def items_of(counts: Counts) -> np.ndarray:
    """The item of every cell."""
    return np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
