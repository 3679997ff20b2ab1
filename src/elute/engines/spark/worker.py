"""What runs on Spark's executors: one partition holds all rows of its items, and is counted there.

The kernels are those of the embedded engine. elute must be installed where the executors' Python is, as for any
Python function that Spark runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.threads import use_threads
from elute.cells.roles import Roles
from elute.engines.counted import CountedCells, order_items
from elute.engines.counter import Counter, RowBatch, index_keys
from elute.engines.counting import Totals, summarise_cells
from elute.kernels.forest import spanning_edges
from elute.kernels.keys import KeyTable
from elute.kernels.unionfind import Parents

Batches = Iterator[pa.RecordBatch]

EDGE, UNDER, INSIDE, ONCE, QUERY = range(5)
"""Kinds of rows of a summary: an edge of the forest; items under a factor; items in a tree; items shown once; items
and impressions of a query in a tree."""

COMBINED = "kind tinyint, key long, root int, items long"
"""Spark's name for what is left of summaries once the queries' rows are apart."""


def summary_schema(query: str) -> str:
    """Spark's name for the rows of a summary. `query`: the type of queries where ids are exact. Then rows have the
    query's own value and no key, else a key and no value: either is the same in all partitions."""
    return f"kind tinyint, key long, root int, items long, impressions long, query {query}"


@dataclass(frozen=True)
class CountingJob:
    """What a worker must know of the log."""

    roles: Roles
    factors: NDArray[np.uint64]
    rows: int
    impressions: int
    partitions: int
    exact: int
    """Columns that tell an item by value, in front of the others; 0: the first column is a hash of it."""
    query: pa.DataType
    """Of a query's own value, in a summary."""


def summarise(job: CountingJob) -> Callable[[Batches], Batches]:
    """Rows of a partition to the rows of its summary."""

    def work(batches: Batches) -> Batches:
        counted, _, names = count_partition(job, batches)
        found = summarise_cells(counted, len(job.factors))
        for batch in _summary_batches(found.root, found.items_under, found.items_in, found.items_once):
            yield batch.append_column("query", pa.nulls(batch.num_rows, job.query))
        if found.queries is not None:
            query, root, items, impressions = found.queries
            key = counted.queries.view(np.int64)[query] if names is None else np.zeros(len(query), np.int64)
            values = pa.nulls(len(query), job.query) if names is None else names.take(pa.array(query)).cast(job.query)
            yield _summary_batch(QUERY, key, root, items, impressions).append_column("query", values)

    return work


def combine(n_factors: int) -> Callable[[Batches], Batches]:
    """Summaries of several partitions to one."""

    def work(batches: Batches) -> Batches:
        found = add_summaries(n_factors, batches)
        for batch in _summary_batches(found.root, found.items_under, found.items_in, found.items_once):
            yield batch.select(["kind", "key", "root", "items"])

    return work


def add_summaries(n_factors: int, batches: Iterable[pa.RecordBatch]) -> Totals:
    """The totals of summaries."""
    totals = Totals(n_factors)
    for batch in batches:
        kind, key, parent, items = (batch.column(name).to_numpy() for name in ("kind", "key", "root", "items"))
        edge = kind == EDGE
        forest = np.stack((parent[edge], key[edge].astype(np.int32)), axis=1)
        under, inside = (
            np.bincount(key[kind == of], items[kind == of], n_factors).astype(np.int64) for of in (UNDER, INSIDE)
        )
        totals.add(forest, under, inside, int(items[kind == ONCE].sum()))
    return totals


def _summary_batches(root: Parents, under: NDArray[np.int64], inside: NDArray[np.int64], once: int) -> Batches:
    forest = spanning_edges(root)
    yield _summary_batch(EDGE, forest[:, 1], forest[:, 0])
    for kind, amounts in ((UNDER, under), (INSIDE, inside)):
        some = np.flatnonzero(amounts)
        yield _summary_batch(kind, some, some, amounts[some])
    zero = np.zeros(1, np.int64)
    yield _summary_batch(ONCE, zero, zero, zero + once)


class CountedPartition(NamedTuple):
    """A partition's cells; where ids are exact, its items' columns and its queries' values."""

    cells: CountedCells
    items: pa.Table | None = None
    queries: pa.ChunkedArray | None = None


def count_partition(job: CountingJob, batches: Batches) -> CountedPartition:
    """Count the rows of a partition, on one core: Spark has a task for each."""
    use_threads(1)
    factors = index_keys(job.factors)
    counter = Counter(job.roles, len(factors), job.rows, job.impressions, job.partitions)
    if not job.exact:
        for batch in batches:
            counter.add(_to_batch({name: batch.column(name) for name in batch.schema.names}, factors))
        return CountedPartition(_finish(counter))
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return CountedPartition(counter.finish())
    table = pa.Table.from_batches(held)
    named = [f"item{i}" for i in range(job.exact)]
    columns = {name: table[name].combine_chunks() for name in table.column_names if name not in named}
    code, first = _number_rows([table[name] for name in named])
    columns["item"], queries = pa.array(code), None
    if "query" in columns:
        values = columns["query"].dictionary_encode()
        columns["query"], queries = values.indices.cast(pa.int64()), values.dictionary
    counter.add(_to_batch(columns, factors))
    counted = _finish(counter)
    items = table.select(named).take(pa.array(first[counted.items.view(np.int64)]))
    if queries is not None:
        queries = queries.take(pa.array(counted.queries.view(np.int64)))
    return CountedPartition(counted, items, queries)


def _finish(counter: Counter) -> CountedCells:
    """Spark hands rows over in any order: items are put into one of their own."""
    counted = counter.finish()
    return order_items(counted, [(0, len(counted.items))])


def _number_rows(columns: list[pa.ChunkedArray]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Equal rows get equal numbers, and for each number its first row: ids told apart by value."""
    code, first = np.zeros(len(columns[0]), np.int64), np.zeros(1, np.int64)
    for column in columns:
        values = column.combine_chunks().dictionary_encode()
        pairs = code * len(values.dictionary) + values.indices.to_numpy()
        _, first, code = np.unique(pairs, return_index=True, return_inverse=True)
    return code, first


def _to_batch(columns: dict[str, pa.Array], factors: KeyTable) -> RowBatch:
    arrays: dict[str, Any] = {name: values.to_numpy(zero_copy_only=False) for name, values in columns.items()}
    for name in ("item", "factor", "query"):
        if name in arrays:
            arrays[name] = arrays[name].view(np.uint64)
    arrays["factor"] = factors.find(arrays["factor"])
    return RowBatch(**arrays)


def _summary_batch(
    kind: int,
    key: NDArray[np.integer],
    root: NDArray[np.integer],
    items: NDArray[np.integer] | None = None,
    impressions: NDArray[np.integer] | None = None,
) -> pa.RecordBatch:
    nothing = np.zeros(len(key), np.int64)
    arrays = {
        "kind": pa.array(np.full(len(key), kind, np.int8)),
        "key": pa.array(key.astype(np.int64)),
        "root": pa.array(root.astype(np.int32)),
        "items": pa.array(nothing if items is None else items.astype(np.int64)),
        "impressions": pa.array(nothing if impressions is None else impressions.astype(np.int64)),
    }
    return pa.RecordBatch.from_pydict(arrays)
