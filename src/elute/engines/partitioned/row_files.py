"""Rows of a log put aside by share of their items: the log is read once, and its shares one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from elute.engines.counting import Batch

_HEADER = np.dtype(np.int64)


class RowFiles:
    """One file a share, in blocks: how many rows, then their columns one after the other. An item's share is its key
    modulo their number."""

    def __init__(self, folder: Path, shares: int) -> None:
        self._files = [folder / f"rows.{number}" for number in range(shares)]
        self._types: list[tuple[str, np.dtype[Any]]] = []
        for file in self._files:
            file.write_bytes(b"")

    def add(self, batch: Batch) -> None:
        """Put some rows aside."""
        columns = {name: values for name, values in batch._asdict().items() if values is not None}
        self._types = [(name, values.dtype) for name, values in columns.items()]
        share = (batch.item % np.uint64(len(self._files))).astype(
            np.uint16 if len(self._files) <= 1 << 16 else np.uint32
        )
        order = np.argsort(share, kind="stable")
        ends = np.cumsum(np.bincount(share, minlength=len(self._files)))
        ordered = [values[order] for values in columns.values()]
        begin = 0
        for file, end in zip(self._files, ends.tolist(), strict=True):
            if end > begin:
                with file.open("ab") as out:
                    np.array([end - begin], _HEADER).tofile(out)
                    for values in ordered:
                        values[begin:end].tofile(out)
            begin = end

    def take(self, number: int) -> Iterator[Batch]:
        """The rows of a share, once: its file is deleted."""
        with self._files[number].open("rb") as file:
            while len(header := np.fromfile(file, _HEADER, 1)):
                arrays: dict[str, Any] = {name: np.fromfile(file, of, int(header[0])) for name, of in self._types}
                yield Batch(**arrays)
        self._files[number].unlink()
