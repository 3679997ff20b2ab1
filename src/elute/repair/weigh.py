"""Merges with their consequence: what they do to the order of the log's queries, and which tree of pairs does least.

Two trees are weighed: that of least total cost (the paper's, and the default), and that of least distortion
(`elute.repair.distortion.centre`). The relevance whose order is at stake is that of the position-based model fitted
under each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.checking.check import Check
from elute.errors import EluteError
from elute.estimate.models.pbm import PBM
from elute.identify.effects.constraints import join_factors
from elute.kernels.merge import merge_factors
from elute.progress import Progress, silent
from elute.repair.distortion.bases import find_least_distortion
from elute.repair.distortion.centre import find_least_diameter
from elute.repair.distortion.fields import (
    CURVE,
    DELTAS,
    Alternative,
    Consequence,
    Distortion,
    KnownDistortion,
    QueryFlips,
    find_standard,
)
from elute.repair.distortion.flips import find_flips
from elute.repair.distortion.paths import span_components
from elute.repair.distortion.places import MOST_PAIRS, ClassPlaces, Spanned, locate, measure_longest, span_pairs
from elute.repair.features import bias_features
from elute.repair.merge_plan import bound_merges, find_needed_merges, make_plan, name_scale
from elute.repair.plan import MergePlan

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Preference = Literal["cost", "distortion"]

_WHOLE = 1e-6


class _Tree(NamedTuple):
    name: str
    pairs: Ints
    costs: Floats
    exact: bool
    spanned: Spanned
    gap: float | None = None


@dataclass(frozen=True)
class _Orders:
    """What is known of the queries' order under merges; each tree has its own fit."""

    check: Check
    progress: Progress

    @property
    def across(self) -> int | None:
        ranking = self.check.ranking
        return None if ranking is None else ranking.queries - ranking.rankable

    def estimate(self, tree: _Tree) -> Floats | None:
        """Relevance by item; None where there are no clicks to tell it from, or no query that it matters to. Of a log
        under a plan it is not known yet."""
        log, counts = self.check.log, self.check.counts
        if not self.across or log.roles.click is None or not log.survey.clicks.any() or self.check.plan is not None:
            return None
        plan = make_plan(self.check, tree.pairs, tree.costs)
        return PBM(progress=self.progress).fit(counts, plan).relevance_values_

    def find_flips(self, tree: _Tree, length: Floats, relevance: Floats | None) -> Floats | None:
        """By query; None where there is nothing to say."""
        counts, component = self.check.counts, self.check.found.of_factor
        members = counts.membership
        if members is None or self.across is None:
            return None
        if self.across == 0:
            return np.full(members.queries, np.inf)
        if relevance is None:
            return None
        of_item = component[counts.factor[counts.offsets[:-1]]]
        return find_flips(
            locate(tree.spanned, length),
            measure_longest(tree.spanned, length),
            members.query,
            of_item[members.item],
            relevance[members.item],
            members.queries,
        )


def weigh_merges(
    check: Check,
    *,
    features: Sequence[str] | None = None,
    vectors: pa.Table | None = None,
    weights: Mapping[str, float] | None = None,
    propensity: Floats | None = None,
    prefer: Preference = "cost",
    date: str | None = None,
    progress: Progress = silent,
) -> MergePlan:
    """The plan of least cost (as `elute.repair.merge_plan.plan_merges` makes it), or of least distortion, with what it
    does to relevance and to the order of queries."""
    if prefer not in ("cost", "distortion"):
        raise EluteError(f"no plan of least '{prefer}'; there are: cost, distortion")
    known = bias_features(check.counts.factors, features, vectors, weights)
    trees = list(_find_trees(check, known))
    if not trees and prefer == "distortion":
        raise EluteError(f"`prefer='distortion'` weighs {MOST_PAIRS:,} pairs under a formula at most: leave it out")
    if not trees:
        pairs, costs = find_needed_merges(check, known)
        return make_plan(check, pairs, costs, None, date)
    orders = _Orders(check, progress)
    relevances = [orders.estimate(tree) for tree in trees]
    number = -1 if prefer == "distortion" else 0
    chosen = trees[number]
    flips = orders.find_flips(chosen, np.ones(len(chosen.pairs)), relevances[number])
    unit = float(trees[0].costs.max(initial=0.0))
    alternatives = [
        _weigh_tree(orders, tree, relevance, unit, tree is chosen)
        for tree, relevance in zip(trees, relevances, strict=True)
    ]
    bounds = bound_merges(check, chosen.pairs, propensity)
    own = next(alternative for alternative in alternatives if alternative.chosen)
    consequence = Consequence(
        longest_path=own.longest_path,
        longest_distance=own.longest_distance,
        queries_across=orders.across,
        distortion=_distort(float(own.longest_path), flips),
        queries_safe_curve=None if flips is None else tuple(_draw_curve(flips)),
        distortion_known=None if bounds is None else _describe_scales(check, bounds.scales),
        alternatives=tuple(sorted(alternatives, key=_rank)),
    )
    named = None if flips is None else QueryFlips(flips, lambda: _name_queries(check))
    plan = make_plan(check, chosen.pairs, chosen.costs, bounds, date)
    return replace(plan, consequence=consequence, query_flips=named)


