"""Cells of several parts in one: items that have the same hash are one item, and their cells are summed by factor.

Each run of items is in the order of their places. So the items of all runs within a range of places are merged by
themselves, range after range: on all cores, or one at a time where memory is short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from elute.cells.counts import Amounts, Cells
from elute.engines.id_keys import Keys
from elute.engines.parts.hashing import HashedItems
from elute.engines.parts.ordering import find_starts, order_items
from elute.engines.pieces import concatenate
from elute.kernels.jit import jit

_FEW = 32
"""Cells up to which an item's are sorted one by one."""

_Places = NDArray[np.int64]
_Codes = NDArray[np.int32]


class Run(NamedTuple):
    """Items of a part in the order of their places. `number` tells runs apart; factors are those of all parts."""

    number: int
    ids: HashedItems
    cells: Cells

    def cut(self, begin: int, end: int) -> Run:
        """Some of its items; offsets stay those of all its cells."""
        ids = HashedItems(*(part[begin:end] for part in self.ids))
        return self._replace(ids=ids, cells=self.cells._replace(offsets=self.cells.offsets[begin : end + 1]))


class ShownPairs(NamedTuple):
    """Which items were shown for which query, by its hash, and how often; in the order of items."""

    item: _Codes
    query: Keys
    impressions: _Places


class Merged(NamedTuple):
    """Items, each once. `run`, `row`: where each of them is named. `query`: of each item its query's hash, where it
    tells it; else `pairs` has them."""

    cells: Cells
    run: _Codes
    row: _Codes
    query: Keys
    pairs: ShownPairs | None

    def cut(self, begin: int, end: int) -> Merged:
        """Some items."""
        inside = slice(*self.cells.offsets[[begin, end]].tolist())
        offsets = self.cells.offsets[begin : end + 1] - inside.start
        pairs = self.pairs
        if pairs is not None:
            rows = slice(*np.searchsorted(pairs.item, np.array([begin, end], np.int32)).tolist())
            pairs = ShownPairs(pairs.item[rows] - np.int32(begin), pairs.query[rows], pairs.impressions[rows])
        return Merged(
            Cells(offsets, self.cells.factor[inside], self.cells.impressions[inside], self.cells.clicks[inside]),
            self.run[begin:end],
            self.row[begin:end],
            self.query[begin:end],
            pairs,
        )


