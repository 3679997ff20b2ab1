"""From a check to a merge plan: bias features, the spanning tree of `elute.repair.merge`, and its error bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.factors import to_rows
from elute.checking.check import Check
from elute.identify.merged import measure_merged
from elute.kernels.merge import merge_factors
from elute.repair.bounds import merge_bound
from elute.repair.features import bias_features
from elute.repair.merge import find_minimum_merges
from elute.repair.plan import MergePlan, Pair


def plan_merges(
    check: Check,
    *,
    features: Sequence[str] | None = None,
    vectors: pa.Table | None = None,
    weights: Mapping[str, float] | None = None,
    propensity: NDArray[np.float64] | None = None,
    date: str | None = None,
) -> MergePlan:
    """Plan the merges of least total cost (Algorithm 3): K - 1 pairs for K components.

    The cost of a pair is the distance of the two factors' bias features; `features`, `vectors` and `weights`
    say what those are (see `elute.repair.features`). `propensity`, by factor where it is known from
    elsewhere, adds the error bound of Propositions 2 and 4. `date` is kept in the plan as it is given.
    """
    counts, found = check.counts, check.found
    pairs, costs = find_minimum_merges(bias_features(counts.factors, features, vectors, weights), found.of_factor)
    bound, each, shares = None, [None] * len(pairs), [None] * len(pairs)
    group, shown = merge_factors(counts.n_factors, pairs), check.log.survey.impressions
    if propensity is not None and len(pairs):
        bounds = merge_bound(pairs, found.of_factor, propensity, _average_propensity(propensity, group, shown))
        bound, each, shares = bounds.diameter, bounds.weights.tolist(), bounds.shares.tolist()
    left, right = to_rows(counts.factors, pairs[:, 0]), to_rows(counts.factors, pairs[:, 1])
    return MergePlan(
        provenance=check.log.provenance(date),
        components_before=len(found),
        components_after=1,
        cost=float(costs.sum()),
        pairs=tuple(Pair(*fields) for fields in zip(left, right, costs.tolist(), each, shares, strict=True)),
        bound=bound,
        merged=measure_merged(group, shown),
    )


def _average_propensity(
    propensity: NDArray[np.float64], group: NDArray[np.int32], impressions: NDArray[np.int64]
) -> NDArray[np.float64]:
    """One propensity for every group of merged factors: the mean over their impressions."""
    shown = np.bincount(group, weights=impressions)
    mean = np.bincount(group, weights=impressions * propensity) / shown
    return np.asarray(mean[group])
