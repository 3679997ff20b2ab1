"""A line before a first run compiles: without it, a new install seems stuck.

numba compiles a kernel when it is first called and keeps it on disk for later processes (`elute.kernels.jit`). Whether
what it kept still fits the sources, the machine and numba itself, numba alone knows; so it is listened to: it reports
what it compiles, and nothing of what it finds. Listening takes an import of numba, and therefore starts with the import
of the kernels, which commands without any never do.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

_KERNELS = "elute.kernels.jit"
"""Every kernel is made by this module."""

_LINE = "elute: compiling kernels, once for each verb after an install; this takes seconds to a minute"
_NEWS = 1.0
"""Seconds between two lines of progress, on a terminal."""


@contextmanager
def announce_compiling() -> Iterator[None]:
    """Within this, say so once, on stderr, if kernels are compiled."""
    with ExitStack() as until_done:
        watch = _Watch(until_done)
        until_done.callback(watch.end)
        if _KERNELS in sys.modules:
            watch.listen()
        else:
            sys.meta_path.insert(0, watch)
            until_done.callback(sys.meta_path.remove, watch)
        yield


class _Watch:
    """A finder of modules, which are asked before anything is imported; it finds none, and so hears of the kernels in
    time to listen."""

    def __init__(self, until_done: ExitStack) -> None:
        self._until_done = until_done
        self._said = False
        self._kernels, self._told = 0, 0.0

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None, /) -> None:
        if name == _KERNELS:
            self.listen()

    def listen(self) -> None:
        from numba.core import event

        watch = self

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                watch.say()

            def on_end(self, event: Any) -> None:
                watch.count()

        self._until_done.enter_context(event.install_listener("numba:compile", Listener()))

    def say(self) -> None:
        if not self._said:
            self._said = True
            self._told = time.monotonic()
            print(_LINE, file=sys.stderr, flush=True)  # not click.echo, which writes into a progress bar

    def count(self) -> None:
        """One more is compiled; on a terminal, say how many now and then, in one place."""
        self._kernels += 1
        if sys.stderr.isatty() and time.monotonic() - self._told > _NEWS:
            self._told = time.monotonic()
            print(f"\relute: {self._kernels} kernels compiled", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._kernels and sys.stderr.isatty():
            print(f"\relute: {self._kernels} kernels compiled", file=sys.stderr, flush=True)
        if self._said:
            from elute.kernels.jit import describe_fallback

            kept = describe_fallback()
            if kept is not None:
                print(f"elute: {kept}", file=sys.stderr, flush=True)
