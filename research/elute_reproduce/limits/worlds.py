"""Worlds for `elute_reproduce.limits.study`: small logs of seven kinds of users, each with what the theory says of it.

A factor is a display context in the sense of Definition 5.1: a place on a page whose other results are fixed. The
item shown there is the only thing that changes, so that a cell's clicks are exactly binomial. Two worlds stand for
what a log usually records: the position alone, over pages of other results of the same query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.auditing.assumptions.groups import Groups
from elute.cells.counts import Clustered, Counts
from elute.estimate.solve.problem import Floats
from elute.simulation.shown import ShownPages
from elute.simulation.users import (
    CascadeUser,
    ContextualPositionBased,
    DynamicBayesian,
    PlackettLuceChoice,
    PositionBased,
    Trust,
    User,
    trust_bias,
)

ITEMS, PLACES, QUERIES = 40, 6, 4
DENSITY = 0.6
_PAGES = 100
"""Pages over which a world recorded by position alone is averaged."""

_CONTEXTS = ContextualPositionBased([[-0.6], [0.6]], [1.0])
"""Two devices: examination falls as o^0.4 on one and o^1.6 on the other."""

_QUIET = np.geomspace(0.02, 1.0, PLACES)
"""How relevant the other results of each context are, as a share: from all but an empty page to a full one."""


class WorldLog(NamedTuple):
    """Counts, the device of every impression, and true relevance by item."""

    counts: Counts
    groups: Groups
    relevance: Floats


def _make_users() -> dict[str, tuple[User, bool]]:
    """Users, and whether only the position is recorded."""
    return {
        "pbm": (PositionBased(), False),
        "contextual pbm": (_CONTEXTS, False),
        "trust": (Trust(*trust_bias()), False),
        "cascade": (CascadeUser(), False),
        "cascade, by position": (CascadeUser(), True),
        "dbn": (DynamicBayesian(), False),
        "dbn, by position": (DynamicBayesian(), True),
        "plackett-luce": (PlackettLuceChoice(), False),
        "no bias": (PositionBased(eta=0), False),
    }


WORLDS = tuple(_make_users())


def draw(world: str, impressions: int, rng: np.random.Generator) -> WorldLog:
    """A log of one world, with `impressions` for every cell."""
    user, by_position = _make_users()[world]
    seen = rng.random((ITEMS, PLACES)) < DENSITY
    seen[np.arange(ITEMS), rng.integers(PLACES, size=ITEMS)] = True
    seen[rng.integers(ITEMS, size=PLACES), np.arange(PLACES)] = True
    item, factor = np.nonzero(seen)
    r = rng.uniform(0.05, 0.95, ITEMS)
    p_of = _probabilities_over_pages if by_position else _probabilities_in_context
    if by_position:
        r *= np.repeat(np.linspace(0.25, 1.0, QUERIES), ITEMS // QUERIES)
    share = rng.uniform(0.1, 0.9, ITEMS)[item]
    on_second = rng.binomial(impressions, share)
    shown = np.stack((impressions - on_second, on_second))
    p = p_of(user, r, item, factor, rng)
    clicks = rng.binomial(shown, p)
    return WorldLog(
        _make_counts(item, factor, shown.sum(axis=0), clicks.sum(axis=0)), _make_groups(item, factor, shown, clicks), r
    )


def _probabilities_in_context(
    user: User, r: Floats, item: NDArray[np.int64], factor: NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """P(click) by device and cell: the item at its place on the context's own page."""
    others = rng.uniform(0.05, 0.6, (PLACES, PLACES)) * _QUIET[:, None]
    return _probabilities(user, others[factor], r[item], factor)


def _probabilities_over_pages(
    user: User, r: Floats, item: NDArray[np.int64], factor: NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """The same on average over random pages of the item's query, without the item itself."""
    each = ITEMS // QUERIES
    of_query = item // each * each
    total = np.zeros((2, len(item)))
    for _ in range(_PAGES):
        order = rng.permuted(np.tile(np.arange(each - 1), (len(item), 1)), axis=1)[:, :PLACES]
        order += order >= (item - of_query)[:, None]
        total += _probabilities(user, r[of_query[:, None] + order], r[item], factor)
    return total / _PAGES


def _probabilities(user: User, pages: Floats, relevance: Floats, place: NDArray[np.int64]) -> Floats:
    rows = np.arange(len(place))
    pages = pages.copy()
    pages[rows, place] = relevance
    length = np.full(len(place), PLACES)
    devices = (np.full(pages.shape, device, np.int32) for device in (0, 1))
    return np.stack([user.probabilities(ShownPages(pages, length, None, device))[rows, place] for device in devices])


def _make_counts(
    item: NDArray[np.int64], factor: NDArray[np.int64], shown: NDArray[np.int64], clicks: NDArray[np.int64]
) -> Counts:
    offsets = np.searchsorted(item, np.arange(ITEMS + 1)).astype(np.int64)
    names = pa.table({"position": np.arange(1, PLACES + 1)})
    items = pa.table({"item": np.arange(ITEMS)})
    amounts = shown.astype(np.uint32), clicks.astype(np.uint32)
    return Counts(offsets, factor.astype(np.int32), *amounts, names, None, 0.0, lambda: items)


def _make_groups(
    item: NDArray[np.int64], factor: NDArray[np.int64], shown: NDArray[np.int64], clicks: NDArray[np.int64]
) -> Groups:
    some = shown.ravel() > 0
    columns = (np.repeat([0, 1], len(item)), np.tile(item, 2), np.tile(factor, 2), shown.ravel(), clicks.ravel())
    return Groups("device", Clustered(*(column[some] for column in columns)), ("phone", "desktop"))