def _find_trees(check: Check, features: Floats) -> Iterator[_Tree]:
    """The tree of least cost, and that of least distortion where it is another: better by distance, or by pairs on
    the longest path, and not one that makes the same factors share a propensity, which is the same fit. Nothing where
    pairs under a formula are too many to be weighed."""
    component, factors = check.found.of_factor, check.log.survey.factors
    pairs, costs = find_needed_merges(check, features)
    spanned = span_pairs(pairs, component, factors)
    if spanned is None:
        return
    yield _Tree("least cost", pairs, costs, True, spanned)
    if isinstance(spanned, ClassPlaces):
        yield from _find_better_basis(check, features, pairs, costs, spanned)
        return
    if len(pairs) < 2:
        return
    other, other_costs, exact = find_least_diameter(features, component, pairs, costs)
    same = np.array_equal(merge_factors(len(component), pairs), merge_factors(len(component), other))
    if not same and _measure(other, other_costs, component) < _measure(pairs, costs, component):
        yield _Tree("least distortion", other, other_costs, exact, span_components(other, component))


def _find_better_basis(
    check: Check, features: Floats, pairs: Ints, costs: Floats, spanned: ClassPlaces
) -> Iterator[_Tree]:
    """The pairs of least distortion under a formula, where they are others and better."""
    factors = check.log.survey.factors
    found = find_least_distortion(features, check.found.of_factor, pairs, costs, spanned)
    same = np.array_equal(join_factors(factors, pairs), join_factors(factors, found.pairs))
    before, after = measure_longest(spanned, costs), measure_longest(found.spanned, found.costs)
    if not same and float(f"{after:.6e}") < float(f"{before:.6e}"):
        yield _Tree("least distortion", found.pairs, found.costs, found.gap == 0, found.spanned, found.gap or None)


def _measure(pairs: Ints, costs: Floats, component: NDArray[np.int32]) -> tuple[float, float]:
    """The longest distance, to a millionth, and the longest path."""
    tree = span_components(pairs, component)
    return float(f"{measure_longest(tree, costs):.6e}"), measure_longest(tree, np.ones(len(pairs)))


def _weigh_tree(orders: _Orders, tree: _Tree, relevance: Floats | None, unit: float, chosen: bool) -> Alternative:
    length = tree.costs / unit if unit > 0 else np.ones(len(tree.pairs))
    return Alternative(
        name=tree.name,
        chosen=chosen,
        exact=tree.exact,
        cost=float(tree.costs.sum()),
        longest_path=_count_pairs(measure_longest(tree.spanned, np.ones(len(tree.pairs)))),
        longest_distance=measure_longest(tree.spanned, tree.costs),
        unit=unit or None,
        distortion=_distort(measure_longest(tree.spanned, length), orders.find_flips(tree, length, relevance)),
        gap=tree.gap,
    )


def _count_pairs(distance: float) -> float:
    """A whole number, but for some pairs under a formula."""
    return round(distance) if abs(distance - round(distance)) < _WHOLE else float(f"{distance:.6g}")


def _distort(longest: float, flips: Floats | None) -> tuple[Distortion, ...]:
    return tuple(
        Distortion(delta, _raise_power(delta, longest), None if flips is None else _share_safe(flips, delta))
        for delta in DELTAS
    )


def _raise_power(delta: float, exponent: float) -> float | None:
    try:
        return float(delta**exponent)
    except OverflowError:
        return None


def _share_safe(flips: Floats, delta: float) -> float:
    return float(np.mean(flips > delta))


def _draw_curve(flips: Floats) -> Iterator[dict[str, float]]:
    for delta in CURVE:
        yield {"delta": delta, "queries_safe_share": _share_safe(flips, delta)}


def _rank(alternative: Alternative) -> tuple[float, float, float]:
    """The least harmful first: most queries safe, then the shortest longest distance and path."""
    at = find_standard(alternative.distortion)
    return -(at.queries_safe_share or 0.0), alternative.longest_distance, alternative.longest_path


def _describe_scales(check: Check, scales: Floats) -> KnownDistortion:
    smallest, largest = float(scales.min()), float(scales.max())
    return KnownDistortion(smallest, largest, largest / smallest, name_scale(check))


def _name_queries(check: Check) -> pa.Table:
    """The query column by query; read from the items, of which each query has one at least."""
    counts, roles = check.counts, check.log.roles
    members = counts.membership
    if members is None or roles.query not in counts.items.column_names:
        items = ", ".join(counts.items.column_names)
        raise EluteError(
            f"queries go by the names that items have: count items by query and document (`item=`), not by {items}"
        )
    first = np.empty(members.queries, np.int64)
    first[members.query] = members.item
    return counts.items.select([roles.query]).take(pa.array(first))
