"""What verbs take in place of a check or of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from elute.checking.check import Check, check
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.log import ClickLog, LogOptions, LogSource, as_log
from elute.progress import Progress, silent


def as_check(
    source: LogSource | Check,
    progress: Progress = silent,
    target_log_se: float | None = None,
    **options: Unpack[LogOptions],
) -> Check:
    """A check, or a log that is checked now; with a `target_log_se`, for how precisely its clicks settle things."""
    if isinstance(source, Check):
        if options:
            raise EluteError("the log was checked already, with its own columns; give these to `elute.check`")
        return source
    return check(as_log(source, **options), target_log_se=target_log_se, progress=progress)


def name_source(source: object) -> object:
    """What the user named, where it may have been opened already."""
    return source.source if isinstance(source, ClickLog) else source.folder if isinstance(source, Fit) else source


def as_paths(given: str | Path | Sequence[str | Path] | None) -> tuple[str, ...]:
    """One path, several or none, as a tuple."""
    if given is None:
        return ()
    return (str(given),) if isinstance(given, str | Path) else tuple(map(str, given))
