"""`elute repair`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elute.cli.options import NOT_RECOVERABLE, Invocation, reads_log
from elute.errors import EluteError
from elute.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

    from elute.identify.check import Check
    from elute.log import ClickLog
    from elute.repair.plan import MergePlan, SwapPlan

_EPILOG = """\b
Examples:
  elute repair demo/broken.parquet --method merge --out merge.json
  elute check demo/broken.parquet --plan merge.json
  elute repair demo/broken.parquet --method swap --max-position-change 2 --out swap.json
"""

_OPTIONS = (
    click.option("--method", type=click.Choice(["merge", "swap"]), required=True, help="How to mend the log."),
    click.option("--out", type=click.Path(dir_okay=False), help="Where to write the plan."),
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
        metavar="COL=W[,COL=W]",
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
        help="Propensities of factors, likewise. With merge they give the error bound.",
    ),
    click.option("--target-se", type=click.FloatRange(min=0, min_open=True), default=0.1, show_default=True,
                 help="swap: standard error wanted of a new link's log-propensity ratio."),
    click.option("--max-position-change", type=click.FloatRange(min=0), help="swap: how far an item may be moved."),
    click.option("--only-positions", metavar="N[,N]", help="swap: where items may be shown."),
    click.option("--exclude-items", metavar="FILE", help="swap: items to leave where they are, by some item columns."),
    click.option("--min-impressions", type=click.IntRange(min=0), default=0, show_default=True,
                 help="swap: what an item needs under the factor it is known from."),
    click.option("--budget", type=click.IntRange(min=1), metavar="N", help="swap: impressions to spend in all."),
    click.option("--objective", type=click.Choice(["max", "mean"]), default="max", show_default=True,
                 help="swap: which standard error a budget is to reduce."),
)  # fmt: skip


def _options(command: Any) -> Any:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(epilog=_EPILOG)
@reads_log
@_options
def repair(
    log: ClickLog, call: Invocation, progress: Progress, method: str, out: str | None, as_json: bool, **given: Any
) -> None:
    """What is the cheapest thing that makes this log recoverable?

    merge (offline): pairs of factors that are alike enough to share one propensity, so that all components
    hang together. The price is an error where the two are not seen alike.

    swap (online): the few items to show elsewhere, so that all components hang together. No error, but
    users must be shown them.
    """
    import json

    from rich.console import Console

    from elute.cli import repair_page
    from elute.identify.check import check

    verdict = check(log, progress=progress)
    plan = _merge(verdict, **given) if method == "merge" else _swap(verdict, progress, **given)
    if out is not None:
        plan.save(out)
    if as_json:
        click.echo(json.dumps(plan.to_dict(), ensure_ascii=False))
    else:
        repair_page.show(Console(), plan, call, out)
    if plan.components_after > 1:
        click.get_current_context().exit(NOT_RECOVERABLE)


def _merge(
    check: Check, bias_features: str | None, weights: str | None, propensity: str | None, date: str | None, **_: Any
) -> MergePlan:
    from elute.repair import known
    from elute.repair.merging import merge

    columns, vectors = _features(check, bias_features)
    o = known.propensity(check, propensity) if propensity is not None else None
    return merge(check, features=columns, vectors=vectors, weights=_weights(weights), propensity=o, date=date)


def _swap(
    check: Check,
    progress: Progress,
    relevance: str | None,
    propensity: str | None,
    only_positions: str | None,
    exclude_items: str | None,
    max_position_change: float | None,
    min_impressions: int,
    **given: Any,
) -> SwapPlan:
    from elute.engines.sources import Source
    from elute.repair import known
    from elute.repair.intervention import Constraints, swap

    constraints = Constraints(
        max_position_change=max_position_change,
        only_positions=_numbers(only_positions),
        exclude_items=Source(exclude_items).table() if exclude_items is not None else None,
        min_impressions=min_impressions,
    )
    if (relevance is None) != (propensity is None):
        raise EluteError("give both --relevance and --propensity, or neither (then both are fitted)")
    r = o = first = None
    if relevance is not None and propensity is not None:
        r, o = known.relevance(check, relevance), known.propensity(check, propensity)
    else:
        first = _merge(check, **{**given, "propensity": None})
    options = {name: given[name] for name in ("target_se", "budget", "objective", "date")}
    return swap(check, r, o, constraints=constraints, first=first, progress=progress, **options)


def _features(check: Check, given: str | None) -> tuple[list[str] | None, pa.Table | None]:
    """Names of bias columns, or a table read from a file."""
    if given is None:
        return None, None
    names = [name.strip() for name in given.split(",")]
    if all(name in check.log.roles.bias for name in names):
        return names, None
    from elute.engines.sources import Source

    return None, Source(given).table()


def _weights(given: str | None) -> dict[str, float] | None:
    if given is None:
        return None
    weights = {}
    for part in given.split(","):
        name, _, weight = part.partition("=")
        try:
            weights[name.strip()] = float(weight)
        except ValueError:
            raise EluteError(f"--weights takes COL=NUMBER, not '{part}'") from None
    return weights


def _numbers(given: str | None) -> list[float] | None:
    try:
        return None if given is None else [float(part) for part in given.split(",")]
    except ValueError:
        raise EluteError(f"--only-positions takes numbers, not '{given}'") from None
