"""`elute check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elute.cli.options import NOT_RECOVERABLE, Invocation, reads_log
from elute.progress import Progress

if TYPE_CHECKING:
    from elute.log import ClickLog

_EPILOG = """\b
Examples:
  elute check log.parquet
  elute check 'logs/*.csv.gz' --bias position,device --explore
  elute check duckdb://clicks.db#log --item doc_id --json

\b
Exit code: 0 recoverable, 3 not recoverable, 1 the log cannot be used, 2 wrong usage.
"""


@click.command(epilog=_EPILOG)
@reads_log
@click.option("--plan", type=click.Path(dir_okay=False), help="As if this repair plan had been carried out.")
@click.option("--explore", is_flag=True, help="Also check every subset of the bias columns.")
@click.option("--curve", is_flag=True, help="Also check random samples of the log, from 1% to all of it.")
@click.option("--seed", default=0, show_default=True, help="Seed of the samples drawn by --curve.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def check(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    plan: str | None,
    explore: bool,
    curve: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Can relevance be recovered from this log, and for which queries?

    LOG is one or more paths, globs or folders of Parquet, CSV or NDJSON files (gzip too), or
    duckdb://file.db#table. Each row is an impression: a result shown to a user, clicked or not.
    """
    from rich.console import Console

    from elute.cli import check_page
    from elute.identify.check import check as run
    from elute.repair.plan import load

    links = load(plan) if plan is not None else None
    verdict = run(log, plan=links, explore=explore, curve=curve, seed=seed, progress=progress)
    if as_json:
        click.echo(verdict.to_json())
    else:
        check_page.show(Console(), verdict, call)
    if not verdict.recoverable:
        click.get_current_context().exit(NOT_RECOVERABLE)
