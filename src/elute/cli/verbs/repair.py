"""`elute repair`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elute.cli.continuing import continues_plan
from elute.cli.ending import NOT_RECOVERABLE
from elute.cli.options import reads_log
from elute.cli.text import print_json
from elute.cli.types import PathType, typed
from elute.errors import EluteError
from elute.progress import Progress, silent
from elute.results.invocation import Invocation

if TYPE_CHECKING:
    from elute.checking.check import Check
    from elute.log import ClickLog
    from elute.repair.plan import MergePlan, ScorePlan, SwapPlan

_EPILOG = """\b
Examples:
  elute repair demo/broken.parquet --method merge --out merge.json
  elute check demo/broken.parquet --plan merge.json
  elute repair demo/broken.parquet --method swap --max-position-change 2 --out swap.json
  elute simulate --data docs/data/letor.txt --sessions 5000 --out scored.parquet
  elute repair scored.parquet --method score --score score --out score.json
  elute repair --continue swap.json --log demo/sound.parquet --out swap2.json
"""

_OPTIONS = (
    click.option("--method", type=click.Choice(["merge", "swap", "score"]), required=True, help="How to repair it."),
    click.option("--out", type=PathType(dir_okay=False), help="Where to write the plan."),
    click.option("--date", help="Kept in the plan as it is given."),
    click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else."),
    click.option(
        "--bias-features",
        metavar="COL[,COL]|TABLE",
        help="What makes two factors alike: bias columns, or a Parquet or CSV table of vectors keyed by bias columns.  "
        "[default: all bias columns]",
    ),
    click.option(
        "--weights",
        type=typed("weights"), metavar="COL=W[,COL=W]",
        help="Weights of bias features.  [default: 10 for positions beside other features, else 1]",
    ),
    click.option(
        "--relevance",
        metavar="COL|FILE",
        help="swap: relevance of items, from a column or a file.  [default: fitted under a merge plan]",
    ),
    click.option(
        "--propensity",
        metavar="COL|FILE",
        help="Propensities of factors, likewise. With merge they give what they imply and the error bound.",
    ),
    click.option("--prefer", type=typed("prefer"), default="cost", show_default=True,
                 help="merge: the pairs of least total cost, or those whose longest path distorts least."),
    click.option("--queries", type=PathType(dir_okay=False), metavar="FILE",
                 help="merge: where to write, as Parquet, by how much factors must differ to flip each query's order."),
    click.option("--target-se", type=typed("target_se"), default=0.1, show_default=True,
                 help="swap: standard error wanted of a new link's log-propensity ratio."),
    click.option("--max-position-change", type=typed("max_position_change"),
                 help="swap: how far an item may be moved."),
    click.option("--only-positions", type=typed("only_positions"), metavar="N[,N]",
                 help="swap: where items may be shown."),
    click.option("--exclude-items", metavar="FILE", help="swap: items to leave where they are, by some item columns."),
    click.option("--min-impressions", type=typed("min_impressions"), default=0, show_default=True,
                 help="swap: what an item needs under the factor it is known from."),
    click.option("--fixed", type=typed("fixed"), metavar="COL[,COL]",
                 help="swap: bias columns that no item can change.  "
                 "[default: what is part of the item, or never varies within a page]"),
    click.option("--movable", type=typed("movable"), metavar="COL[,COL]",
                 help="swap: bias columns that an item can change, beside positions."),
    click.option("--share", type=typed("share"), default=0.1, show_default=True,
                 help="swap: how many of a query's pages may be changed."),
    click.option("--days", type=typed("days"),
                 help="swap: how long it may take.  [default: as long as the log did]"),
    click.option("--log-days", type=typed("log_days"), help="swap: how many days the log covers."),
    click.option("--top", type=typed("top"), default=10, show_default=True,
                 help="swap: results that are shuffled by the design it is compared with."),
    click.option("--export", type=PathType(dir_okay=False), metavar="FILE",
                 help="swap: the plan as .json or .csv for an experimentation system."),
    click.option("--score", type=typed("score"), metavar="COL[,COL]",
                 help="score: what results were ranked by."),
    click.option("--score-scale", type=typed("score_scale"), default="raw", show_default=True,
                 help="score: as it is, standardised within queries, or their ranks."),
    click.option("--labels", type=PathType(dir_okay=False),
                 help="score: items and their grade, to test the score by."),
    click.option("--budget", type=typed("budget"), metavar="N", help="swap: impressions to spend in all."),
    click.option("--objective", type=typed("objective"), default="max", show_default=True,
                 help="swap: which standard error a budget reduces."),
)  # fmt: skip


def _add_options(command: Any) -> Any:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(epilog=_EPILOG)
@continues_plan
@reads_log
@_add_options
def repair(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    method: str,
    out: str | None,
    as_json: bool,
    export: str | None,
    prefer: str,
    queries: str | None,
    **given: Any,
) -> None:
    """What is the cheapest thing that makes this log recoverable?

    merge (offline): pairs of factors that are alike enough to share one propensity, so that all components
    are connected. The price is an error where the two are not seen equally often.

    swap (online): the few items to show elsewhere, so that clicks tie everything together. No error, but users must be
    shown them. Items move within pages of their query, at places that these pages have, on a share of them.

    score (offline): the score that results were ranked by puts all components on one scale. Ratios within come from
    items as far as these know them. The price is an assumption, which is tested: that the score is all that ties
    relevance to factors.
    """
    from rich.console import Console

    from elute._util.files import write_parquet
    from elute.checking.check import check
    from elute.cli.pages import repair as page

    verdict = check(log, progress=progress)
    plan: MergePlan | SwapPlan | ScorePlan
    if method == "score":
        plan = _link(verdict, progress, **given)
    elif method == "merge":
        plan = _merge(verdict, prefer=prefer, consequence=True, progress=progress, **given)
        if queries is not None:
            write_parquet(queries, plan.flips)
    else:
        plan = _swap(verdict, progress, **given)
    if out is not None:
        plan.save(out)
    if export is not None:
        _export(plan, export)
    if as_json:
        print_json(plan.to_json())
    else:
        page.show(Console(), plan, call, out)
    if plan.components_after > 1 or getattr(plan, "parts_after", 1) > 1:
        click.get_current_context().exit(NOT_RECOVERABLE)


def _merge(
    check: Check,
    bias_features: str | None,
    weights: dict[str, float] | None,
    propensity: str | None,
    date: str | None,
    prefer: Any = "cost",
    consequence: bool = False,
    progress: Progress = silent,
    **_: Any,
) -> MergePlan:
    """Without the consequence it is a plan to fit swaps under."""
    from elute.verbs.repair import merge

    return merge(
        check,
        bias_features=bias_features,
        weights=weights,
        propensity=propensity,
        prefer=prefer,
        consequence=consequence,
        date=date,
        progress=progress,
    )


def _link(
    check: Check,
    progress: Progress,
    score: str | None,
    score_scale: Any,
    labels: str | None,
    date: str | None,
    **_: Any,
) -> ScorePlan:
    from elute.verbs.repair import link

    if score is None:
        raise EluteError("--method score needs --score: the column that results were ranked by")
    return link(check, score, score_scale=score_scale, labels=labels, date=date, progress=progress)


def _swap(
    check: Check,
    progress: Progress,
    relevance: str | None,
    propensity: str | None,
    only_positions: list[float] | None,
    fixed: str | None,
    movable: str | None,
    **given: Any,
) -> SwapPlan:
    from elute.verbs.repair import swap

    alike = given["bias_features"] is not None or given["weights"] is not None
    return swap(
        check,
        relevance,
        propensity,
        only_positions=only_positions,
        fixed=_parse_columns(fixed),
        movable=_parse_columns(movable),
        first=_merge(check, **{**given, "propensity": None}) if alike and relevance is None else None,
        progress=progress,
        **{name: value for name, value in given.items() if name not in _NOT_OF_SWAPS},
    )


_NOT_OF_SWAPS = ("bias_features", "weights", "score", "score_scale", "labels")


def _export(plan: MergePlan | SwapPlan | ScorePlan, path: str) -> None:
    from elute.repair.plan import SwapPlan
    from elute.repair.swapping.export import export_swaps

    if not isinstance(plan, SwapPlan):
        raise EluteError("--export writes swaps; this plan changes a fit, not what is shown")
    export_swaps(plan, path)


def _parse_columns(given: str | None) -> list[str]:
    return [] if given is None else [name.strip() for name in given.split(",")]
