"""Whatever stands for a log, as a log: a path, a table, a folder of counts, counts in memory, or a log itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from elute.cells.counts import Counts
from elute.cells.roles import Columns
from elute.checking.check import Check, check
from elute.engines.in_memory import InMemoryEngine
from elute.errors import EluteError
from elute.log import ClickLog, read_log
from elute.progress import Progress, silent

LogSource = object
"""A `ClickLog`, `Counts`, path, glob, folder, address, list of them, or a pandas, polars or Arrow table: libraries that
elute does not import have no type to name here."""


class LogOptions(TypedDict, total=False):
    """How to read what is not a log yet: the parameters of `elute.read_log`."""

    query: str
    doc: str
    item: Columns | None
    bias: Columns
    click: str
    impressions: str | None
    session: str | None
    engine: str
    exact: bool
    memory: int | None
    spill: str | Path | None


def as_log(source: LogSource, **options: Unpack[LogOptions]) -> ClickLog:
    """The log that `source` stands for. Columns are named where a log is opened: one that is open keeps its own."""
    if isinstance(source, ClickLog | Counts):
        if options:
            named = ", ".join(f"`{name}=`" for name in options)
            raise EluteError(f"{named}: the log was read already, with its own columns; give these to `elute.read_log`")
        if isinstance(source, ClickLog):
            return source
        engine = InMemoryEngine(source)
        return ClickLog(engine, engine.roles, source, {})
    return read_log(list(source) if isinstance(source, tuple) else source, **options)


def as_check(source: LogSource | Check, progress: Progress = silent, **options: Unpack[LogOptions]) -> Check:
    """A check, or a log that is checked now."""
    if isinstance(source, Check):
        if options:
            raise EluteError("the log was checked already, with its own columns; give these to `elute.check`")
        return source
    return check(as_log(source, **options), progress=progress)


def as_paths(given: str | Path | Sequence[str | Path] | None) -> tuple[str, ...]:
    """One path, several or none, as a tuple."""
    if given is None:
        return ()
    return (str(given),) if isinstance(given, str | Path) else tuple(map(str, given))


def only_given(options: dict[str, Any]) -> dict[str, Any]:
    """Without those that were left at None: what is to stay at a model's own choice."""
    return {name: value for name, value in options.items() if value is not None}
