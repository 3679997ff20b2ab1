"""The browsing user: examines by rank and by how far up the last click lies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.errors import EluteError
from elute.kernels.jit import jit
from elute.simulation.shown import ShownPages
from elute.simulation.users.base import (
    Clicks,
    Floats,
    User,
    as_booleans,
    attraction,
    require_ranks,
    safe_log,
    to_floats,
)


def browsing_table(ranks: int) -> Floats:
    """γ of rank k at distance d from the last click: 1/√(k·d). A choice made here, not a published table.

    Before the first click the distance is k, counted from a click above the page: the user examines with 1/k, like
    the position-based user of the CMIP paper. Below a click attention revives, to 1/√k right under it.
    """
    rank = np.arange(1, ranks + 1)
    return np.asarray(1.0 / np.sqrt(np.outer(rank, rank)))


class UserBrowsing(User):
    """P(click | clicks above) = γ(k, d)·R, d the distance to the last click (Dupret and Piwowarski 2008).

    `table`: γ by (rank, distance), both from 1; row k is read up to column k, and d = k where nothing above was
    clicked. None: `browsing_table`, for pages of any length.
    """

    def __init__(self, table: ArrayLike | None = None) -> None:
        self._table = None if table is None else _check_table(to_floats(table, "the browsing table"))

    def table(self, shown: ShownPages) -> Floats:
        """γ by (rank, distance), for these pages."""
        if self._table is None:
            return browsing_table(shown.longest)
        require_ranks(len(self._table), shown, "rows of the browsing table")
        return self._table

    def draw_clicks(self, shown: ShownPages, rng: np.random.Generator) -> Clicks:
        return _draw_clicks(rng, shown.relevance, shown.length, self.table(shown))

    def probabilities(self, shown: ShownPages) -> Floats:
        """By a recursion over `last`: P(the last click so far is at place j), j = 0 for none, by (page, j)."""
        a, table = attraction(shown), self.table(shown)
        p = np.zeros_like(a)
        last = np.zeros((shown.pages, shown.longest + 1))
        last[:, 0] = 1.0
        for k in range(1, shown.longest + 1):
            given_last = a[:, k - 1, None] * table[k - 1, k - 1 :: -1]
            p[:, k - 1] = (last[:, :k] * given_last).sum(axis=1)
            last[:, :k] *= 1.0 - given_last
            last[:, k] = p[:, k - 1]
        return p

    def log_probability(self, shown: ShownPages, clicks: ArrayLike) -> Floats:
        a, table, given = attraction(shown), self.table(shown), as_booleans(shown, clicks)
        total = np.where((given & ~shown.mask).any(axis=1), -np.inf, 0.0)
        last = np.zeros(shown.pages, np.int64)
        for k in range(1, shown.longest + 1):
            click = given[:, k - 1]
            p = a[:, k - 1] * table[k - 1, k - last - 1]
            total += safe_log(np.where(click, p, 1.0 - p))
            last[click] = k
        return total


def _check_table(table: Floats) -> Floats:
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise EluteError(f"a browsing table of shape {table.shape}; give as many distances (columns) as ranks (rows)")
    lower = np.tril(table)
    if not ((lower >= 0.0) & (lower <= 1.0)).all():
        raise EluteError("the browsing table has values outside 0 to 1; give probabilities of examination")
    return table


@jit
def _draw_clicks(rng: np.random.Generator, relevance: Floats, length: NDArray[np.int64], table: Floats) -> Clicks:
    """One uniform a place."""
    out = np.zeros(relevance.shape, dtype=np.uint8)
    for page in range(relevance.shape[0]):
        last = -1
        for k in range(length[page]):
            if rng.random() < table[k, k - last - 1] * relevance[page, k]:
                out[page, k] = 1
                last = k
    return out
