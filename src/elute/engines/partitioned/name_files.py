"""The columns of items by partition, in files: as Arrow has them, so that ids come back as they were."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from elute.engines.duckdb.id_columns import RowIds

KEY = "elute_key"


class NameFiles:
    """One file a partition, of Arrow streams one after another: an item's is its place modulo their number."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self._folder, self._partitions = folder, partitions

    @property
    def is_written(self) -> bool:
        return self._folder.exists()

    def write(
        self, batches: Iterable[pa.RecordBatch], columns: int, read: Callable[[Sequence[pa.Array]], RowIds]
    ) -> None:
        """All items: so many columns of theirs, and others that `read` makes their keys of. The folder has its name
        once it is whole."""
        begun = self._folder.with_suffix(".begun")
        shutil.rmtree(begun, ignore_errors=True)
        begun.mkdir()
        for batch in batches:
            ids = read(batch.columns[columns:])
            table = pa.Table.from_batches([batch.select(range(columns))]).append_column(KEY, pa.array(ids.item))
            partition = (ids.places % np.uint64(self._partitions)).astype(np.int64)
            order = np.argsort(partition, kind="stable")
            ends = np.searchsorted(partition[order], np.arange(self._partitions + 1))
            ordered = table.take(pa.array(order))
            for number in np.flatnonzero(np.diff(ends)).tolist():
                rows = ordered.slice(ends[number], ends[number + 1] - ends[number])
                with (begun / str(number)).open("ab") as file, pa.ipc.new_stream(file, rows.schema) as stream:
                    stream.write_table(rows)
        begun.rename(self._folder)

    def read(self, number: int) -> pa.Table:
        """The items of a partition, with their keys."""
        path = self._folder / str(number)
        tables = []
        with pa.OSFile(str(path)) as file:
            while file.tell() < path.stat().st_size:
                tables.append(pa.ipc.open_stream(file).read_all())
        return pa.concat_tables(tables)
