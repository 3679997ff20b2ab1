"""Rows of a log put aside by partition of their items: the log is read once, then one partition after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from elute.engines.counter import RowBatch

_HEADER = np.dtype(np.int64)


class RowFiles:
    """One file a partition, in blocks: how many rows, then their columns one after the other. A row's partition is its
    place modulo their number; the places themselves are not kept."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self._files = [folder / f"rows.{number}" for number in range(partitions)]
        self._types: list[tuple[str, np.dtype[Any]]] = []
        for file in self._files:
            file.write_bytes(b"")

    def add(self, batch: RowBatch) -> None:
        """Put some rows aside."""
        kept = batch._replace(places=None)._asdict()
        columns = {name: values for name, values in kept.items() if values is not None}
        self._types = [(name, values.dtype) for name, values in columns.items()]
        places = batch.item if batch.places is None else batch.places
        partition = (places % np.uint64(len(self._files))).astype(
            np.uint16 if len(self._files) <= 1 << 16 else np.uint32
        )
        order = np.argsort(partition, kind="stable")
        ends = np.cumsum(np.bincount(partition, minlength=len(self._files)))
        ordered = [values[order] for values in columns.values()]
        begin = 0
        for file, end in zip(self._files, ends.tolist(), strict=True):
            if end > begin:
                with file.open("ab") as out:
                    np.array([end - begin], _HEADER).tofile(out)
                    for values in ordered:
                        values[begin:end].tofile(out)
            begin = end

    def take(self, number: int) -> Iterator[RowBatch]:
        """The rows of a partition, once: its file is deleted."""
        with self._files[number].open("rb") as file:
            while len(header := np.fromfile(file, _HEADER, 1)):
                arrays: dict[str, Any] = {name: np.fromfile(file, of, int(header[0])) for name, of in self._types}
                yield RowBatch(**arrays)
        self._files[number].unlink()
