"""Several files that belong together are written to a folder all or none, by one process at a time."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from elute._util import leaving, locks
from elute.errors import EluteError

_NEW = ".elute-new-"


def name_lock(mark: str) -> str:
    """Of the file that is in a folder while it is written, or was when the process that did was killed."""
    return f"{mark.partition('.')[0]}.unfinished"


@contextmanager
def write_folder(target: str | Path, mark: str, files: Iterable[str]) -> Iterator[Path]:
    """A place for new files, which take their places in `target` once this is left without an error.

    `mark` is the one whose presence says that the folder is complete: it goes first and comes last. Of `files`, those
    that have not been written anew go too. Until then what was there before is left as it is.
    """
    folder = Path(os.path.realpath(target))
    with hold_folder(folder, mark):
        new = Path(tempfile.mkdtemp(prefix=_NEW + locks.name_machine(), dir=folder))
        leaving.note(new)
        try:
            yield new
            written = new / mark
            if not written.exists():
                raise EluteError(f"'{target}': another process has removed what was being written; write it again")
            (folder / mark).unlink(missing_ok=True)
            for name in files:
                if (new / name).exists():
                    (new / name).replace(folder / name)
                else:
                    (folder / name).unlink(missing_ok=True)
            written.replace(folder / mark)
        finally:
            shutil.rmtree(new, ignore_errors=True)
            leaving.forget(new)


@contextmanager
def hold_folder(folder: Path, mark: str) -> Iterator[None]:
    """Be the only process that writes to a folder, which is made where it is not there."""
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    busy = f"'{folder}' is being written by another process; wait for it, or name another folder"
    try:
        with locks.hold(folder / name_lock(mark), busy):
            _sweep(folder)
            yield
    finally:
        if made:
            with suppress(OSError):  # there is something in it
                folder.rmdir()


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed have left."""
    for left in folder.glob(f"{_NEW}{'[0-9a-f]' * 8}*"):
        with suppress(OSError):
            machine = left.name.removeprefix(_NEW)[:8]
            if locks.is_abandoned(machine, left.lstat().st_mtime):
                shutil.rmtree(left)
