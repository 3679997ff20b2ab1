"""`elute value`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elute.cli.options import FILES, reads_log
from elute.cli.text import print_json
from elute.cli.types import PathType, of_kind, typed
from elute.cli.verbs.simulate import POLICIES
from elute.options.kinds import SHARE
from elute.progress import Progress
from elute.results.invocation import Invocation

if TYPE_CHECKING:
    from elute.log import ClickLog

ESTIMATORS = ("model", "ips", "ips-clipped", "snips", "dr")
"""As in `elute.valuing.worth.estimators`, which is slow to import; a test compares the two."""

_EPILOG = """\b
Examples:
  elute fit demo/sound.parquet --out fit
  elute value demo/sound.parquet --fit fit --ranking docs/data/new_ranking.csv --out value
  elute value demo/sound.parquet --fit fit --ranking docs/data/new_ranking.csv --cluster query_id --switch
  elute simulate --data docs/data/letor.txt --sessions 5000 --out clicks.parquet
  elute fit clicks.parquet --out clicks-fit
  elute value clicks.parquet --fit clicks-fit --policy noisy-oracle --data docs/data/letor.txt --missing logged

\b
A ranking has the columns query_id, doc_id and score (higher is better, as 'elute rank' writes) or rank. Exit code: 0
valued, whatever the verdict; 1 something cannot be used, 2 wrong usage.
"""


@click.command(epilog=_EPILOG)
@reads_log
@click.option("--fit", metavar="DIR", required=True, type=PathType(), help="A folder 'elute fit' wrote, of this log.")
@click.option("--ranking", "rankings", multiple=True, type=FILES, help="A ranking: query_id, doc_id, score or rank.")
@click.option(
    "--policy",
    multiple=True,
    type=click.Choice([name for name in POLICIES if name != "scores"]),
    help="A policy of the simulator, which ranks the documents of --data.",
)
@click.option("--data", multiple=True, type=FILES, help="--policy: LETOR/SVMlight files, or an ULTRA folder.")
@click.option(
    "--estimator", type=click.Choice(ESTIMATORS), default="snips", show_default=True, help="What comes first."
)
@click.option(
    "--clip",
    type=of_kind(SHARE),
    metavar="TAU",
    help="The least propensity that weights take.  [default: 1/√ of an item's impressions]",
)
@click.option(
    "--cluster",
    type=typed("cluster"),
    metavar="COL",
    help="Within what clicks depend; the query, for other queries.  [default: --session]",
)
@click.option(
    "--missing",
    type=click.Choice(["refuse", "logged"]),
    default="refuse",
    show_default=True,
    help="Queries that a ranking lacks: logged lets them keep what was shown.",
)
@click.option("--scores", type=FILES, help="Of a ranker, for documents never shown: query_id, doc_id, score.")
@click.option(
    "--under", metavar="DIR", multiple=True, type=PathType(), help="A fit of a session model: value by it too."
)
@click.option("--bootstrap", type=typed("bootstrap"), metavar="B", help="Intervals from B draws of the log, too.")
@click.option("--seed", type=typed("seed"), default=0, show_default=True, help="Of draws and policies.")
@click.option("--at", type=typed("at"), default=10, show_default=True, help="Places of nDCG, DCG, success.")
@click.option("--switch", is_flag=True, help="Also say how large an A/B test would have to be.")
@click.option("--out", type=PathType(file_okay=False), help="Folder to write value.json and queries.parquet to.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def value(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    fit: str,
    rankings: tuple[str, ...],
    out: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """What would another ranking earn: expected clicks a page, with error bars, and what cannot be told.

    Rankings fill the places of the log's own pages. What was shown is valued by its clicks; the others by relevance
    and propensities of the fit, where these are on one scale. Queries of which that is not so are counted, and bounded.
    """
    from rich.console import Console

    from elute.cli.pages import value as page
    from elute.verbs.value import value as run

    found = run(log, fit, list(rankings), progress=progress, **options)
    if out is not None:
        found.save(out)
    if as_json:
        print_json(found.to_json())
        return
    page.show(Console(), found.to_dict(), out)
