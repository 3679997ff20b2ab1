"""Logs with three bias columns, drawn as cells: additive, nearly so, and not at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Counts, Membership
from elute.cells.formula import BiasFormula

Floats = NDArray[np.float64]

POSITIONS, DEVICES, LAYOUTS = 6, 3, 5
QUERIES, DOCS = 100, 6
KINDS = ("additive", "one interaction", "not additive")
COLUMNS = ("position", "device", "layout")
ADDITIVE = "position + device + layout"

GRID = np.array([(p, d, y) for p in range(POSITIONS) for d in range(DEVICES) for y in range(LAYOUTS)])
FACTORS = pa.table(dict(zip(COLUMNS, GRID.T, strict=True)))


@dataclass(frozen=True, eq=False)
class AdditiveWorld:
    """True propensities by factor and relevance by item; which cells there are, and their impressions."""

    o: Floats
    r: Floats
    item: NDArray[np.int64]
    factor: NDArray[np.int64]
    shown: NDArray[np.int64]

    def draw(self, rng: np.random.Generator) -> Counts:
        """A log of it."""
        clicks = rng.binomial(self.shown, self.r[self.item] * self.o[self.factor])
        return make_counts(self.item, self.factor, self.shown, clicks)


def build_world(kind: str, seed: int) -> AdditiveWorld:
    """Every combination of device and layout turns the page by some places, so that no item links two positions of it;
    a query sees half of the combinations."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    position, device, layout = GRID.T
    log_o = -0.8 * np.log1p(position) + np.array([0, -0.4, -0.15])[device] - 0.12 * layout
    if kind == "one interaction":
        log_o = log_o - 0.25 * np.log1p(position) * (device == 1)
    elif kind == "not additive":
        log_o = log_o + rng.normal(0, 0.35, len(GRID))
    o = np.exp(log_o - log_o.max())
    r = rng.uniform(0.05, 0.9, QUERIES * DOCS)
    cells = []
    for query in range(QUERIES):
        for way in np.sort(rng.choice(DEVICES * LAYOUTS, 7, replace=False)):
            d, y = divmod(int(way), LAYOUTS)
            for doc in range(DOCS):
                place = (doc + 2 * d + y) % POSITIONS
                cells.append((query * DOCS + doc, (place * DEVICES + d) * LAYOUTS + y, int(rng.integers(20, 80))))
    item, factor, shown = np.array(sorted(cells)).T
    return AdditiveWorld(o, r, item, factor, shown)


def make_counts(
    item: NDArray[np.int64], factor: NDArray[np.int64], shown: NDArray[np.int64], clicks: NDArray[np.int64]
) -> Counts:
    items = QUERIES * DOCS
    offsets = np.searchsorted(item, np.arange(items + 1)).astype(np.int64)
    query = (np.arange(items) // DOCS).astype(np.int32)
    total = np.bincount(item, shown, items).astype(np.int64)
    members = Membership(QUERIES, query, np.arange(items, dtype=np.int32), total)
    names = pa.table({"query_id": query, "doc_id": np.arange(items) % DOCS})
    amounts = shown.astype(np.uint32), clicks.astype(np.uint32)
    return Counts(offsets, factor.astype(np.int32), *amounts, FACTORS, members, 0.0, lambda: names)


def tie(counts: Counts, formula: str) -> Counts:
    """The same counts under a formula."""
    return counts.tie(BiasFormula.parse(formula))
