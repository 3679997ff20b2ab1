"""What a merge plan does to relevance: by how much ratios are off, and which queries keep their order."""

from __future__ import annotations

from elute._util.text import format_count, format_share
from elute.repair.distortion.fields import STANDARD, Consequence, find_standard
from elute.repair.plan import MergePlan
from elute.reporting.charts.looks import ACCENT, FAINT, chart, number_field, tooltip
from elute.reporting.parts import Block, Figure, Grid, Note, Spec


def show_consequence(plan: MergePlan) -> list[Block]:
    """The consequence of a plan that says it."""
    said = plan.consequence
    if said is None or not plan.pairs:
        return []
    blocks: list[Block] = [Note(said.sentence), _tabulate_distortion(said)]
    if said.queries_safe_curve is not None and said.queries_across:
        blocks.append(_draw_curve(said.queries_safe_curve, said.queries_across))
    if said.distortion_known is not None:
        blocks.append(Note(f"{said.distortion_known.sentence} {plan.bound_sentence}".strip()))
    if len(said.alternatives) > 1:
        blocks += [Note(said.comparison), _tabulate_alternatives(said)]
    return blocks


def _tabulate_distortion(said: Consequence) -> Grid:
    head = ("factors of a pair differ by", "ratios of relevances off by up to", "queries that keep their order")
    rows = [(f"{row.delta:g}", _write(row.largest), format_share(row.queries_safe_share)) for row in said.distortion]
    return Grid(head, rows, numeric=head[1:])


def _tabulate_alternatives(said: Consequence) -> Grid:
    head = ("tree of", "cost", "longest path", "its distance", "ratios off by up to", "queries that keep their order")
    rows = []
    for one in said.alternatives:
        at = find_standard(one.distortion)
        name = f"{one.name}{', this plan' if one.chosen else ''}{'' if one.exact else ' (about)'}"
        figures = (f"{one.cost:.4g}", f"{one.longest_path:,}", f"{one.longest_distance:.4g}")
        rows.append((name, *figures, _write(at.largest), format_share(at.queries_safe_share)))
    return Grid(head, rows, numeric=head[1:])


def _write(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _draw_curve(curve: tuple[dict[str, float], ...], across: int) -> Figure:
    rows = [
        {
            "delta": point["delta"],
            "share": point["queries_safe_share"],
            "text": f"{format_share(point['queries_safe_share'])} at {point['delta']:g}",
        }
        for point in curve
    ]
    axis = {"grid": False, "tickCount": 7}
    along = number_field(
        "delta", "by how much the factors of a pair differ", scale={"zero": False, "nice": False}, axis=axis
    )
    up = number_field("share", "queries that keep their order", scale={"domain": [0, 1]}, axis={"format": "%"})
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeDash": [3, 3], "color": FAINT},
            "encoding": {"x": {"datum": STANDARD, "type": "quantitative"}},
        },
        {
            "mark": {"type": "line", "point": True, "color": ACCENT},
            "encoding": {"x": along, "y": up, "tooltip": tooltip(text="in order")},
        },
    ]
    return Figure(
        "order",
        "Queries that keep their order",
        chart(rows, 220, layers),
        "The share of all queries no two items of which change places, over how much the factors of every pair differ. "
        f"{format_count(across)} queries have items in several components; all others keep their order.",
        "Where the curve is high, the merges do little harm even if the two factors of a pair are not seen alike. "
        "Where it falls at once, only swaps, or propensities from elsewhere, settle the order.",
    )
