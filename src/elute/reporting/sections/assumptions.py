"""The evidence of `elute audit --assumptions` as charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from elute.auditing.assumptions.finding import LEVEL, Finding
from elute.reporting.charts import specs

LISTED = 20
"""Rows of a chart of intervals."""

_WIDE = 1.96
"""Standard errors on either side of a 95% interval."""


_WORDS = ("as expected", "off")


class Chart(NamedTuple):
    """A Vega-Lite spec with what it is, what it shows and how to read it."""

    title: str
    caption: str
    reading: str
    spec: specs.Spec


def draw_evidence(findings: Sequence[Finding]) -> list[Chart]:
    """What the verdicts rest on: for each finding an overview, then the clicks behind the worst parts."""
    return [chart for finding in findings for chart in _DRAWN.get(finding.name, _draw_nothing)(finding)]


def _draw_nothing(finding: Finding) -> Iterator[Chart]:
    return iter(())


def _draw_linear(finding: Finding) -> Iterator[Chart]:
    if finding.factors:
        against = finding.factors[0]["against"]
        yield Chart(
            "Offsets by factor",
            f"{finding.sentence} By factor, against {against}.",
            "A factor whose interval (95%) does not include 0 has clicks that relevance times propensity does not "
            "explain, as under trust bias. 'Off' is after correction for the number of factors (Holm).",
            _draw_intervals(
                [{**row, "se": 1.0} for row in finding.factors],
                "factor",
                "standard_errors",
                "offset in its standard errors",
            ),
        )
    if finding.panels:
        yield Chart(
            "Click rates of the items that two factors share",
            f"The pairs of factors with the strongest evidence of an offset. {finding.sentence}",
            "A point is an item, its cross one standard error each way. Under relevance times propensity the points "
            "lie along the line through the origin; under trust bias along a line that misses it.",
            _draw_panels(finding),
        )


def _draw_affine(finding: Finding) -> Iterator[Chart]:
    if finding.evidence:
        rows = [
            {
                **row,
                "times what chance leaves": row["squares"] / row["expected"],
                "verdict": _verdict_word(row["p_value"]),
            }
            for row in finding.evidence[:LISTED]
        ]
        name = "times what chance leaves"
        yield Chart(
            "Distance from the lines, by factor",
            f"Squared distances of click rates from the best affine model. {finding.sentence}",
            "1 is what chance leaves. 'Off' is after correction for the number of factors (Holm): no affine function "
            "of any relevance fits there.",
            specs.intervals(rows, label="factor", x=name, low=name, high=name, series="verdict", values=_WORDS, at=1.0),
        )
    if finding.panels:
        yield Chart(
            "Are click rates on one line?",
            f"The factors furthest from their lines, each against one it shares most items with. {finding.sentence}",
            "A point is an item, its cross one standard error each way. If clicks are an affine function of relevance "
            "all points lie on one line but for chance; a bend, or two clouds, show that they are not.",
            _draw_panels(finding),
        )


def _draw_labels(finding: Finding) -> Iterator[Chart]:
    if finding.panels:
        yield Chart(
            "Click rate against label",
            f"The factors with the strongest evidence of a bend. {finding.sentence}",
            "A point is the mean of the items of one label (a tenth of the items where labels are many), with one "
            "standard error. An affine correction can be unbiased only if the points lie on a line (Theorem 5.5).",
            _draw_panels(finding),
        )


def _draw_groups(finding: Finding) -> Iterator[Chart]:
    if finding.evidence:
        rows = [
            {**row, "pair": f"{row['a']} / {row['b']}: {row['first']} against {row['second']}"}
            for row in finding.evidence[:LISTED]
        ]
        yield Chart(
            "Position effects by group",
            finding.sentence,
            "How much larger, as a logarithm, the ratio of two propensities is in one group than in another; "
            "intervals 95%. Where they do not include 0, the groups differ; 'off' is after correction for all pairs "
            "compared (Bonferroni).",
            _draw_intervals(rows, "pair", "difference", "difference of log ratios"),
        )


def _draw_additivity(finding: Finding) -> Iterator[Chart]:
    if finding.evidence:
        rows = [
            {**row, "cell": _name_cell(row), "se": max(float(row["expected"]), 1.0) ** -0.5}
            for row in sorted(finding.evidence, key=lambda row: row["p_value"])[:LISTED]
        ]
        yield Chart(
            "Where columns act otherwise than by the product",
            finding.sentence,
            "The logarithm of clicks over those that the formula expects, where bands of two columns' values meet; "
            "intervals (95%) are of independent clicks. 'Off' is the test of the two columns as a whole, by clusters.",
            _draw_intervals(rows, "cell", "log_ratio", "log of clicks over expected"),
        )


def _name_cell(row: Mapping[str, Any]) -> str:
    """The values that meet: `position 1, 2 × device phone`."""
    columns = row["columns"].split(" × ")
    return " × ".join(f"{column} {', '.join(map(str, row[column]))}" for column in columns)


def _draw_intervals(rows: Sequence[Mapping[str, Any]], label: str, field: str, name: str) -> specs.Spec:
    drawn = [
        {
            label: row[label],
            name: row[field],
            "low": row[field] - _WIDE * row["se"],
            "high": row[field] + _WIDE * row["se"],
            "p-value, corrected": row["p_value"],
            "verdict": _verdict_word(row["p_value"]),
        }
        for row in rows[:LISTED]
    ]
    return specs.intervals(drawn, label=label, x=name, low="low", high="high", series="verdict", values=_WORDS)


def _draw_panels(finding: Finding) -> specs.Spec:
    return specs.place_side_by_side(
        *(
            specs.add_title(specs.points([dict(row) for row in p.points], x=p.x, y=p.y, straight=p.lines), p.title)
            for p in finding.panels
        )
    )


def _verdict_word(p_value: float) -> str:
    return _WORDS[p_value <= LEVEL]


_DRAWN = {
    "linear": _draw_linear,
    "affine": _draw_affine,
    "linear in labels": _draw_labels,
    "groups": _draw_groups,
    "additivity": _draw_additivity,
}
