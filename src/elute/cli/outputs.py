"""Before a verb reads anything, what it is to write is compared with what it is to read: no result is written over an
input, or over another result."""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import click

OUTPUTS = ("out", "export", "queries", "charts", "prometheus")
"""Options that name what is written. Any other may name what is read, but for the folder for spills."""

FOLDERS = ("count", "fit", "judge", "train", "value")
"""Verbs whose --out is, or can be, a folder of several files, in which no input may lie."""

STORES = ("count",)
"""Verbs whose --out may be in an object store."""


def guard(command: click.Command) -> click.Command:
    """Have a command look at its paths first."""
    run = command.callback
    if run is None:
        return command

    @wraps(run)
    def look_first(**given: Any) -> Any:
        _look(command, given)
        return run(**given)

    command.callback = look_first
    return command


def _look(command: click.Command, given: dict[str, Any]) -> None:
    from elute._util.paths import refuse_harm, refuse_same, require_names

    for param in command.params:
        if isinstance(param.type, click.Path):
            require_names(given.get(param.name or ""))
    written = {name: given[name] for name in OUTPUTS if given.get(name) is not None}
    inputs = list(_list_inputs(command, given))
    for name, target in written.items():
        stores = name == "out" and command.name in STORES
        refuse_harm(target, inputs, name, name == "out" and command.name in FOLDERS, stores)
        refuse_same(target, {other: path for other, path in written.items() if other != name}, name)


def _list_inputs(command: click.Command, given: dict[str, Any]) -> Iterator[object]:
    """Paths, and whatever else names a file that is there: --relevance takes a column or a file."""
    for param in command.params:
        value = given.get(param.name or "")
        if param.name == "folder" and command.name in ("rank", "export"):
            yield from _list_ranker(value)
            continue
        if param.name not in (*OUTPUTS, "spill") and (isinstance(param.type, click.Path) or _is_there(value)):
            yield value


def _list_ranker(folder: object) -> Iterator[object]:
    """Scores, and other forms of a ranker, may lie beside it."""
    from elute.verbs.rank import list_read

    yield from list_read(str(folder))


def _is_there(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(value.strip()) and Path(value).exists()
    except (OSError, ValueError):
        return False
