"""`elute count`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elute.cli.options import reads_log
from elute.cli.text import print_json
from elute.cli.types import PathType
from elute.progress import Progress
from elute.results.invocation import Invocation

if TYPE_CHECKING:
    from elute.log import ClickLog

_EPILOG = """\b
Examples:
  elute count demo/sound.parquet --out counts
  elute check counts
  elute fit counts --out fit
"""


@click.command(epilog=_EPILOG)
@reads_log
@click.option("--out", required=True, type=PathType(file_okay=False), help="Folder to write the counts to.")
@click.option("--from-cells", is_flag=True, help="LOG is what the statement of 'elute sql' gave, as Parquet.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def count(log: ClickLog, call: Invocation, progress: Progress, out: str, as_json: bool) -> None:
    """Count a log once; then give the folder of counts to the other verbs in its place.

    The counts remember the columns and filters they were made with and the files they were made from, and are
    refused when those have changed.
    """
    from elute.verbs.count import count as run

    found = run(log, out, progress=progress)
    if as_json:
        print_json(found.to_json())
        return
    click.echo(found.sentence)
    click.echo(f"Next: elute check {out}")
