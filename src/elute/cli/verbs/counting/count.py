"""`elute count`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from elute.cli.options import reads_log
from elute.cli.text import print_json
from elute.cli.types import PathType, typed
from elute.progress import Progress
from elute.results.invocation import Invocation

if TYPE_CHECKING:
    from elute.log import ClickLog

_EPILOG = """\b
Examples:
  elute count demo/sound.parquet --out counts
  elute check counts
  elute fit counts --out fit

\b
  elute count demo/sound.parquet --append --key day=2026-11-13 --out daily
  elute count demo/sound.parquet --append --key day=2026-11-14 --drop 'day < 2026-11-01' --out daily
  elute check daily --last 1
"""


@click.command(epilog=_EPILOG)
@partial(reads_log, own=("drop",))
@click.option("--out", required=True, type=PathType(file_okay=False), help="Folder to write the counts to.")
@click.option("--from-cells", is_flag=True, help="LOG is what the statement of 'elute sql' gave, as Parquet.")
@click.option("--append", is_flag=True, help="Add LOG to the folder as a part; all parts are then read as one log.")
@click.option(
    "--key",
    type=typed("key"),
    metavar="NAME=VALUE",
    help="With --append: what the part is called; one of that name is replaced.  [default: the log's name]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def count(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    out: str,
    append: bool,
    key: str | None,
    drop: str | None,
    as_json: bool,
) -> None:
    """Count a log once; then give the folder of counts to the other verbs in its place.

    The counts remember the columns and filters they were made with and the files they were made from, and are
    refused when those have changed. With --append the folder grows by a part, and --drop removes parts from it.
    """
    from elute.verbs.counting.count import count as run

    found = run(log, out, append=append, key=key, drop=drop, progress=progress)
    if as_json:
        print_json(found.to_json())
        return
    click.echo(found.sentence)
    click.echo(f"Next: elute check {out}")
