"""Merges where a formula ties factors: usually none or one.

What a log leaves open under a formula has few dimensions, one for each comparison that is missing. A pair of factors
that are to be equal closes one of them, unless what is closed already implies it. Sets of pairs of which none implies
another form a matroid, so the cheapest that closes all is found greedily. And it lies within the spanning tree of least
cost over classes: the dearest pair of a cycle is implied by the others, under the formula as without it. So the tree
is found as ever, and what it has too much is left out.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.identify.effects.classes import span_forest
from elute.identify.effects.design import find_design
from elute.identify.effects.span import find_coordinates
from elute.kernels.forest import spanning_edges

Ints = NDArray[np.int64]


def keep_independent(pairs: Ints, root: NDArray[np.int32], factors: pa.Table) -> NDArray[np.bool_]:
    """Of pairs from the cheapest on, those that the ones before do not imply; all of them without a formula. `root`:
    the smallest factor of each one's component."""
    design = find_design(factors)
    if design is None:
        return np.ones(len(pairs), np.bool_)
    missing = span_forest(design, np.zeros_like(root)).rank - span_forest(design, root).rank
    kept = np.zeros(len(pairs), np.bool_)
    if not missing:
        return kept
    links = spanning_edges(root)
    at, p = find_coordinates(design, links[:, 1], links[:, 0], missing)
    for number, (a, b) in enumerate(pairs):
        apart = (at[a] - at[b]) % p
        open_ways = np.flatnonzero(apart)
        if not len(open_ways):
            continue
        kept[number] = True
        way = int(open_ways[0])
        times = apart * pow(int(apart[way]), -1, p) % p
        at = np.delete((at - at[:, [way]] * times) % p, way, axis=1)
        if not at.shape[1]:
            break
    return kept
