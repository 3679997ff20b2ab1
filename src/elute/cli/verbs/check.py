"""`elute check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from elute._util.text import format_number
from elute.cli.ending import NOT_RECOVERABLE
from elute.cli.options import adds_bounds, reads_log
from elute.cli.text import print_json
from elute.cli.types import PathType, typed
from elute.progress import Progress
from elute.results.invocation import Invocation

if TYPE_CHECKING:
    from elute.log import ClickLog

_EPILOG = """\b
Examples:
  elute check demo/broken.parquet
  elute check demo/layouts.parquet --bias 'position + device + layout' --explore
  elute check demo/sound.parquet --precision
  elute check demo/sound.parquet --model ubm --session session_id
  elute check demo/sound.parquet --item doc_id --json
  elute check demo/broken.parquet --bounds --monotone position

\b
Exit code: 0 estimable (known or loose), 3 not (linked or apart); --require sets another bar;
1 the log cannot be used, 2 wrong usage.
"""


@click.command(epilog=_EPILOG)
@reads_log
@click.option("--plan", type=PathType(dir_okay=False), help="Check as if this repair plan had been carried out.")
@click.option("--explore", is_flag=True, help="Also check every subset of the bias columns.")
@click.option("--curve", is_flag=True, help="Also check random samples of the log, from 1% to all of it.")
@click.option("--precision", is_flag=True, help="Also report how precisely propensities are determined, and by what.")
@click.option(
    "--model",
    type=typed("model"),
    metavar="MODEL",
    help="Also for affine (trust bias) or vector:D clicks; with --session for ubm, dbn, ccm, dcm, sdbn or cascade.",
)
@click.option(
    "--target-log-se",
    type=typed("target_log_se"),
    default=0.1,
    show_default=True,
    help="A propensity is known when its logarithm has this standard error: 0.1 is within 20%, with 95% confidence.",
)
@click.option(
    "--require",
    type=click.Choice(["linked", "estimable", "known"]),
    default="estimable",
    show_default=True,
    help="Exit with 3 below this.",
)
@adds_bounds
@click.option("--propensities", type=PathType(), help="Bounds, with ratios known from a fit's folder or a table.")
@click.option(
    "--seed", type=typed("seed"), default=0, show_default=True, help="Seed for what --curve and --model draw."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def check(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    plan: str | None,
    explore: bool,
    curve: bool,
    precision: bool,
    model: str | None,
    target_log_se: float,
    require: Literal["linked", "estimable", "known"],
    bounds: bool,
    monotone: tuple[str, ...],
    at_most: tuple[str, ...],
    propensities: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Can relevance be recovered from this log, for which queries, and how much of it is known?

    LOG is one or more paths, globs or folders of Parquet, CSV or NDJSON files (gzip too), a table
    (duckdb://file.db#table, postgres://user@host/db#schema.table), or Parquet at s3:// or https://. Each row is an
    impression: a result shown to a user, clicked or not.
    """
    from rich.console import Console

    from elute.cli.pages import check as page
    from elute.cli.pages import generic
    from elute.known.precision import TARGET
    from elute.verbs.check import check as run

    verdict = run(
        log,
        plan=plan,
        explore=explore,
        curve=curve,
        precision=precision,
        model=model,
        target_log_se=target_log_se,
        bounds=bounds,
        monotone=monotone,
        at_most=at_most,
        propensities=propensities,
        seed=seed,
        progress=progress,
    )
    if as_json:
        print_json(verdict.to_json())
    else:
        words = [] if target_log_se == TARGET else ["--target-log-se", format_number(target_log_se)]
        words += [] if require == "estimable" else ["--require", require]
        page.show(Console(), verdict, call, page.Given(plan, tuple(words)))
        if verdict.generic is not None:
            generic.show(Console(), verdict.generic)
    if not verdict.reaches(require):
        click.get_current_context().exit(NOT_RECOVERABLE)