def cut_places(ranges: int) -> list[int]:
    """Where each of so many ranges of places ends, but for the last."""
    return [(at << 64) // ranges for at in range(1, ranges)]


Grouping = Literal["item", "item with queries", "item and query"]
"""What is one item: what has one hash; that, where it does not tell its query; or what has one hash and one query."""

Named = tuple[_Codes, _Codes]
"""Runs and their rows, in which items are named."""


def merge_runs(
    runs: Sequence[tuple[Run, int]],
    n_factors: int,
    amount: DTypeLike,
    by: Grouping,
    require_same: Callable[[Named, Named], None] | None = None,
) -> Merged:
    """Runs that have all items of some places, each with the number of its first row. `amount`: of sums.
    `require_same`: refuses items that share a hash and are not the same."""
    used = [(run, first) for run, first in runs if len(run.ids.item)]
    place, item, query = (_join([run.ids[at] for run, _ in used], np.uint64) for at in range(3))
    inside = [slice(int(run.cells.offsets[0]), int(run.cells.offsets[-1])) for run, _ in used]
    sizes = _join([np.diff(run.cells.offsets) for run, _ in used], np.int64)
    factor, shown, clicked = (
        _join([run.cells[at][own] for (run, _), own in zip(used, inside, strict=True)], kind)
        for at, kind in ((1, np.int32), (2, amount), (3, amount))
    )
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    order = order_items(place, item, None if by == "item" else query)
    starts = find_starts(order, place, item, query if by == "item and query" else query[:0])
    cells = _sum_cells(starts, order, offsets, factor, shown, clicked, n_factors)
    first_of = order[starts[:-1]]
    if require_same is not None:
        same = np.repeat(first_of, np.diff(starts))
        require_same(_name(used, order), _name(used, same))
    pairs = _pair(order, starts, query, offsets, shown) if by == "item with queries" else None
    asked = query[first_of] if len(query) and pairs is None else query[:0]
    return Merged(Cells(*cells), *_name(used, first_of), asked, pairs)


def _name(runs: Sequence[tuple[Run, int]], rows: _Places) -> Named:
    """Where rows are, which are numbered from one of these runs to the next."""
    ends = np.cumsum([0, *(len(run.ids.item) for run, _ in runs)])
    of = np.searchsorted(ends[1:], rows, side="right")
    number = np.array([run.number for run, _ in runs], np.int32)
    first = np.array([first for _, first in runs], np.int64)
    return number[of], (rows - ends[of] + first[of]).astype(np.int32)


def join_merged(parts: Sequence[Merged], amount: DTypeLike) -> Merged:
    """What ranges of places have, one after the other."""
    sizes = concatenate([np.diff(part.cells.offsets) for part in parts], np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    kinds = ((1, np.int32), (2, amount), (3, amount))
    arrays = [concatenate([part.cells[at] for part in parts], kind) for at, kind in kinds]
    pairs, first = (
        [part.pairs for part in parts if part.pairs is not None],
        np.cumsum([0, *(len(p.run) for p in parts)]),
    )
    joined = None
    if pairs:
        joined = ShownPairs(
            concatenate([one.item + np.int32(at) for one, at in zip(pairs, first, strict=False)], np.int32),
            concatenate([one.query for one in pairs], np.uint64),
            concatenate([one.impressions for one in pairs], np.int64),
        )
    run, row = (concatenate([getattr(part, name) for part in parts], np.int32) for name in ("run", "row"))
    return Merged(Cells(offsets, *arrays), run, row, concatenate([part.query for part in parts], np.uint64), joined)


def _join(parts: Sequence[NDArray[Any]], kind: DTypeLike) -> NDArray[Any]:
    return np.concatenate(parts).astype(kind, copy=False) if parts else np.empty(0, kind)


def _pair(order: _Places, starts: _Places, query: Keys, offsets: _Places, shown: Amounts) -> ShownPairs:
    """Of items in the order of their queries."""
    by_unit = np.add.reduceat(shown, offsets[:-1], dtype=np.int64)[order] if len(order) else np.empty(0, np.int64)
    item = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    asked = query[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (item[1:] != item[:-1]) | (asked[1:] != asked[:-1])
    first = np.flatnonzero(new)
    return ShownPairs(item[first], asked[first], np.add.reduceat(by_unit, first) if len(first) else by_unit)


@jit
def _sum_cells(
    starts: _Places,
    order: _Places,
    offsets: _Places,
    factor: _Codes,
    shown: Amounts,
    clicked: Amounts,
    n_factors: int,
) -> tuple[_Places, _Codes, Amounts, Amounts]:
    """An item is `order[starts[i]:starts[i + 1]]`. Its cells, each factor once and rising."""
    out, n = np.zeros(starts.shape[0], np.int64), 0
    into = np.full(n_factors, -1, np.int64)
    factors, shows, clicks = np.empty_like(factor), np.empty_like(shown), np.empty_like(clicked)
    for item in range(starts.shape[0] - 1):
        first, falls = n, False
        for at in range(starts[item], starts[item + 1]):
            for cell in range(offsets[order[at]], offsets[order[at] + 1]):
                code = factor[cell]
                place = into[code]
                if place < 0:
                    falls |= n > first and factors[n - 1] > code
                    into[code] = n
                    factors[n], shows[n], clicks[n] = code, shown[cell], clicked[cell]
                    n += 1
                else:
                    shows[place] += shown[cell]
                    clicks[place] += clicked[cell]
        for cell in range(first, n):
            into[factors[cell]] = -1
        if falls:
            _sort_cells(factors[first:n], shows[first:n], clicks[first:n])
        out[item + 1] = n
    return out, factors[:n].copy(), shows[:n].copy(), clicks[:n].copy()


@jit
def _sort_cells(factor: _Codes, shown: Amounts, clicked: Amounts) -> None:
    if factor.shape[0] > _FEW:
        order = np.argsort(factor)
        factor[:], shown[:], clicked[:] = factor[order], shown[order], clicked[order]
        return
    for at in range(1, factor.shape[0]):
        code, s, c = factor[at], shown[at], clicked[at]
        place = at
        while place > 0 and factor[place - 1] > code:
            factor[place], shown[place], clicked[place] = factor[place - 1], shown[place - 1], clicked[place - 1]
            place -= 1
        factor[place], shown[place], clicked[place] = code, s, c
