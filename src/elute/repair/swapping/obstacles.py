"""Why parts of a log stay apart: the first condition under which nothing is left that could join them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.repair.allowed import Allowed
from elute.repair.swapping.expected import Outlook
from elute.repair.swapping.feasible import FeasibleSwaps
from elute.repair.swapping.movable import Movable
from elute.repair.swapping.traffic import Traffic

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
ListLinks = Callable[[Outlook, float, Allowed], FeasibleSwaps]


_PLENTY = 1e9
"""Pages, as a share of the log's, that are never too few."""


class Obstacle(NamedTuple):
    """What stays apart from the largest part (as the number that it has once the plan holds), and what stands in the
    way."""

    part: int
    reason: str


def find_obstacles(
    list_links: ListLinks,
    traffic: Traffic,
    expected: Outlook,
    movable: Movable,
    allowed: Allowed,
    pages: float,
    joined: Ints,
) -> list[Obstacle]:
    """Of what the plan leaves apart (`joined`: by part, its number once the plan holds); `list_links` gives the swaps
    that link parts, on such a share of pages within such limits."""
    expected = expected._replace(part=joined[expected.part], home=joined[expected.home])
    outside = np.flatnonzero(np.arange(expected.parts) != np.bincount(expected.part).argmax())
    if not len(outside):
        return []
    kinds = _find_shared_kinds(expected, movable.kind)
    queries = _meets_another(
        traffic.offsets, traffic.factor, expected.part, np.zeros_like(movable.kind), expected.parts
    )
    within = _meets_another(traffic.offsets, traffic.factor, expected.part, movable.kind, expected.parts)
    free, moved = (_touch(list_links(expected, _PLENTY, limits), expected) for limits in (Allowed(), allowed))
    fixed = ", ".join(movable.fixed)
    stages = [
        (kinds, f"no other part has its {fixed}, and {movable.describe()}"),
        (queries, "no query has pages with places of this part and of another"),
        (within, f"no query shows results of this part and of another under the same {fixed}; {movable.describe()}"),
        (free, "no item that such a query shows has a relevance above 0"),
        (moved, "the limits on positions, items and impressions leave no item that could be moved"),
    ]
    too_few = f"{pages:.3g} of its queries' pages are too few to change; --share or --days gives more"
    out = []
    for part in outside:
        reason = next((words for passes, words in stages if not passes[part]), too_few)
        out.append(Obstacle(int(part), reason))
    return out


def _touch(swaps: FeasibleSwaps, expected: Outlook) -> Mask:
    """By part: whether a swap joins it to another."""
    out = np.zeros(expected.parts, np.bool_)
    out[expected.home[swaps.item]] = True
    out[expected.part[swaps.target]] = True
    return out


def _find_shared_kinds(expected: Outlook, kind: Ints) -> Mask:
    """By part: whether another part has a factor of one of its kinds."""
    pairs = np.unique(np.column_stack((kind, expected.part)), axis=0)
    shared = np.bincount(pairs[:, 0])[pairs[:, 0]] > 1
    out = np.zeros(expected.parts, np.bool_)
    out[pairs[shared, 1]] = True
    return out


@jit
def _meets_another(offsets: Ints, factor: Ints, part: Ints, kind: Ints, parts: int) -> Mask:
    """By part: whether some query has places of it and of another part, of one kind."""
    out = np.zeros(parts, np.bool_)
    first = np.full(int(kind.max()) + 1, -1)
    for q in range(offsets.shape[0] - 1):
        for row in range(offsets[q], offsets[q + 1]):
            t = factor[row]
            if first[kind[t]] < 0:
                first[kind[t]] = part[t]
            elif first[kind[t]] != part[t]:
                out[part[t]] = True
                out[first[kind[t]]] = True
        for row in range(offsets[q], offsets[q + 1]):
            first[kind[factor[row]]] = -1
    return out
