"""The page `elute value` prints: the verdict on each ranking, its figures, what is not valued, and what would settle
it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute.cli.spelling import spell
from elute.cli.text import format_count, format_share, to_one_line
from elute.valuing.value import describe_ranking, format_number

Fields = Mapping[str, Any]

_STYLES = {"better": "green", "worse": "red", "cannot tell": "yellow"}

_REASONS = {
    "never_shown": "documents that were never shown",
    "other_component": "documents shown only under other components' factors",
    "place_not_known": "places whose propensity is not known",
    "no_estimate": "documents whose clicks leave their relevance open",
}


def show(console: Console, fields: Fields, out: str | None) -> None:
    """Print the page; `out`: the folder that was written."""
    rows = fields["rankings"]
    for row in rows[1:]:
        text = Text(to_one_line(describe_ranking(row, fields), 400), style=f"bold {_STYLES[row['verdict']]}")
        console.print(Padding(text, (1, 2, 0, 2)))
    console.print(Padding(_tabulate(rows), (1, 2, 0, 2)))
    console.print(Padding(_tabulate_estimators(rows), (1, 2, 1, 2)))
    for line in _list_lines(fields):
        console.print(Padding(Text(line), (0, 2)))
    for note in fields["notes"]:
        console.print(Padding(Text(f"- {to_one_line(spell(note), 300)}", style="dim"), (0, 2)))
    if out is not None:
        console.print(Padding(Text(f"Written to {to_one_line(out, 200)}: value.json, queries.parquet."), (0, 2)))
    console.print(Text.assemble(("\n  Next: ", "bold"), spell(fields["next"])), soft_wrap=True)


def _tabulate(rows: list[Fields]) -> Table:
    """A row a ranking, what was shown first."""
    table = _make_table("ranking", "clicks a page", "95%", "difference", "95%", "valued", "")
    for at, row in enumerate(rows):
        ends = _range(row, "low", "high", ".4g")
        apart, between, share, verdict = "", "", "", Text("")
        if at:
            apart, between = (
                _number(row["difference"], "+.4g"),
                _range(row, "difference_low", "difference_high", "+.3g"),
            )
            share, verdict = format_share(row["valued_share"]), Text(row["verdict"], style=_STYLES[row["verdict"]])
        table.add_row(
            Text(to_one_line(row["name"])), _number(row["value"], ".4g"), ends, apart, between, share, verdict
        )
    return table


def _tabulate_estimators(rows: list[Fields]) -> Table:
    """The difference by each estimator, then of each metric."""
    table = _make_table("ranking", "by", "value", "difference", "95%", "")
    for row in rows[1:]:
        metrics = [{"estimator": name, **one} for name, one in (row["metrics"] or {}).items()]
        for at, one in enumerate([*row["estimators"], *metrics]):
            verdict = Text(one["verdict"], style=_STYLES[one["verdict"]])
            ends = _range(one, "difference_low", "difference_high", "+.3g")
            figures = _number(one["value"], ".4g"), _number(one["difference"], "+.4g"), ends
            table.add_row(Text("" if at else to_one_line(row["name"])), one["estimator"], *figures, verdict)
    return table


def _list_lines(fields: Fields) -> list[str]:
    """What else is to be said, a line each."""
    lines = [f"By {fields['estimator']}, if {fields['assumption']}."]
    if fields["knowledge"]:
        lines.append(f"The fit: {fields['knowledge']}")
    for row in fields["rankings"][1:]:
        name = to_one_line(row["name"])
        for reason, lost in row["unvalued"].items():
            share = format_share(lost["pages_share"])
            lost_of = f"{format_count(lost['queries'])} queries ({share} of the pages)"
            lines.append(f"{name}, not valued: {lost_of}, {_REASONS[reason]}.")
        if row["by_query"]:
            lines.append(f"{name}, {_describe_queries(row['by_query'])}")
        if "bootstrap" in row:
            drawn = row["bootstrap"]
            ends = f"{_number(drawn['low'], '+.4g')} to {_number(drawn['high'], '+.4g')}"
            ratio = f"{_number(drawn['se'], '.3g')}, by the delta method {_number(drawn['delta_se'], '.3g')}"
            lines.append(f"{name}, {drawn['replicates']:,} draws: {ends}; standard error {ratio}.")
        if "switch" in row:
            lines.append(f"{name}, {_describe_switch(row['switch'])}")
    for pair in fields["between"]:
        apart = _bracket(pair, "difference", "difference_low", "difference_high", "+.4g")
        lines.append(f"{to_one_line(pair['ranking'])} over {to_one_line(pair['over'])}: {apart}, {pair['verdict']}.")
    for one in fields["under"]:
        each = ", ".join(f"{to_one_line(row['name'])} {_number(row['difference'], '+.4g')}" for row in one["rankings"])
        lines.append(f"By {one['model']}, where {format_number(one['logged'])} clicks a page were expected: {each}.")
    return lines


def _describe_queries(found: Fields) -> str:
    """Winners and losers, with the largest of each."""
    level = f"{found['false_discovery']:.0%} of these wrong at most, in expectation"
    out = f"of {found['tested']:,} queries tested {found['winners']:,} win and {found['losers']:,} lose ({level})."
    for word in ("winners", "losers"):
        if found[f"most_{word}"]:
            some = ", ".join(f"{to_one_line(q['query'], 30)} {q['difference']:+.3g}" for q in found[f"most_{word}"][:3])
            out += f" Most {'gained' if word == 'winners' else 'lost'}: {some}."
    return out


def _describe_switch(test: Fields) -> str:
    if test["pages_each_arm"] is None:
        return "no test would see a difference of 0."
    left = "none is left to be seen" if not test["pages_left"] else f"{test['pages_left']:,} are left"
    return (
        f"an A/B test would take {test['pages_each_arm']:,} pages in each arm to see this difference (power "
        f"{test['power']:.0%}); the evidence at hand is worth {format_count(test['evidence_pages'])}: {left}."
    )


def _make_table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    name, *figures = columns
    table.add_column(name, no_wrap=True)
    for column in figures:
        table.add_column(column, justify="right", overflow="fold")
    return table


def _range(row: Fields, low: str, high: str, form: str) -> str:
    return f"{_number(row[low], form)} to {_number(row[high], form)}"


def _bracket(row: Fields, value: str, low: str, high: str, form: str) -> str:
    return f"{_number(row[value], form)} [{_number(row[low], form)}, {_number(row[high], form)}]"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
