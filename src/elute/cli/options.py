"""What every verb that reads a log shares: the LOG argument, the column roles, and opening the log."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from elute.cells.roles import DEFAULT_BIAS, DEFAULT_CLICK, DEFAULT_DOC, DEFAULT_QUERY
from elute.results.invocation import DEFAULTS, Invocation

NOT_RECOVERABLE = 3
"""Exit code of a verb that ran and found, or left, the log not recoverable."""

FILES = click.Path(readable=False)
"""File names, completed in a shell; globs and tables too, so whether one can be read is said when it is."""

_UNITS = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class Bytes(int):
    """An amount of memory that prints as it was written."""

    written: str

    def __str__(self) -> str:
        return self.written


def parse_bytes(written: str) -> Bytes | None:
    """2GB, 512M, 1.5GiB; None for what is not an amount of memory."""
    matched = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", written.strip().upper())
    if not matched:
        return None
    found = Bytes(float(matched[1]) * _UNITS[matched[2]])
    found.written = written
    return found


def _parse_memory(_: click.Context, option: click.Parameter, value: str | None) -> Bytes | None:
    if value is not None and parse_bytes(value) is None:
        raise click.BadParameter(f"'{value}' is not an amount of memory; write 2GB or 512MB", param=option)
    return None if value is None else parse_bytes(value)


_FILTERS = (
    click.option("--where", metavar="SQL", help="Read only rows for which this is true, as in \"device = 'phone'\"."),
    click.option("--max-position", type=click.IntRange(min=0), metavar="N", help="Read only positions up to N."),
    click.option(
        "--min-factor-impressions",
        type=click.IntRange(min=1),
        metavar="N",
        help="Read only factors with at least N impressions, after the other filters.",
    ),
)
"""Which rows of a log to read."""

_OPTIONS = (
    click.argument("sources", metavar="LOG...", nargs=-1, required=True, type=FILES),
    click.option("--query", metavar="COL", default=DEFAULT_QUERY, show_default=True, help="The query's id."),
    click.option("--doc", metavar="COL", default=DEFAULT_DOC, show_default=True, help="The document's id."),
    click.option(
        "--item",
        metavar="COL[,COL]",
        help="What relevance belongs to; feature columns too, as in 'feature_*'.  [default: query,doc]",
    ),
    click.option(
        "--bias",
        metavar="COL[,COL]",
        default=DEFAULT_BIAS,
        show_default=True,
        help="What may decide whether a result is seen.",
    ),
    click.option(
        "--click",
        metavar="COL",
        default=DEFAULT_CLICK,
        show_default=True,
        help="0/1, true/false, or a count.",
    ),
    click.option("--impressions", metavar="COL", help="For logs already aggregated: impressions of each row."),
    click.option("--session", metavar="COL", help="The id of a page or a user: whose clicks depend on each other."),
    *_FILTERS,
    click.option("--exact", is_flag=True, help="Tell items apart by value, not by a 64-bit hash. Slower."),
    click.option(
        "--memory",
        metavar="SIZE",
        callback=_parse_memory,
        help="Use at most this much, as in 2GB; the rest goes to --spill.  [default: what the cells need]",
    ),
    click.option("--spill", metavar="DIR", help="Folder for what does not fit into memory.  [default: the system's]"),
    click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Cores to use at most.  [default: those that the process may use]",
    ),
    click.option(
        "--engine", type=click.Choice(["duckdb", "spark"]), default="duckdb", show_default=True, help="Where to count."
    ),
)

_BOUNDS = (
    click.option("--bounds", is_flag=True, help="Also bound what components leave open, and the pairs that orders."),
    click.option(
        "--monotone",
        metavar="COL[,COL]",
        multiple=True,
        help="Bounds, assuming that nothing is seen more often as COL grows, the other bias columns being equal.",
    ),
    click.option(
        "--at-most",
        metavar="EXPR",
        multiple=True,
        help="Bounds, assuming that one factor is seen at most as often as another: 'position=2 <= position=1'.",
    ),
)
"""What to assume across components."""


def adds_bounds(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that bound what lies in different components."""
    for option in reversed(_BOUNDS):
        command = option(command)
    return command


def adds_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which rows of a log to read."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def reads_log(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above; it receives the opened log, the invocation and a progress callback."""

    @wraps(command)
    def wrapped(sources: tuple[str, ...], **given: Any) -> None:
        from elute.cli.progress import Reporter
        from elute.log import read_log

        options = {option: given.pop(option) for option in DEFAULTS}
        with (
            Reporter() as progress,
            read_log(list(sources) if len(sources) > 1 else sources[0], **options) as log,
        ):
            command(log=log, call=Invocation(sources, options), progress=progress, **given)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped
