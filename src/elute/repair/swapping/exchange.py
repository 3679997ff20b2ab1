"""What a swap shows: the item at its new place, and what stood there at the item's.

On a page of the query that shows item x at s, x goes to t and the one that stood at t goes to s. So both are seen
elsewhere, and both tell of the link. Of n impressions of x at t, with f(s) the share of the query's pages on which x
stands at s and g(y) that of y among those at t, y is shown n·f(s)·g(y) times at s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.repair.swapping.forecast import ShownAnew
from elute.repair.swapping.movable import Movable
from elute.repair.swapping.traffic import Traffic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def show_exchanged(
    traffic: Traffic, movable: Movable, item: Ints, target: Ints, query: Ints, impressions: NDArray[np.number]
) -> ShownAnew:
    """Of swaps, one a row. In a log without queries who stood there is not known, and is left out."""
    shown = impressions.astype(np.float64)
    if len(traffic.offsets) == 2 and traffic.names is None and len(item) > 0 and query.max() == 0:
        return ShownAnew(item, target, shown)
    others = _exchange(*traffic[:4], movable.kind, movable.place, item, target, query, shown)
    both = (np.concatenate(pair) for pair in zip((item, target, shown), others, strict=True))
    return ShownAnew(*both)


@jit
def _exchange(
    offsets: Ints,
    item: Ints,
    factor: Ints,
    shown: Ints,
    kind: Ints,
    place: Ints,
    of: Ints,
    target: Ints,
    query: Ints,
    impressions: Floats,
) -> tuple[Ints, Ints, Floats]:
    """Rows (item, factor, impressions) of those that go where the swapped item was."""
    size = 0
    for fill in range(2):
        to_item, to_factor, amount = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
        n = 0
        spot = np.zeros(int(place.max()) + 1)
        for at in range(of.shape[0]):
            x, t, begin, end = of[at], target[at], offsets[query[at]], offsets[query[at] + 1]
            there, pages = 0.0, 0.0
            for row in range(begin, end):
                s = factor[row]
                if kind[s] == kind[t]:
                    spot[place[s]] += shown[row]
                    pages = max(pages, spot[place[s]])
                there += shown[row] * (s == t)
            for row in range(begin, end):
                spot[place[factor[row]]] = 0.0
            for own in range(begin, end):
                s = factor[own]
                if item[own] != x or kind[s] != kind[t] or s == t:
                    continue
                for row in range(begin, end):
                    if factor[row] == t and item[row] != x:
                        if fill:
                            to_item[n], to_factor[n] = item[row], s
                            amount[n] = impressions[at] * shown[own] / pages * shown[row] / there
                        n += 1
        size = n
    return to_item, to_factor, amount
