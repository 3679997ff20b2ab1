"""The folder for what is needed only for a while: private to this user.

It is removed when it is no longer needed. A process that is killed cannot do that: so it holds a lock in its folder,
which the system releases in any case, and the next process that needs such a folder beside it removes those without
one.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from elute._util import leaving, locks
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
    leaving.note(made)

    def remove() -> None:
        shutil.rmtree(made, ignore_errors=True)
        leaving.forget(made)
        with suppress(OSError):
            os.close(lock)

    return made, remove


def settle(made: Path) -> None:
    """Of such a folder, once it has another name and stays: without the lock."""
    (made / _LOCK).unlink()


@contextmanager
def open_folder(spill: str | Path | None = None) -> Iterator[Path]:
    """Such a folder, until this is left."""
    made, remove = make_folder(spill)
    try:
        yield made
    finally:
        remove()


def keep_folder(name: str) -> Path | None:
    """A folder for what later processes of this user need too, where the system keeps such things; None where there is
    none that nobody else can write to: what lies in it is trusted."""
    try:
        kept = Path(tempfile.gettempdir()) / f"{_PREFIX}{name}-{locks.name_user()}"
        kept.mkdir(0o700, exist_ok=True)
        known = kept.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(known.st_mode) and locks.is_own(known) and not stat.S_IMODE(known.st_mode) & 0o077
    return kept if private else None


def _lock_folder(made: Path) -> int:
    """Locked before it has the name by which others find it."""
    before = made / f"{_LOCK}.new"
    lock = locks.take(before, 0o600)
    if lock is None:
        raise FileExistsError(None, "somebody else writes there")
    before.write_text(locks.name_machine())
    before.rename(made / _LOCK)
    return lock


def _sweep(parent: Path) -> None:
    """Remove this user's folders whose process is gone."""
    for left in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), locks.claim_abandoned(left) as claimed:
            if claimed and not left.parent.is_symlink():
                shutil.rmtree(left.parent, ignore_errors=True)
