"""From a check to a merge plan: bias features, the spanning tree of `elute.repair.merge`, and its error bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.factors import describe_some, to_rows
from elute.checking.check import Check
from elute.errors import EluteError
from elute.identify.effects.constraints import join_factors
from elute.identify.effects.independent import keep_independent
from elute.identify.merged import measure_merged
from elute.repair.distortion.bounds import MergeBound, merge_bound
from elute.repair.distortion.places import span_pairs
from elute.repair.features import bias_features
from elute.repair.merge import find_minimum_merges
from elute.repair.plan import MergePlan
from elute.repair.steps import Pair

Floats = NDArray[np.float64]


def plan_merges(
    check: Check,
    *,
    features: Sequence[str] | None = None,
    vectors: pa.Table | None = None,
    weights: Mapping[str, float] | None = None,
    propensity: Floats | None = None,
    date: str | None = None,
) -> MergePlan:
    """Plan the merges of least total cost (Algorithm 3): K - 1 pairs for K components.

    The cost of a pair is the distance of the two factors' bias features; `features`, `vectors` and `weights`
    say what those are (see `elute.repair.features`). `propensity`, by factor where it is known from
    elsewhere, adds the error bound of Propositions 2 and 4. `date` is kept in the plan as it is given.
    `elute.repair.weigh` adds what the merges do to relevance.
    """
    pairs, costs = find_needed_merges(check, bias_features(check.counts.factors, features, vectors, weights))
    return make_plan(check, pairs, costs, bound_merges(check, pairs, propensity), date)


def find_needed_merges(check: Check, features: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Pairs of least cost and their costs; under a formula, without those that others imply."""
    pairs, costs = find_minimum_merges(features, check.found.of_factor)
    needed = keep_independent(pairs, check.structure.root, check.log.survey.factors)
    return pairs[needed], costs[needed]


def make_plan(
    check: Check, pairs: NDArray[np.int64], costs: Floats, bounds: MergeBound | None = None, date: str | None = None
) -> MergePlan:
    """The plan of these pairs."""
    factors = check.counts.factors
    known: tuple[list[float] | list[None], ...] = [None] * len(pairs), [None] * len(pairs), [None] * len(pairs)
    if bounds is not None:
        known = bounds.weights.tolist(), bounds.shares.tolist(), bounds.log_ratios.tolist()
    left, right = to_rows(factors, pairs[:, 0]), to_rows(factors, pairs[:, 1])
    return MergePlan(
        provenance=check.log.provenance(date),
        components_before=check.components,
        components_after=1,
        cost=float(costs.sum()),
        pairs=tuple(Pair(*fields) for fields in zip(left, right, costs.tolist(), *known, strict=True)),
        bound=None if bounds is None else bounds.diameter,
        bound_scale=None if bounds is None else name_scale(check),
        merged=measure_merged(join_factors(check.log.survey.factors, pairs), check.log.survey.impressions),
    )


def find_origin(check: Check) -> int:
    """The component with the most impressions, whose relevance the scale of a bound takes as exact."""
    return int(check.found.impressions.argmax())


def name_scale(check: Check) -> dict[str, object]:
    """The factor of that component which was shown most."""
    shown = np.where(check.found.of_factor == find_origin(check), check.log.survey.impressions, -1)
    return to_rows(check.counts.factors, [int(shown.argmax())])[0]


def bound_merges(check: Check, pairs: NDArray[np.int64], propensity: Floats | None) -> MergeBound | None:
    """The bound by these propensities; None where there are none, nothing is merged, no number is as large, or pairs
    under a formula are too many."""
    if propensity is None or not len(pairs):
        return None
    merged = np.unique(pairs)
    lacking = merged[~(propensity[merged] > 0)]
    if len(lacking):
        factors = check.counts.factors
        names = describe_some(factors.column_names, [list(row.values()) for row in to_rows(factors, lacking)])
        raise EluteError(
            f"merging is bounded only where propensities are above 0; those given are not for {names}: give others, or "
            "plan without"
        )
    spanned = span_pairs(pairs, check.found.of_factor, check.log.survey.factors)
    if spanned is None:
        return None
    bounds = merge_bound(pairs, check.found.of_factor, propensity, find_origin(check), spanned)
    return bounds if np.isfinite(bounds.scales).all() else None
