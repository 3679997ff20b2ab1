"""`elute audit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from elute.cli.options import FILES, reads_log
from elute.cli.text import print_json
from elute.cli.types import PathType, typed
from elute.progress import Progress
from elute.results.invocation import Invocation

if TYPE_CHECKING:
    from elute.log import ClickLog

NEGATIVE = ("refuse", "zero")
ESTIMATORS = ("knn", "ksg", "copula", "dv")
"""As in `elute.auditing.cmip.metric`, which is slow to import; a test compares the two."""

_EPILOG = """\b
Examples:
  elute audit --fit demo/fits/pbm --log demo/broken.parquet
  elute audit --fit demo/fits/* --log demo/broken.parquet --labels demo/truth.csv --policy-scores demo/truth.csv
  elute audit --assumptions --log demo/sound.parquet --groups query_id --charts evidence
  elute audit --assumptions --log demo/sound.parquet --cluster session_id

\b
Exit code: 0 done, whatever the verdict; 1 something cannot be used, 2 wrong usage.
"""


def _with_log_option(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every verb that reads a log, with the log itself as an option: the argument is the fits."""
    wrapped: Any = reads_log(command)
    log = click.Option(
        ["--log", "sources"], metavar="LOG", multiple=True, required=True, type=FILES, help="Clicks to predict."
    )
    wrapped.__click_params__ = [log if param.name == "sources" else param for param in wrapped.__click_params__]
    given: Callable[..., None] = wrapped
    return given


@click.command(epilog=_EPILOG)
@click.argument("folders", metavar="[DIR...]", nargs=-1, type=PathType())
@click.option("--fit", "fits", metavar="DIR...", multiple=True, type=PathType(), help="Folders 'elute fit' wrote.")
@_with_log_option
@click.option("--labels", type=PathType(dir_okay=False), help="Items and their grade: query_id, doc_id, grade.")
@click.option(
    "--grade",
    type=typed("grade"),
    metavar="COL",
    default="grade",
    show_default=True,
    help="With --labels: the grade's column.",
)
@click.option(
    "--negative-grades",
    type=click.Choice(NEGATIVE),
    default="refuse",
    show_default=True,
    help="With --labels: what grades below 0 are; zero: not relevant.",
)
@click.option(
    "--policy-scores",
    type=PathType(dir_okay=False),
    help="What the logging policy ranked by, or ranks: query_id, doc_id, score.  [default: the log's mean positions]",
)
@click.option(
    "--shifted-log", metavar="LOG", multiple=True, type=FILES, help="Clicks under another policy, to predict too."
)
@click.option("--assumptions", is_flag=True, help="Test the click model itself on the log; needs no fit.")
@click.option(
    "--groups",
    type=typed("groups"),
    metavar="COL",
    help="With --assumptions: the column by which position effects might differ.",
)
@click.option(
    "--cluster",
    type=typed("cluster"),
    metavar="COL",
    help="With --assumptions: users or sessions, whose clicks depend on each other.  [default: clicks are independent]",
)
@click.option(
    "--charts",
    metavar="DIR",
    type=PathType(file_okay=False),
    help="With --assumptions: folder for charts of the evidence.",
)
@click.option("--estimator", type=click.Choice(ESTIMATORS), default="knn", show_default=True, help="Estimator of CMIP.")
@click.option(
    "--seed", type=typed("seed"), default=0, show_default=True, help="Seed for CMIP's permutations and redrawn clicks."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def audit(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    folders: tuple[str, ...],
    fits: tuple[str, ...],
    labels: str | None,
    grade: str,
    negative_grades: Any,
    policy_scores: str | None,
    shifted_log: tuple[str, ...],
    assumptions: bool,
    groups: str | None,
    cluster: str | None,
    charts: str | None,
    estimator: Any,
    seed: int,
    as_json: bool,
) -> None:
    """Is a fit debiased, which of several is to be trusted, and do their assumptions hold?

    Clicks are predicted (perplexity), relevance is compared with grades (nDCG), and what relevance still shares
    with the logging policy beyond the grades is measured (CMIP) and tested against what noise makes of it (excess).
    LOG as for 'elute check'.
    """
    from contextlib import ExitStack

    from rich.console import Console

    from elute.cli.pages import assumptions as tests
    from elute.cli.pages import audit as page
    from elute.log import read_log
    from elute.reporting.ways import suggest_judging
    from elute.verbs.audit import audit as run

    named = (*fits, *folders)
    if not named and not assumptions:
        raise click.UsageError("Missing option '--fit': the folder of a fit; or --assumptions.")
    for option, given in (("--groups", groups), ("--cluster", cluster), ("--charts", charts)):
        if given is not None and not assumptions:
            raise click.UsageError(f"{option} goes with --assumptions.")
    with ExitStack() as stack:
        shifted = None
        if shifted_log:
            paths = list(shifted_log)
            shifted = stack.enter_context(read_log(paths if len(paths) > 1 else paths[0], **call.options))
        found = run(
            named,
            log,
            labels=labels,
            grade=grade,
            negative_grades=negative_grades,
            policy_scores=policy_scores,
            shifted_log=shifted,
            assumptions=assumptions,
            groups=groups,
            cluster=cluster,
            estimator=estimator,
            seed=seed,
            progress=progress,
        )
    for path in [] if charts is None or found.findings is None else tests.draw_charts(charts, found.findings):
        click.echo(f"Written to {path}", err=True)
    if as_json:
        print_json(found.to_json())
        return
    if found.findings is not None:
        tests.show(Console(), found.findings)
    if found.fits is not None:
        taken = found.fits.selection.model
        page.show(Console(), found.fits, None if taken is None else suggest_judging(call, log.roles, named[taken]))
