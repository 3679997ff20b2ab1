"""What runs on Spark's executors: one partition holds all rows of its items, and is counted there.

The kernels are those of the embedded engine. elute must be installed where the executors' Python is, as for any
Python function that Spark runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.engines.counting import Batch, Counter, summary
from elute.kernels.forest import edges, merged
from elute.kernels.unionfind import Parents, singletons
from elute.roles import Roles

Batches = Iterator[pa.RecordBatch]
Totals = NDArray[np.int64]

EDGE, UNDER, INSIDE, ONCE, QUERY = range(5)
"""Kinds of rows of a summary: an edge of the forest; items under a factor; items in a tree; items shown once; items
and impressions of a query in a tree."""

SUMMARY = "kind tinyint, key long, root int, items long, impressions long, query string"
"""Spark's name for the rows of a summary; `query` is the query's own value where ids are exact, else null."""

COMBINED = "kind tinyint, key long, root int, items long"
"""Spark's name for what is left of summaries once the queries' rows are apart."""

CELLS = "item long, query long, factor int, impressions long, clicks long"
"""An item's cells follow each other. A row without factor says that an item was shown for a query, where that does
not follow from the item."""


@dataclass(frozen=True)
class Job:
    """What a worker must know of the log."""

    roles: Roles
    factors: NDArray[np.uint64]
    rows: int
    impressions: int
    partitions: int
    exact: int
    """Columns that tell an item by value, in front of the others; 0: the first column is a hash of it."""


def summarise(job: Job) -> Callable[[Batches], Batches]:
    """Rows of a partition to the rows of its summary."""

    def work(batches: Batches) -> Batches:
        counter, names = _counted(job, batches)
        found = summary(counter.finish(), len(job.factors))
        yield from _totals(found.root, found.items_under, found.items_in, found.items_once)
        if found.queries is not None:
            query, root, items, impressions = found.queries
            key = counter.queries.keys().view(np.int64)[query]
            values = None if names is None else names.take(pa.array(query))
            yield _rows(QUERY, key, root, items, impressions, values)

    return work


def combine(n_factors: int) -> Callable[[Batches], Batches]:
    """Summaries of several partitions to one."""

    def work(batches: Batches) -> Batches:
        for batch in _totals(*combined(n_factors, batches)):
            yield batch.select(["kind", "key", "root", "items"])

    return work


def combined(n_factors: int, batches: Iterable[pa.RecordBatch]) -> tuple[Parents, Totals, Totals, int]:
    """The forest of all, items under each factor, items in each tree of a partition by its smallest factor, and
    items shown once."""
    root, under, inside, once = singletons(n_factors), np.zeros(n_factors, np.int64), np.zeros(n_factors, np.int64), 0
    for batch in batches:
        kind, key, parent, items = (batch.column(name).to_numpy() for name in ("kind", "key", "root", "items"))
        edge = kind == EDGE
        root = merged(root, np.stack((parent[edge], key[edge].astype(np.int32)), axis=1))
        for wanted, totals in ((UNDER, under), (INSIDE, inside)):
            np.add.at(totals, key[kind == wanted], items[kind == wanted])
        once += int(items[kind == ONCE].sum())
    return root, under, inside, once


def count(job: Job) -> Callable[[Batches], Batches]:
    """Rows of a partition to its cells; items and queries by their keys."""

    def work(batches: Batches) -> Batches:
        counter, _ = _counted(job, batches)
        counted = counter.finish()
        item, query = (table.keys().view(np.int64) for table in (counter.items, counter.queries))
        of_cell = np.repeat(np.arange(len(item)), np.diff(counted.offsets))
        members, within = counted.membership, job.roles.items_within_queries
        nothing = pa.nulls(len(of_cell), pa.int64())
        yield _cells(
            item[of_cell],
            pa.array(query[members.query][of_cell]) if members is not None and within else nothing,
            pa.array(counted.factor),
            counted.impressions,
            counted.clicks,
        )
        if members is not None and not within:
            none = pa.nulls(len(members.item), pa.int32())
            shown = members.impressions
            yield _cells(item[members.item], pa.array(query[members.query]), none, shown, np.zeros_like(shown))

    return work


def _totals(root: Parents, under: Totals, inside: Totals, once: int) -> Batches:
    forest = edges(root)
    yield _rows(EDGE, forest[:, 1], forest[:, 0])
    for kind, amounts in ((UNDER, under), (INSIDE, inside)):
        some = np.flatnonzero(amounts)
        yield _rows(kind, some, some, amounts[some])
    zero = np.zeros(1, np.int64)
    yield _rows(ONCE, zero, zero, zero + once)


def _counted(job: Job, batches: Batches) -> tuple[Counter, pa.ChunkedArray | None]:
    """A counter that has seen the partition, and the queries' values where ids are exact."""
    counter = Counter(job.roles, job.factors, job.rows, job.impressions, job.partitions)
    if not job.exact:
        for batch in batches:
            counter.add(_batch({name: batch.column(name) for name in batch.schema.names}))
        return counter, None
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return counter, None
    table = pa.Table.from_batches(held)
    columns = {name: table[name].combine_chunks() for name in table.column_names if not name.startswith("item")}
    columns["item"] = _numbered([table[f"item{i}"] for i in range(job.exact)])
    names = None
    if "query" in columns:
        values = columns["query"].dictionary_encode()
        columns["query"] = values.indices.cast(pa.int64())
        names = values.dictionary
    counter.add(_batch(columns))
    return counter, names if names is None else names.take(pa.array(counter.queries.keys().view(np.int64)))


def _numbered(columns: list[pa.ChunkedArray]) -> pa.Array:
    """Equal rows get equal numbers: ids told apart by value."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values = column.combine_chunks().dictionary_encode()
        _, code = np.unique(code * len(values.dictionary) + values.indices.to_numpy(), return_inverse=True)
    return pa.array(code)


def _batch(columns: dict[str, pa.Array]) -> Batch:
    arrays: dict[str, Any] = {name: values.to_numpy(zero_copy_only=False) for name, values in columns.items()}
    for name in ("item", "factor", "query"):
        if name in arrays:
            arrays[name] = arrays[name].view(np.uint64)
    return Batch(**arrays)


def _rows(
    kind: int,
    key: NDArray[np.integer],
    root: NDArray[np.integer],
    items: NDArray[np.integer] | None = None,
    impressions: NDArray[np.integer] | None = None,
    query: pa.Array | None = None,
) -> pa.RecordBatch:
    nothing = np.zeros(len(key), np.int64)
    arrays = {
        "kind": pa.array(np.full(len(key), kind, np.int8)),
        "key": pa.array(key.astype(np.int64)),
        "root": pa.array(root.astype(np.int32)),
        "items": pa.array(nothing if items is None else items.astype(np.int64)),
        "impressions": pa.array(nothing if impressions is None else impressions.astype(np.int64)),
        "query": pa.nulls(len(key), pa.string()) if query is None else query.cast(pa.string()),
    }
    return pa.RecordBatch.from_pydict(arrays)


def _cells(
    item: NDArray[np.int64],
    query: pa.Array,
    factor: pa.Array,
    impressions: NDArray[np.integer],
    clicks: NDArray[np.integer],
) -> pa.RecordBatch:
    amounts = {name: pa.array(of.astype(np.int64)) for name, of in (("impressions", impressions), ("clicks", clicks))}
    return pa.RecordBatch.from_pydict({"item": pa.array(item), "query": query, "factor": factor, **amounts})
