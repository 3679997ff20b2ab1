"""Types of options: words of the command line, read by what `elute.options` declares for the library."""

from __future__ import annotations

import math
import os
import re
from typing import Any

import click

from elute._util.text import to_one_line
from elute.options.kinds import LARGEST, Kind, Number, OneOf, Text, Whole
from elute.options.table import OPTIONS


def typed(name: str) -> click.ParamType[Any]:
    """The type of the option that the library calls so."""
    return of_kind(OPTIONS[name])


def of_kind(kind: Kind) -> click.ParamType[Any]:
    """The type of an option of this kind."""
    if isinstance(kind, Whole):
        return _WholeType(kind)
    if isinstance(kind, OneOf):
        return click.Choice(kind.words)
    return _NumberType(kind) if isinstance(kind, Number) else _WordType(kind)


class _WholeType(click.IntRange):
    """Shows its range in the help, as click's own does."""

    def __init__(self, kind: Whole) -> None:
        super().__init__(kind.least, None if kind.most == LARGEST else kind.most)
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return _convert(self, self.kind, value, param, ctx)


class _NumberType(click.FloatRange):
    def __init__(self, kind: Number) -> None:
        least = None if kind.least == -math.inf else kind.least
        most = None if kind.most == math.inf else kind.most
        super().__init__(least, most, min_open=kind.open[0], max_open=kind.open[1])
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return _convert(self, self.kind, value, param, ctx)


class _WordType(click.ParamType):  # type: ignore[type-arg]
    name = "text"

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return _convert(self, self.kind, value, param, ctx)


class PathType(click.Path):
    """A path; what no file can be called is refused before anything is asked of the system."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            Text().take(os.fspath(value))
        except ValueError:
            self.fail(f"{to_one_line(repr(value), 60)} is no name of a file or folder", param, ctx)
        return super().convert(value, param, ctx)


class Bytes(int):
    """An amount of memory that prints as it was written."""

    written: str

    def __str__(self) -> str:
        return self.written


class MemoryType(click.ParamType):  # type: ignore[type-arg]
    """2GB, 512M, 1.5GiB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Bytes:
        matched = re.fullmatch(r"(\d{1,20}(?:\.\d{1,15})?)\s*([KMGT]?)(?:I?B)?", str(value).strip().upper(), re.ASCII)
        try:
            found = Bytes(OPTIONS["memory"].take(int(float(matched[1]) * _UNITS[matched[2]]) if matched else None))
        except ValueError:
            self.fail(f"{to_one_line(repr(value), 60)} is not an amount of memory; write 2GB or 512MB", param, ctx)
        found.written = str(value)
        return found


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def _convert(
    to: click.ParamType[Any], kind: Kind, value: Any, param: click.Parameter | None, ctx: click.Context | None
) -> Any:
    try:
        return kind.read(value) if isinstance(value, str) else kind.take(value)
    except ValueError:
        to.fail(f"{to_one_line(repr(value), 60)}; give {kind.wanted}", param, ctx)
