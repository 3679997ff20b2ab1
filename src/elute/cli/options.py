"""What every verb that reads a log shares: the LOG argument, the column roles, and opening the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from elute.cells.roles import DEFAULT_BIAS, DEFAULT_CLICK, DEFAULT_DOC, DEFAULT_QUERY
from elute.cli.types import MemoryType, PathType, typed
from elute.results.invocation import DEFAULTS, Invocation

if TYPE_CHECKING:
    from elute.log import ClickLog

FILES = PathType(readable=False)
"""File names, completed in a shell; globs and tables too, so whether one can be read is said when it is."""

_FILTERS = (
    click.option(
        "--where",
        type=typed("where"),
        metavar="SQL",
        help="Read only rows for which this is true, as in \"device = 'phone'\".",
    ),
    click.option("--max-position", type=typed("max_position"), metavar="N", help="Read only positions up to N."),
    click.option(
        "--min-factor-impressions",
        type=typed("min_factor_impressions"),
        metavar="N",
        help="Read only factors with at least N impressions, after the other filters.",
    ),
)
"""Which rows of a log to read."""

_COLUMNS = (
    click.option(
        "--doc", type=typed("doc"), metavar="COL", default=DEFAULT_DOC, show_default=True, help="The document's id."
    ),
    click.option(
        "--item",
        type=typed("item"),
        metavar="COL[,COL]",
        help="What relevance belongs to; feature columns too, as in 'feature_*'.  [default: query,doc]",
    ),
    click.option(
        "--bias",
        type=typed("bias"),
        metavar="COL[,COL]",
        default=DEFAULT_BIAS,
        show_default=True,
        help="What may decide whether a result is seen; or a formula, as in 'position + device'.",
    ),
    click.option(
        "--click",
        type=typed("click"),
        metavar="COL",
        default=DEFAULT_CLICK,
        show_default=True,
        help="0/1, true/false, or a count.",
    ),
    click.option(
        "--impressions",
        type=typed("impressions"),
        metavar="COL",
        help="For logs already aggregated: impressions of each row.",
    ),
    click.option(
        "--session",
        type=typed("session"),
        metavar="COL",
        help="The id of a page or a user: whose clicks depend on each other.",
    ),
)
"""What columns mean, but for the query's."""

_OPTIONS = (
    click.argument("sources", metavar="LOG...", nargs=-1, required=True, type=FILES),
    click.option(
        "--query", type=typed("query"), metavar="COL", default=DEFAULT_QUERY, show_default=True, help="The query's id."
    ),
    *_COLUMNS,
    *_FILTERS,
    click.option(
        "--last",
        type=typed("last"),
        metavar="N",
        help="Of a folder that --append wrote: the last N parts.",
    ),
    click.option(
        "--drop", type=typed("drop"), metavar="COND", help="Of such a folder: without parts as in 'day < 2026-10-17'."
    ),
    click.option("--exact", is_flag=True, help="Tell items apart by value, not by a 64-bit hash. Slower."),
    click.option(
        "--memory",
        metavar="SIZE",
        type=MemoryType(),
        help="Use at most this much, as in 2GB; the rest goes to --spill.  [default: what the cells need]",
    ),
    click.option(
        "--spill",
        type=typed("spill"),
        metavar="DIR",
        help="Folder for what does not fit into memory.  [default: the system's]",
    ),
    click.option(
        "--threads",
        type=typed("threads"),
        metavar="N",
        help="Cores to use at most.  [default: those that the process may use]",
    ),
    click.option("--engine", type=typed("engine"), default="duckdb", show_default=True, help="Where to count."),
)

_BOUNDS = (
    click.option("--bounds", is_flag=True, help="Also bound what components leave open, and the pairs that orders."),
    click.option(
        "--monotone",
        type=typed("monotone"),
        metavar="COL[,COL]",
        multiple=True,
        help="Bounds, assuming that nothing is seen more often as COL grows, the other bias columns being equal.",
    ),
    click.option(
        "--at-most",
        type=typed("at_most"),
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


def names_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say what columns mean, but for the query's."""
    for option in reversed(_COLUMNS):
        command = option(command)
    return command


def reads_log(command: Callable[..., None], own: tuple[str, ...] = ()) -> Callable[..., None]:
    """Give a command the options above; it receives the opened log, the invocation and a progress callback. `own`:
    those that it receives too, and that say nothing of the log."""

    @wraps(command)
    def wrapped(sources: tuple[str, ...], **given: Any) -> None:
        from elute.cli.progress import Reporter
        from elute.log import read_log

        read: Callable[..., ClickLog] = read_log
        if given.pop("from_cells", False):
            from elute.verbs.source import read_cells

            read = read_cells
        kept = {option: given[option] for option in own}
        options = {option: given.pop(option) for option in DEFAULTS} | {option: DEFAULTS[option] for option in own}
        with Reporter() as progress, read(list(sources) if len(sources) > 1 else sources[0], **options) as log:
            command(log=log, call=Invocation(sources, options), progress=progress, **given, **kept)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def parse_settings(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE, where a value is JSON, or else text."""
    found = {}
    for setting in given:
        key, sign, value = setting.partition("=")
        if not sign:
            raise click.BadParameter(f"'{setting}' is not NAME=VALUE", param=option)
        try:
            found[key.replace("-", "_")] = json.loads(value)
        except (ValueError, RecursionError):
            found[key.replace("-", "_")] = value
    return found
