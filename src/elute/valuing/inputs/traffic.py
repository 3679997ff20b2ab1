"""The pages of a log as places to fill: what another ranking would fill with other documents.

A *slot* is a factor that pages of a query showed results under, with the number of these pages. Another ranking fills
the same slots: its k-th document stands at the k-th place of every page of the query that is as long, in whatever
context (device, layout) the page was seen. So traffic and contexts stay those of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells, Counts
from elute.cells.factors import has_position_name, is_position
from elute.errors import EluteError
from elute.estimate.inference.bootstrap import queries_of_items
from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Offsets = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PageTraffic:
    """`query`: of every item. `place`: of every factor, from 0. Slots of query `q` are `offsets[q]` to `offsets[q +
    1]`: their `factor`, and `shown`, on how many pages they were filled. `pages`: by query; the place that was filled
    most often was filled on all of them. `clicks`: by query."""

    cells: Cells
    query: Codes
    place: Codes
    offsets: Offsets
    factor: Codes
    shown: Floats
    pages: Floats
    clicks: Floats

    @property
    def n_queries(self) -> int:
        return len(self.pages)

    @property
    def n_items(self) -> int:
        return len(self.query)

    @cached_property
    def widest(self) -> int:
        """Places of the longest page."""
        return int(self.place.max(initial=-1)) + 1


def read_traffic(counts: Counts, position: str | None = None) -> PageTraffic:
    """From the cells of a log whose items are a query's documents. `position`: the bias column of places."""
    cells = Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks)
    query = queries_of_items(counts)
    members = counts.membership
    return collect_slots(cells, query, 0 if members is None else members.queries, find_places(counts.factors, position))


def collect_slots(cells: Cells, query: Codes, queries: int, place: Codes) -> PageTraffic:
    """Of cells, the query of every item and the place of every factor."""
    order = np.argsort(query, kind="stable")
    begin = np.searchsorted(query[order], np.arange(queries + 1))
    offsets, factor, shown, pages, clicks = _collect(*cells, order, begin, place)
    return PageTraffic(cells, query, place, offsets, factor, shown, pages, clicks)


def find_places(factors: pa.Table, position: str | None = None) -> Codes:
    """By factor: its place on a page, from 0, by the bias column that counts them."""
    name = position or choose_position(factors)
    values = np.asarray(factors[name].cast(pa.float64()).to_numpy(), np.float64)
    return np.unique(values, return_inverse=True)[1].astype(np.int32)


def choose_position(factors: pa.Table) -> str:
    """The bias column of places."""
    found = [name for name in factors.column_names if is_position(factors, name)]
    if len(found) == 1:
        return str(found[0])
    if found:
        raise EluteError(
            f"{len(found)} bias columns may hold positions ({', '.join(found)}); keep one of them in `bias=`"
        )
    texts = [name for name in factors.column_names if has_position_name(name)]
    why = f"column '{texts[0]}' is text" if texts else f"of {', '.join(factors.column_names)}, none is named as one"
    raise EluteError(f"a ranking is placed by the positions of the log, and {why}; name a column of numbers in `bias=`")


@jit
def _collect(
    cell_offsets: Offsets,
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    order: NDArray[np.int64],
    begin: NDArray[np.int64],
    place: Codes,
) -> tuple[Offsets, Codes, Floats, Floats, Floats]:
    """Items in the `order` of queries, whose own `begin` there."""
    queries = begin.shape[0] - 1
    offsets, pages, clicked = np.zeros(queries + 1, np.int64), np.zeros(queries), np.zeros(queries)
    sums, at_place = np.zeros(place.shape[0]), np.zeros(place.max() + 1)
    found, shown = np.empty(factor.shape[0], np.int32), np.empty(factor.shape[0])
    n = 0
    for query in range(queries):
        first = n
        for i in range(begin[query], begin[query + 1]):
            for cell in range(cell_offsets[order[i]], cell_offsets[order[i] + 1]):
                t = factor[cell]
                if sums[t] == 0.0:
                    found[n] = t
                    n += 1
                sums[t] += impressions[cell]
                clicked[query] += clicks[cell]
        found[first:n] = np.sort(found[first:n])
        for s in range(first, n):
            shown[s] = sums[found[s]]
            sums[found[s]] = 0.0
            at_place[place[found[s]]] += shown[s]
        for s in range(first, n):
            pages[query] = max(pages[query], at_place[place[found[s]]])
            at_place[place[found[s]]] = 0.0
        offsets[query + 1] = n
    return offsets, found[:n].copy(), shown[:n].copy(), pages, clicked
