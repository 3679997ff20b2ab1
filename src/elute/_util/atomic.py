"""A file is written whole or not at all, whoever else writes to the same place.

What is written goes to a temporary name beside the target and is renamed to it at the end. Links are followed; devices
and pipes, which cannot be replaced without harm, are written to once everything is there.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from elute._util import leaving, locks, scratch
from elute.errors import EluteError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


@contextmanager
def write_atomically(target: Path) -> Iterator[Path]:
    """A temporary file that becomes the target once this is left without an error.

    What processes that were killed have left of earlier attempts is removed.
    """
    if is_stream(target):
        with scratch.open_folder() as folder:
            temporary = folder / target.name
            yield temporary
            with _open_stream(target) as stream, temporary.open("rb") as written:
                shutil.copyfileobj(written, stream)
        return
    place = Path(os.path.realpath(target))
    mode = _find_mode(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place)
    temporary, lock = _make_temporary(place)
    leaving.note(temporary)
    try:
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(place)
    except OSError as error:
        if error.errno in _FULL:
            said = f"no space is left on the disk for '{place.name}'; free some, or write to another place"
            raise EluteError(said) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)
        leaving.forget(temporary)
        os.close(lock)


def is_stream(target: Path) -> bool:
    """Whether a target is a device, a pipe, or what a process was given open: not a file to replace."""
    if _find_descriptor(target) is not None:
        return True
    try:
        kind = target.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def _find_descriptor(target: Path) -> int | None:
    """The number of what is open already: opened by its name once more, it would be written from its beginning."""
    name = str(target)
    matched = _DESCRIPTOR.fullmatch(name)
    return int(matched[1]) if matched else _STANDARD.get(name)


def _open_stream(target: Path) -> BinaryIO:
    descriptor = _find_descriptor(target)
    if descriptor is None:
        return cast(BinaryIO, target.open("wb", buffering=0))
    sys.stdout.flush()
    return cast(BinaryIO, os.fdopen(os.dup(descriptor), "wb", buffering=0))


def _make_temporary(place: Path) -> tuple[Path, int]:
    """A new file of a random name, and the lock on it."""
    while True:
        temporary = place.with_name(f".{place.name}.{locks.name_machine()}{secrets.token_hex(4)}.tmp")
        try:
            lock = locks.take(temporary)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(place)) from None  # not the temporary's name
        if lock is not None:
            return temporary, lock


def _sweep(place: Path) -> None:
    for left in place.parent.glob(f".{glob.escape(place.name)}.{'[0-9a-f]' * 16}.tmp"):
        with suppress(OSError), locks.claim_abandoned(left, left.name[-20:-12]) as claimed:
            if claimed:
                left.unlink()


def _find_mode(place: Path) -> int | None:
    """The permissions of the file that is to be replaced; one that must not be written to is not replaced either."""
    try:
        mode = stat.S_IMODE(place.stat().st_mode)
    except FileNotFoundError:
        return None
    if not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
    return mode
