"""Cells: what remains of a log once it has been read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.formula import BiasFormula, formula_of, tie_factors
from elute.errors import EluteError
from elute.kernels.blocks import map_blocks
from elute.kernels.forest import connect_cells
from elute.kernels.jit import jit

Amounts = NDArray[np.uint32] | NDArray[np.uint64]


class Cells(NamedTuple):
    """Cells sorted by item: item `i` owns `offsets[i]` to `offsets[i + 1]`; it may have none."""

    offsets: NDArray[np.int64]
    factor: NDArray[np.int32]
    impressions: Amounts
    clicks: Amounts


@dataclass(frozen=True, eq=False)
class Membership:
    """Which items were shown for which query, and how often. Codes, not names."""

    queries: int
    query: NDArray[np.int32]
    item: NDArray[np.int32]
    impressions: NDArray[np.int64]


class Clustered(NamedTuple):
    """Cells by cluster: equally long arrays; clusters coded from 0, -1 where the column is null, items and factors as
    in `Counts`. Summed over clusters they are the cells of the counts."""

    cluster: NDArray[np.integer]
    item: NDArray[np.integer]
    factor: NDArray[np.integer]
    impressions: NDArray[np.integer]
    clicks: NDArray[np.integer]
    values: pa.Array | None = None
    """By cluster: the column's value, where a column made them."""

    @classmethod
    def from_table(
        cls, table: pa.Table, column: str, item: NDArray[np.integer], factor: NDArray[np.integer]
    ) -> Clustered:
        """Rows with the column, and `elute_shown` and `elute_clicked`."""
        values = table[column].combine_chunks().dictionary_encode()
        shown, clicked = (table[name].to_numpy() for name in ("elute_shown", "elute_clicked"))
        return cls(values.indices.fill_null(-1).to_numpy(), item, factor, shown, clicked, values.dictionary)

    def refuse_nulls(self, column: str) -> Clustered:
        """Rows without a value belong to no cluster."""
        if self.cluster.min(initial=0) < 0:
            raise EluteError(f"column '{column}' is null in some rows, which belong to no cluster; fill them in")
        return self

    def leave_out_nulls(self) -> Clustered:
        """The rows of clusters alone."""
        kept = self.cluster >= 0
        cluster, item, factor, impressions, clicks = (part[kept] for part in self[:5])
        return Clustered(cluster, item, factor, impressions, clicks, self.values)


def _refuse_clusters(column: str) -> Clustered:
    raise EluteError(f"these counts have no log to read '{column}' from; pass cells by cluster")


@dataclass(frozen=True, eq=False)
class Counts:
    """Impressions and clicks of every observed (item, factor) pair, as arrays ordered by item.

    Item `i` owns the cells `offsets[i]` to `offsets[i + 1]`, in rising order of factor. Memory: 12 bytes
    a cell (20 beyond 4 billion impressions) and 8 bytes an item.
    """

    offsets: NDArray[np.int64]
    factor: NDArray[np.int32]
    impressions: Amounts
    clicks: Amounts
    factors: pa.Table
    """The bias columns, one row a factor."""
    membership: Membership | None
    """None where the log has no query column."""
    collision_bound: float
    """Upper bound on the probability that two different items share a code; 0 where codes are exact."""
    read_items: Callable[[], pa.Table]
    read_clusters: Callable[[str], Clustered] = _refuse_clusters
    """Cells by the values of a column of the log."""

    def tie(self, formula: BiasFormula | None) -> Counts:
        """The same cells under a formula; None: every factor stands for itself. Items that were read stay read."""
        if formula_of(self.factors) == formula:
            return self
        return replace(self, factors=tie_factors(self.factors, formula), read_items=lambda: self.items)

    @property
    def n_items(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_factors(self) -> int:
        return int(self.factors.num_rows)

    @property
    def n_cells(self) -> int:
        return len(self.factor)

    @cached_property
    def items(self) -> pa.Table:
        """The item columns, one row an item. Read from the log when first asked for: the arithmetic
        needs codes only, and names are most of a log's bytes."""
        return self.read_items()

    @cached_property
    def root(self) -> NDArray[np.int32]:
        """For every factor the smallest factor of its component."""
        return connect_cells(self.offsets, self.factor, self.n_factors)

    @cached_property
    def item_impressions(self) -> NDArray[np.int64]:
        """Impressions of every item."""
        return sum_by_item(self.offsets, self.impressions)


def sum_by_item(offsets: NDArray[np.int64], amounts: Amounts) -> NDArray[np.int64]:
    """Sum over the cells of every item."""
    return np.concatenate(map_blocks(lambda _, own: _sum_by_item(own, amounts), offsets))


@jit
def _sum_by_item(offsets: NDArray[np.int64], amounts: Amounts) -> NDArray[np.int64]:
    out = np.zeros(offsets.shape[0] - 1, np.int64)
    for item in range(out.shape[0]):
        for cell in range(offsets[item], offsets[item + 1]):
            out[item] += np.int64(amounts[cell])
    return out
