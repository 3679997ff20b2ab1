"""How much log is enough: what `elute check --curve` prints of logs of other sizes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from elute.checking.growth import Stage
from elute.checking.probability import Point
from elute.cli.text import format_count, format_share


def tabulate_curve(curve: Sequence[Point]) -> Table:
    """Whether smaller logs are linked."""
    heads = ("share", "impressions", "linked", "estimate", "paper's estimate", "components", "factors")
    table = _make_table("How much log is linked", heads)
    for point in curve:
        table.add_row(
            f"{point.share:.0%}",
            format_count(round(point.impressions)),
            format_share(point.probability),
            format_share(point.estimate),
            format_share(point.estimate_paper),
            f"{point.components:,.1f}",
            f"{point.factors:,.1f}",
        )
    samples = max((point.samples for point in curve), default=0)
    table.caption = (
        f"linked: share of {samples} random samples with all factors, in one component; estimate: if items met "
        "factors at random; paper's: its Example 2; components and factors: means over the samples"
    )
    return table


def tabulate_stages(stages: Sequence[Stage], impressions: int) -> Table:
    """How much is known from smaller logs and would be from larger ones."""
    heads = ("share", "impressions", "median error", "largest error", "pairs certain", "pairs right")
    table = _make_table("How much log is enough", heads)
    for stage in stages:
        table.add_row(
            f"{stage.share:.0%}" if stage.share <= 1 else f"× {stage.share:g}",
            format_count(round(stage.share * impressions)),
            *(_format_error(error) for error in (stage.median_log_se, stage.largest_log_se)),
            *(format_share(share) for share in (stage.queries_ordered_share, stage.pairs_right_share)),
        )
    table.caption = (
        "errors: standard errors of log propensities; pairs of items of a query: certain at 95%, and expected in the "
        "right order. Larger logs: the same items, shown so much more often"
    )
    return table


def _make_table(title: str, heads: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(head, justify="right", header_style="dim")
    table.caption_justify = "left"
    return table


def _format_error(error: float | None) -> str:
    return "–" if error is None else f"{error:.2g}"
