"""Who is still at work: locks, which the system releases when a process ends, however it ends.

They hold between the containers of one machine too, which may share a disk but not the numbers of their processes.
Between machines they hold only where the disk's server keeps them: so what another machine has begun is taken for
abandoned only after a week. All calls for which elute needs POSIX are here.
"""

from __future__ import annotations

import fcntl
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

from elute.errors import EluteError

_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_PAUSE = 0.05
_ABANDONED = 7 * 24 * 3600
"""Seconds."""


@cache
def name_machine() -> str:
    """Eight digits that all processes and containers of this machine agree on, until it is started anew."""
    try:
        name = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        name = platform.node()
    return blake2b(name.encode(), digest_size=4).hexdigest()


def take(path: Path, mode: int = 0o666) -> int | None:
    """The lock on a file, which is made where it is not there; None where somebody else has it. `os.close` gives it
    back. On disks that know no locks everybody gets it."""
    descriptor = os.open(path, os.O_CREAT | _FLAGS, mode)
    try:
        with suppress(OSError):
            if not _try_lock(descriptor):
                os.close(descriptor)
                return None
        if os.path.samestat(os.fstat(descriptor), path.lstat()):
            return descriptor
    except FileNotFoundError:
        pass
    os.close(descriptor)  # whoever had it has removed the file since it was opened
    return None


@contextmanager
def hold(path: Path, busy: str, patience: float = 0) -> Iterator[None]:
    """Have the lock at `path`, a file that is there only meanwhile; refuse with `busy` where somebody else has it, for
    `patience` seconds and more."""
    end = time.monotonic() + patience
    while (descriptor := take(path)) is None and time.monotonic() < end:
        time.sleep(_PAUSE)
    if descriptor is None:
        raise EluteError(busy)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def share(folder: Path) -> int | None:
    """Keep others from having a folder alone, until what this gives is closed; None on disks that know no locks."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def try_alone(folder: Path) -> Iterator[bool]:
    """Whether nobody shares a folder, nor begins to within this; on disks that know no locks nobody ever does."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        alone = True
        with suppress(OSError):
            alone = _try_lock(descriptor)
        yield alone
    finally:
        os.close(descriptor)


def name_user() -> str:
    """This user's number."""
    return str(os.geteuid())


def is_own(known: os.stat_result) -> bool:
    """Whether something belongs to this user."""
    return known.st_uid == os.geteuid()


def is_abandoned(machine: str, changed: float) -> bool:
    """Whether no other machine can be at work any more on what `machine` changed then; this one's locks say the
    rest."""
    return machine == name_machine() or time.time() - changed > _ABANDONED


@contextmanager
def claim_abandoned(path: Path, machine: str | None = None) -> Iterator[bool]:
    """Whether nobody is at work any more on what this file stands for, and nobody begins to within this. `machine`: the
    one that began; by default the file says. What belongs to other users is left alone, and so are links."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        yield False
        return
    try:
        known = os.fstat(descriptor)
        machine = machine or os.read(descriptor, 8).decode(errors="replace")
        ours = is_own(known) and is_abandoned(machine, known.st_mtime)
        yield ours and _try_lock(descriptor)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
