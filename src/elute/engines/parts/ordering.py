"""The items of several runs in one order: by place, then by hash, then by query; the same item in the order of runs.

Places are spread like dice, so that one pass puts nearly every item where it belongs, and a look at its neighbours does
the rest. Where somebody has made up ids that share their places, that would take long: they are sorted instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.engines.id_keys import Keys
from elute.kernels.jit import jit

_MOVES = 64
"""For each item, on average, beyond which places are not like dice."""

_Numbers = NDArray[np.int64]


def order_items(place: Keys, item: Keys, query: Keys | None = None) -> _Numbers:
    """Rows in their order. `query`: where items of one hash are put in the order of their queries."""
    last = item if query is None else query
    order, done = _order(place, item, last)
    return order if done else np.lexsort((last, item, place))


@jit
def find_starts(order: _Numbers, place: Keys, item: Keys, query: Keys) -> _Numbers:
    """Where each item begins in this order, and how many rows there are. `query`: empty where it does not tell items
    apart."""
    n, found = order.shape[0], 0
    starts = np.empty(n + 1, np.int64)
    for at in range(n):
        one = order[at]
        other = order[at - 1] if at > 0 else one
        new = at == 0 or place[one] != place[other] or item[one] != item[other]
        if new or (query.shape[0] > 0 and query[one] != query[other]):
            starts[found] = at
            found += 1
    starts[found] = n
    return starts[: found + 1].copy()


@jit
def _order(place: Keys, item: Keys, last: Keys) -> tuple[_Numbers, bool]:
    """Whether it came to an end, too."""
    n = place.shape[0]
    order = np.empty(n, np.int64)
    if n == 0:
        return order, True
    low, high = place.min(), place.max()
    slots, shift = 1, np.uint64(0)
    while slots < n:
        slots *= 2
    while (high - low) >> shift >= np.uint64(slots):
        shift += np.uint64(1)
    begin = np.zeros(slots + 1, np.int64)
    for at in range(n):
        begin[((place[at] - low) >> shift) + np.uint64(1)] += 1
    for slot in range(slots):
        begin[slot + 1] += begin[slot]
    for at in range(n):
        slot_of = (place[at] - low) >> shift
        order[begin[slot_of]] = at
        begin[slot_of] += 1
    moves = 0
    for at in range(1, n):
        one, to = order[at], at
        while to > 0 and _precedes(one, order[to - 1], place, item, last):
            order[to] = order[to - 1]
            to -= 1
        order[to] = one
        moves += at - to
        if moves > _MOVES * n:
            return order, False
    return order, True


@jit
def _precedes(one: int, other: int, place: Keys, item: Keys, last: Keys) -> bool:
    if place[one] != place[other]:
        return bool(place[one] < place[other])
    if item[one] != item[other]:
        return bool(item[one] < item[other])
    return bool(last[one] < last[other])
