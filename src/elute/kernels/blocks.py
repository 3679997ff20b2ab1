"""Items in consecutive blocks, worked on side by side.

Kernels release the interpreter's lock, so threads suffice. How many blocks there are depends on the number of cells
alone: sums over blocks come out the same on any machine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from elute._util.threads import count_threads

T = TypeVar("T")
Part = TypeVar("Part")

_CELLS = 1_000_000
"""In a block, at least."""

_MOST = 32

_own = threading.local()
"""Whether this thread works on a block already: it does not wait for others of its kind."""


def cut_blocks(offsets: NDArray[np.int64]) -> list[slice]:
    """Ranges of items with about as many cells each."""
    cells = int(offsets[-1] - offsets[0])
    count = max(1, min(_MOST, cells // _CELLS))
    if count == 1:
        return [slice(0, len(offsets) - 1)]
    edges = np.searchsorted(offsets, offsets[0] + np.arange(1, count) * (cells // count))
    bounds = np.unique(np.concatenate(([0], edges, [len(offsets) - 1])))
    return [slice(int(a), int(b)) for a, b in pairwise(bounds)] or [slice(0, 0)]


def map_blocks(work: Callable[[slice, NDArray[np.int64]], T], offsets: NDArray[np.int64]) -> list[T]:
    """`work(items, their offsets)` for every block, in order."""
    parts = cut_blocks(offsets)
    if len(parts) == 1:
        return [work(parts[0], offsets)]
    return _map_parts(lambda items: work(items, offsets[items.start : items.stop + 1]), parts)


def join_blocks(kernel: Callable[..., NDArray[Any]], offsets: NDArray[np.int64], *given: object) -> NDArray[Any]:
    """`kernel(offsets of some items, *given)`, an array by item, for all."""
    parts = map_blocks(lambda _, own: kernel(own, *given), offsets)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def map_chunks(work: Callable[[NDArray[np.int64]], T], items: NDArray[np.int64], size: int) -> list[T]:
    """`work` on `size` of the items at a time, in order."""
    parts = [items[begin : begin + size] for begin in range(0, max(len(items), 1), size)]
    return _map_parts(work, parts)


def _map_parts(work: Callable[[Part], T], parts: list[Part]) -> list[T]:
    threads = count_threads()
    if threads == 1 or len(parts) == 1 or getattr(_own, "busy", False):
        return [work(part) for part in parts]
    return list(_thread_pool(threads).map(work, parts))


@cache  # threads are kept from one call to the next: the steps of a fit are short
def _thread_pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "elute", initializer=lambda: setattr(_own, "busy", True))
