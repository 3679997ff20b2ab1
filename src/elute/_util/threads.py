"""How many cores to use, and work shared among them.

Compiled kernels and DuckDB run without the interpreter's lock, so that plain threads use all cores and share memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar

Job = TypeVar("Job")
Found = TypeVar("Found")

_TICK = 0.1
"""Seconds between two looks at work that is under way."""

_QUOTAS = (
    ("/sys/fs/cgroup/cpu.max", None),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)
"""Where a control group says how much time its processes get, in both versions."""

_asked: int | None = None


def use_threads(threads: int | None) -> None:
    """From now on, so many at most in this process; None: what the process may use."""
    global _asked
    _asked = threads


def count_threads() -> int:
    """How many threads to use."""
    return _asked or count_usable_cores()


def count_usable_cores() -> int:
    """Those that affinity and control groups leave to this process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _read_quota()
    return cores if quota is None else max(1, min(cores, round(quota)))


def _read_quota() -> float | None:
    """Cores' worth of time; None where there is no limit."""
    for first, second in _QUOTAS:
        try:
            words = Path(first).read_text().split()
            if second is not None:
                words += Path(second).read_text().split()
            quota, period = words
            return None if quota == "max" or float(quota) <= 0 else float(quota) / float(period)
        except (OSError, ValueError):
            continue
    return None


def map_threads(
    work: Callable[[Job], Found],
    jobs: Iterable[Job],
    threads: int | None = None,
    tick: Callable[[], None] | None = None,
    interrupted: threading.Event | None = None,
) -> list[Found]:
    """`work` of every job, in their order. Threads take one job after the other. `tick`: called now and then by the
    thread that waits. The first error ends it, or Ctrl-C: no other job begins, and `interrupted` tells those that have
    begun."""
    listed = list(jobs)
    number = min(count_threads() if threads is None else threads, len(listed))
    if number <= 1:
        return [work(job) for job in listed]
    shared: _SharedWork[Job, Found] = _SharedWork(work, listed)
    pool = [threading.Thread(target=shared.take, daemon=True) for _ in range(number)]
    for thread in pool:
        thread.start()
    try:
        for thread in pool:
            while thread.is_alive():
                thread.join(_TICK)
                if tick is not None and thread.is_alive():
                    tick()
    finally:
        shared.stopped = True
        if interrupted is not None:
            interrupted.set()
        for thread in pool:
            thread.join()
    if shared.error is not None:
        raise shared.error
    return shared.found


def run_beside(first: Callable[[], Found], others: Sequence[Callable[[], Any]]) -> tuple[Found, list[Any]]:
    """`first` in this thread, where Ctrl-C ends it, and meanwhile `others`, one after the other, in another."""
    shared: _SharedWork[Callable[[], Any], Any] = _SharedWork(lambda work: work(), others)
    if count_threads() == 1:
        return first(), [work() for work in others]
    thread = threading.Thread(target=shared.take, daemon=True)
    thread.start()
    try:
        mine = first()
    except BaseException:
        shared.stopped = True
        raise
    finally:
        thread.join()
    if shared.error is not None:
        raise shared.error
    return mine, shared.found


def run_ahead(parts: Iterable[Found]) -> Iterator[Found]:
    """These, each made in another thread while the one before it is used."""
    source, end = iter(parts), object()
    if count_threads() == 1:
        yield from source
        return
    with ThreadPoolExecutor(1) as maker:
        following = maker.submit(next, source, end)
        while (part := following.result()) is not end:
            following = maker.submit(next, source, end)
            yield part  # type: ignore[misc]


class _SharedWork(Generic[Job, Found]):
    """Jobs that several threads take from."""

    def __init__(self, work: Callable[[Job], Found], jobs: Sequence[Job]) -> None:
        self._work, self._jobs = work, jobs
        self._next = iter(range(len(jobs)))
        self._lock = threading.Lock()
        self.found: list[Found] = [None] * len(jobs)  # type: ignore[list-item]
        self.error: BaseException | None = None
        self.stopped = False

    def take(self) -> None:
        while not self.stopped:
            with self._lock:
                at = next(self._next, None)
            if at is None:
                return
            try:
                self.found[at] = self._work(self._jobs[at])
            except BaseException as error:
                self.error = self.error or error
                self.stopped = True


def split_evenly(n: int, parts: int | None = None, least: int = 1) -> list[tuple[int, int]]:
    """Ranges of 0 to `n`, as many as there are threads, but none shorter than `least` unless it is the only one."""
    parts = max(1, min(count_threads() if parts is None else parts, n // max(least, 1)))
    ends = [n * part // parts for part in range(parts + 1)]
    return list(pairwise(ends))
