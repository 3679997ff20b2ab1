"""The folder for what is needed only while a log is open.

It is removed when the log is closed. A process that is killed cannot do that: so it holds a lock in its folder, which
the system releases in any case, and the next process that needs such a folder beside it removes those without one.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from elute.errors import EluteError

_PREFIX = "elute-"
_LOCK = ".elute-in-use"


def make_folder(spill: str | Path | None) -> tuple[Path, Callable[[], None]]:
    """A new folder in `spill`, or where the system keeps such things, and what removes it."""
    try:
        made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=spill))
        lock = _lock_folder(made)
    except OSError as error:
        failed = f"cannot write to '{spill or tempfile.gettempdir()}': {error.strerror}"
        raise EluteError(f"{failed}; name a folder that can be written to") from error
    _sweep(made.parent)

    def remove() -> None:
        shutil.rmtree(made, ignore_errors=True)
        with suppress(OSError):
            os.close(lock)

    return made, remove


def _lock_folder(made: Path) -> int:
    """Locked before it has the name by which others find it."""
    before = made / f"{_LOCK}.new"
    lock = os.open(before, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    with suppress(OSError):  # on disks that know no locks nothing is swept either
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        before.write_text(platform.node())
        before.rename(made / _LOCK)
    return lock


def _sweep(parent: Path) -> None:
    """Remove this user's folders whose process is gone."""
    for left in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError):
            if left.parent.lstat().st_uid != os.geteuid() or left.read_text() != platform.node():
                continue  # locks may not reach another machine
            lock = os.open(left, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left.parent, ignore_errors=True)
            finally:
                os.close(lock)
