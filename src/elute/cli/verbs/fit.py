"""`elute fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elute.cli.ending import NOT_RECOVERABLE
from elute.cli.options import adds_bounds, reads_log
from elute.cli.text import print_json
from elute.cli.types import PathType, typed
from elute.progress import Progress
from elute.results.invocation import Invocation

if TYPE_CHECKING:
    from elute.log import ClickLog

MODELS = (
    "pbm", "affine", "em", "dla", "two-tower", "harvest", "harvest-pivot", "score-adjusted", "ipw", "affine-ipw",
    "naive", "ctr",
)  # fmt: skip
"""As in `elute.estimate.models.registry`, which is slow to import; a test compares the two."""

SESSION_MODELS = ("dctr", "rdctr", "cascade", "dcm", "ccm", "ubm", "sdbn", "dbn", "ncm", "cacm")
"""As in `elute.clicks`, less the pbm that is among the others; they read whole pages and need --session."""

_EPILOG = """\b
Examples:
  elute fit demo/sound.parquet --model pbm --out fit
  elute fit demo/broken.parquet --plan demo/merge.json --out fit
  elute fit demo/sound.parquet --bootstrap 200 --cluster query_id --out fit
  elute fit demo/sound.parquet --model ipw --propensities fit --clip 0.05 --out weighted
  elute fit demo/sound.parquet --model dbn --session session_id --out browsed
  elute fit demo/broken.parquet --bounds --monotone position --out bounded
  elute fit demo/sound.parquet --model ubm --session session_id --holdout 0.2
  elute fit demo/sound.parquet --warm fit --out tomorrow

\b
Exit code: 0 done, 3 the log is apart or not estimable (see --plan, --bounds, --allow-unidentified), 1 it cannot be
used.
"""


@click.command(epilog=_EPILOG)
@reads_log
@click.option(
    "--model", type=click.Choice((*MODELS, *SESSION_MODELS)), default="pbm", show_default=True, help="What to fit."
)
@click.option(
    "--plan", type=PathType(dir_okay=False), help="A merge plan, whose factors share one propensity, or a score plan."
)
@click.option("--out", type=PathType(file_okay=False), help="Folder to write the fit to.")
@click.option("--seed", type=typed("seed"), help="Seed for random starts and draws.  [default: 0]")
@click.option("--tolerance", type=typed("tolerance"), help="When to stop.  [default: the model's]")
@click.option("--max-iter", type=typed("max_iter"), help="Iterations at most.  [default: the model's]")
@click.option("--prior", type=typed("prior"), help="pbm: neighbouring factors are alike.  [default: none]")
@click.option(
    "--relevance-prior",
    type=typed("relevance_prior"),
    help="pbm: a Beta prior fitted to all items.  [default: auto, where items have few clicks]",
)
@click.option("--propensities", type=PathType(), help="ipw, affine-ipw, --bounds: a fit's folder, or a table.")
@click.option(
    "--warm", type=PathType(file_okay=False), help="pbm: an earlier fit's folder to start from, such as yesterday's."
)
@click.option(
    "--clip", metavar="TAU|auto", type=typed("clip"), help="ipw, affine-ipw: propensities count as at least TAU."
)
@click.option("--self-normalised", is_flag=True, default=None, help="ipw, affine-ipw: divide by what clipping leaves.")
@click.option("--policy-aware", is_flag=True, default=None, help="ipw, affine-ipw: average an item's propensities.")
@click.option("--score", type=typed("score"), metavar="COL[,COL]", help="score-adjusted: what results were ranked by.")
@click.option(
    "--score-scale",
    type=typed("score_scale"),
    help="score-adjusted: as it is, standardised within queries, or their ranks.  [default: raw]",
)
@click.option(
    "--labels", type=PathType(dir_okay=False), help="score-adjusted: items and their grade, to test the score by."
)
@click.option(
    "--bootstrap",
    type=typed("bootstrap"),
    metavar="B",
    help="pbm, score-adjusted: error bars from B draws of clusters.",
)
@click.option(
    "--cluster", type=typed("cluster"), metavar="COL", help="pbm: what --bootstrap draws.  [default: the query]"
)
@adds_bounds
@click.option(
    "--holdout",
    type=typed("holdout"),
    metavar="SHARE",
    help="Fit without this share of the log, and say how well that share is predicted.",
)
@click.option("--by", type=typed("by"), help="What --holdout holds out.  [default: session]")
@click.option(
    "--time", type=typed("time"), metavar="COL", help="When a page was shown, for --by time.  [default: timestamp]"
)
@click.option("--allow-unidentified", is_flag=True, help="Continue with a log that is apart or not estimable.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def fit(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    model: str,
    plan: str | None,
    out: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Propensities of factors and relevance of items, with standard errors.

    Within a component the largest propensity that is measured well is 1, and relevance is at that scale. A log that is
    apart is refused unless a plan repairs it, and one whose clicks do not determine all propensities. The
    baselines naive and ctr take any log.
    """
    from rich.console import Console

    from elute.cli.pages import fit as page
    from elute.errors import NotEstimable, NotRecoverable
    from elute.reporting.ways import suggest_plan
    from elute.verbs.fit import fit as run

    try:
        found = run(log, model, plan, progress=progress, **options)
    except NotEstimable as refused:
        check = call.command("check")
        click.echo(f"elute: not estimable: {refused.reason} What is missing: {check}", err=True)
        click.get_current_context().exit(NOT_RECOVERABLE)
    except NotRecoverable as refused:
        repair, _ = suggest_plan(call, refused.components, log.survey.factors.num_rows)
        click.echo(
            f"elute: not recoverable: {refused.components:,} components. Repair the log first: {repair}", err=True
        )
        click.get_current_context().exit(NOT_RECOVERABLE)
    if out is not None:
        found.save(out)
    if as_json:
        print_json(found.to_json())
        return
    page.show(Console(), found, call, out)
    if out is not None:
        page.show_next_step(Console(), call, out)
