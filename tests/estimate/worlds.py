"""Small logs for the estimators' tests."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from elute.cells.counts import Amounts, Counts


def counts_of(table, factors=None) -> Counts:
    """Counts of (item, factor, impressions, clicks) rows; every item must appear."""
    rows = np.array(sorted(tuple(row) for row in table), dtype=np.int64).reshape(-1, 4)
    items = int(rows[:, 0].max()) + 1
    factors = int(rows[:, 1].max()) + 1 if factors is None else factors
    shown: Amounts = rows[:, 2].astype(np.uint64)
    clicks: Amounts = rows[:, 3].astype(np.uint64)
    if shown.sum() < 2**32:
        shown, clicks = shown.astype(np.uint32), clicks.astype(np.uint32)
    return Counts(
        np.searchsorted(rows[:, 0], np.arange(items + 1)).astype(np.int64),
        rows[:, 1].astype(np.int32),
        shown,
        clicks,
        pa.table({"position": np.arange(factors)}),
        None,
        0.0,
        lambda: pa.table({"doc_id": np.arange(items)}),
    )


def draw(seed, items, factors, density, mean, relevance: tuple[float, float] = (0.1, 0.9)):
    """A random table of the position-based model, and the relevance and propensities it was drawn from."""
    rng = np.random.default_rng(seed)
    r = rng.uniform(relevance[0], relevance[1], items)
    o = 1 / np.arange(1, factors + 1) ** 0.7
    shown = rng.random((items, factors)) < density
    shown[np.arange(items), rng.integers(factors, size=items)] = True
    shown[rng.integers(items, size=factors), np.arange(factors)] = True
    item, factor = np.nonzero(shown)
    n = 1 + rng.poisson(mean, len(item))
    c = rng.binomial(n, r[item] * o[factor])
    return list(zip(item.tolist(), factor.tolist(), n.tolist(), c.tolist(), strict=True)), r, o


class Merge:
    """A merge plan of the given pairs."""

    def __init__(self, *pairs):
        self.pairs = pairs

    def pairs_of(self, factors):
        return np.array(self.pairs, np.int64).reshape(-1, 2)
