"""What to remove where a process must leave at once, without unwinding: on Ctrl-C while a kernel runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_temporary: set[Path] = set()


def note(path: Path) -> None:
    """Remember a temporary file or folder."""
    _temporary.add(path)


def forget(path: Path) -> None:
    """It is gone, or has become what it was made for."""
    _temporary.discard(path)


@contextmanager
def noted(path: Path) -> Iterator[None]:
    """Remember it for as long as this lasts."""
    note(path)
    try:
        yield
    finally:
        forget(path)


def remove_all() -> None:
    """Remove what is remembered, as far as the system lets."""
    for path in list(_temporary):
        with suppress(OSError):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
