"""Where large arrays lie: in memory, or in files of a folder, which the machine reads piece by piece as they are used.

Files are written once, front to back, and mapped: what is not in use costs no memory that anything else could need.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from elute._util import scratch

FRACTION = 4
"""Arrays go to disk where they would take more than one part in so many of the memory."""


class Storage(Protocol):
    """What a reader of something large writes to."""

    on_disk: bool

    def new_array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array to fill."""
        ...

    def write_table(self, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        """All batches as one table."""
        ...


class MemoryStorage:
    """Arrays in memory."""

    on_disk = False

    def new_array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        return np.empty(shape, dtype)

    def write_table(self, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        return pa.Table.from_batches(batches, schema)


MEMORY = MemoryStorage()


class DiskStorage:
    """Arrays in files of a folder."""

    on_disk = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new_array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        return np.lib.format.open_memmap(self._folder / f"{name}.npy", "w+", np.dtype(dtype), shape)

    def write_table(self, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        path = str(self._folder / f"{name}.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return pa.ipc.open_file(pa.memory_map(path)).read_all()


@contextmanager
def open_storage(target: Path, on_disk: bool) -> Iterator[Storage]:
    """Storage in memory, or in a folder beside `target` that is deleted afterwards."""
    if not on_disk:
        yield MEMORY
        return
    beside = Path(os.path.realpath(target)).parent
    beside.mkdir(parents=True, exist_ok=True)
    with scratch.open_folder(beside) as folder:
        yield DiskStorage(folder)


def exceeds_memory(size: int) -> bool:
    """Whether so many bytes of arrays should go to disk."""
    return size > available_memory() // FRACTION


def available_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or its container's."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found
