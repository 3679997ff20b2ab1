"""Cells on Spark's executors, packed: a row holds the cells of some items as bytes, which neither Spark nor Arrow
need look into. Runs on the executors, but for `unpack`."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.cells.partitions import ItemColumns, Partition, Work
from elute.engines.spark.worker import Batches, CountedPartition, CountingJob, count_partition

T = TypeVar("T")

BLOCKS = (
    "number long, items long, cells long, "
    "item binary, size binary, factor binary, impressions binary, clicks binary, names binary, "
    "query binary, member binary, shown binary, queries binary"
)
"""Spark's name for the rows. `names`: the items' columns where ids are exact. `query` (keys), `member` (items of the
block) and `shown`: which items were shown for which query; `queries`: their values where ids are exact."""

ANSWER = "answer binary"

CELLS_A_BLOCK = 500_000


class CellBlock(NamedTuple):
    """A row, unpacked."""

    item: NDArray[np.uint64]
    cells: Cells
    names: pa.Table | None
    query: NDArray[np.uint64]
    member: NDArray[np.int32]
    shown: NDArray[np.int64]
    queries: pa.ChunkedArray | None


def pack_blocks(job: CountingJob) -> Callable[[Batches], Batches]:
    """Rows of a partition to its blocks."""

    def work(batches: Batches) -> Batches:
        found = count_partition(job, batches)
        counted = found.cells
        if not len(counted.factor):
            return
        steps = np.arange(0, counted.offsets[-1], CELLS_A_BLOCK)
        bounds = np.unique(np.append(np.searchsorted(counted.offsets, steps), len(counted.offsets) - 1))
        first = _partition_number() << 20
        for place, (begin, end) in enumerate(pairwise(bounds.tolist())):
            yield _pack_block(found, begin, end, first + place)

    return work


def _partition_number() -> int:
    """The partition that is being worked on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _pack_block(found: CountedPartition, begin: int, end: int, number: int) -> pa.RecordBatch:
    counted = found.cells
    keys = counted.items[begin:end]
    cells = slice(*counted.offsets[[begin, end]].tolist())
    row: dict[str, Any] = {
        "number": number,
        "items": end - begin,
        "cells": cells.stop - cells.start,
        "item": keys.tobytes(),
        "size": np.diff(counted.offsets[begin : end + 1]).astype(np.int32).tobytes(),
        "factor": counted.factor[cells].tobytes(),
        "impressions": counted.impressions[cells].tobytes(),
        "clicks": counted.clicks[cells].tobytes(),
        "names": None if found.items is None else _to_ipc(found.items.slice(begin, end - begin)),
        "query": None,
        "member": None,
        "shown": None,
        "queries": None,
    }
    members = counted.membership
    if members is not None:
        mine = slice(*np.searchsorted(members.item, [begin, end]).tolist())
        query = members.query[mine]
        row["query"] = counted.queries[query].tobytes()
        row["member"] = (members.item[mine] - np.int32(begin)).tobytes()
        row["shown"] = members.impressions[mine].tobytes()
        if found.queries is not None:
            row["queries"] = _to_ipc(pa.table({"query": found.queries.take(pa.array(query))}))
    columns = [pa.array([row[name]], pa.binary() if kind == "binary" else pa.int64()) for name, kind in _block_fields()]
    return pa.RecordBatch.from_arrays(columns, names=[name for name, _ in _block_fields()])


def map_reduce_blocks(work: Work[T], merge: Callable[[T, T], T]) -> Callable[[Batches], Batches]:
    """Blocks of a partition to the answer of all of them."""

    def run(batches: Batches) -> Batches:
        yield from _send_answer(map(work, read_partitions(batches)), merge)

    return run


def reduce_answers(merge: Callable[[T, T], T]) -> Callable[[Batches], Batches]:
    """Answers of several partitions to one."""

    def run(batches: Batches) -> Batches:
        yield from _send_answer(read_answers(batches), merge)

    return run


def read_answers(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """As `map_reduce_blocks` and `reduce_answers` have sent them."""
    for batch in batches:
        for row in batch.column("answer"):
            yield pickle.loads(row.as_buffer())  # noqa: S301 - from our own workers


def _send_answer(found: Iterator[T], merge: Callable[[T, T], T]) -> Batches:
    for first in found:
        whole = pickle.dumps(reduce(merge, found, first), protocol=5)
        yield pa.RecordBatch.from_pydict({"answer": pa.array([whole], pa.binary())})


def describe_items(work: Work[ItemColumns], schema: pa.Schema) -> Callable[[Batches], Batches]:
    """Blocks to rows: an item's key, its columns where the block has them, and what `work` says of it."""

    def run(batches: Batches) -> Batches:
        for block, partition in _read_blocks(batches):
            table = pa.table({"elute_key": block.item.view(np.int64)}) if block.names is None else block.names
            for name, values in work(partition).items():
                table = table.append_column(name, pa.array(values, schema.field(name).type))
            yield from table.to_batches()

    return run


def read_partitions(batches: Iterable[pa.RecordBatch]) -> Iterator[Partition]:
    """The blocks as a fit sees them."""
    return (partition for _, partition in _read_blocks(batches))


def _read_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[CellBlock, Partition]]:
    for batch in batches:
        numbers = batch.column("number").to_pylist()
        for number, block in zip(numbers, unpack(batch), strict=True):
            yield block, Partition(number, block.cells)


def unpack(batch: pa.RecordBatch) -> Iterator[CellBlock]:
    """The blocks of some rows."""
    for place in range(batch.num_rows):
        row = {name: batch.column(name)[place].as_buffer() for name, kind in _block_fields() if kind == "binary"}

        def array(name: str, dtype: Any, row: dict[str, Any] = row) -> NDArray[Any]:
            return np.empty(0, dtype) if row[name] is None else np.frombuffer(row[name], dtype)

        offsets = np.concatenate(([0], np.cumsum(array("size", np.int32), dtype=np.int64)))
        width = np.uint32 if len(row["impressions"]) == len(row["factor"]) else np.uint64
        amounts: list[Amounts] = [array(name, width) for name in ("impressions", "clicks")]
        yield CellBlock(
            item=array("item", np.uint64),
            cells=Cells(offsets, array("factor", np.int32), *amounts),
            names=_read_table(row["names"]),
            query=array("query", np.uint64),
            member=array("member", np.int32),
            shown=array("shown", np.int64),
            queries=None if row["queries"] is None else pa.ipc.open_stream(row["queries"]).read_all()["query"],
        )


def _block_fields() -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in (field.split() for field in BLOCKS.split(", "))]


def _read_table(buffer: pa.Buffer | None) -> pa.Table | None:
    return None if buffer is None else pa.ipc.open_stream(buffer).read_all()


def _to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
