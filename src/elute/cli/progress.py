"""Progress on stderr: a bar in a terminal after a second, now and then a line elsewhere after five."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

_PATIENCE = 1.0
_PATIENCE_ELSEWHERE = 5.0
"""Where lines stay, as in a job's log, fewer are better."""

_BETWEEN_LINES = 10.0


class Reporter:
    """A progress callback that stays silent while work is quick."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bar: Progress | None = None
        self._stage, self._done, self._total = "opening the log", 0, 0
        self._last_line = 0.0
        self._lock = threading.Lock()
        patience = _PATIENCE if self._console.is_terminal else _PATIENCE_ELSEWHERE
        self._timer = threading.Timer(patience, self._start)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._timer.cancel()
        with self._lock:
            if self._bar is not None:
                self._bar.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        with self._lock:
            self._stage, self._done, self._total = stage, done, total
            self._show()

    def _start(self) -> None:
        with self._lock:
            if self._console.is_terminal:
                columns = (
                    SpinnerColumn(),
                    TextColumn("{task.description}"),
                    BarColumn(),
                    TaskProgressColumn(),
                )
                self._bar = Progress(*columns, TimeElapsedColumn(), console=self._console, transient=True)
                self._bar.add_task(self._stage, total=None)
                self._bar.start()
            self._last_line = -_BETWEEN_LINES
            self._show()

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.update(
                self._bar.task_ids[0],
                description=self._stage,
                completed=self._done,
                total=self._total or None,
            )
        elif self._last_line and time.monotonic() - self._last_line >= _BETWEEN_LINES:
            self._last_line = time.monotonic()
            share = f" ({self._done / self._total:.0%})" if self._total else ""
            print(f"elute: {self._stage}{share}", file=sys.stderr, flush=True)
