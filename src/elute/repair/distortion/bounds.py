"""What merging costs by known propensities: the error bound of Propositions 2 and 4 (Appendix A.5).

Merging factors a and b forces o'(a) = o'(b). If the merged fit reproduces every click probability, the
ratio r'(x)/r(x) is one constant s within a component and jumps by |o(a) - o(b)| / o'(a) across the pair
(Proposition 2). Over the whole log it varies by at most the diameter of the tree of pairs (Proposition
4), so the pairs on the longest path are the ones that make the bound.

The propositions hold for the o' of such a fit and for no other: o' = o/s, with s along the tree as in
`elute.repair.distortion.paths`. A mean of o(a) and o(b) is none, as soon as a component has two pairs.

The bound is in units of r'/r: it belongs to the scale that sets s to 1 in one component. Where a formula ties factors
(`elute.repair.distortion.places`) pairs make no tree: the bound is then by how much r'/r does vary, and a pair's share
is that of the difference of logarithms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.repair.distortion.paths import Floats, PairTree, find_longest_path, span_components
from elute.repair.distortion.places import Spanned, find_scales


class MergeBound(NamedTuple):
    """`weights`: Proposition 2 for each pair. `diameter`: Proposition 4. `shares`: the part of the
    diameter each pair makes (0 off the longest path; they sum to 1 unless the diameter is 0).
    `scales`: r'/r by component. `log_ratios`: log o(a) - log o(b) for each pair."""

    weights: Floats
    diameter: float
    shares: Floats
    scales: Floats
    log_ratios: Floats


def merge_bound(
    pairs: NDArray[np.integer],
    component: NDArray[np.integer],
    propensity: Floats,
    origin: int,
    spanned: Spanned | None = None,
) -> MergeBound:
    """The bound of a merge plan: `pairs` of factors, by default (`spanned`) a spanning tree over the components 0 to
    K - 1; `propensity` o a factor, above 0 where it is merged. Relevance is exact in component `origin`."""
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    a, b = pairs.T
    if not (np.isfinite(propensity[[a, b]]) & (propensity[[a, b]] > 0)).all():
        raise ValueError("merged factors need a propensity above 0")
    spanned = span_components(pairs, component) if spanned is None else spanned
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_scales, log_ratios = find_scales(pairs, spanned, np.log(propensity), origin)
        scales = np.exp(log_scales)
        merged = propensity / scales[component]
    weights = np.abs(propensity[a] - propensity[b]) / merged[a]
    shares = np.zeros(len(a))
    if isinstance(spanned, PairTree):
        diameter, path = find_longest_path(spanned, weights)
        shares[path] = weights[path] / (diameter or 1.0)
    else:
        diameter = float(np.ptp(scales))
        entered = np.abs((spanned.at[scales.argmax()] - spanned.at[scales.argmin()]) * log_ratios)
        shares = entered / (entered.sum() or 1.0)
    return MergeBound(weights, diameter, shares, scales, log_ratios)
