"""A section on what other rankings would earn, from the fields of `elute value --json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elute._util.text import format_count, format_share, to_one_line
from elute.reporting.charts.looks import (
    BAD,
    GOOD,
    INK,
    WARN,
    chart,
    name_field,
    number_field,
    separate_labels,
    tooltip,
)
from elute.reporting.parts import Block, Figure, Grid, Note, Section, Spec
from elute.results.card import Tone
from elute.valuing.value import describe_ranking

Fields = Mapping[str, Any]

_TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "cannot tell": "warn"}
_COLOURS = {"better": GOOD, "worse": BAD, "cannot tell": WARN}
_WIDTH = 600


def value_section(fields: Fields) -> Section:
    """Candidates side by side, what groups of queries add, who wins and loses, and what is not valued."""
    rankings = fields["rankings"][1:]
    lead = " ".join(to_one_line(describe_ranking(row, fields), _WIDTH) for row in rankings)
    blocks: list[Block] = [_tabulate(fields["rankings"])]
    if any(row["difference"] is not None for row in rankings):
        blocks += [_draw_intervals(rankings), _draw_waterfall(rankings)]
    blocks += [_tabulate_queries(row) for row in rankings if row["by_query"] and _list_queries(row)]
    for row in rankings:
        for reason, lost in row["unvalued"].items():
            share = format_share(lost["pages_share"])
            words = f"{format_count(lost['queries'])} queries ({share} of the pages) are not valued, {reason}"
            low, high = (_number(row[f"difference_{end}"], "+.4g") for end in ("worst", "best"))
            reach = f"over all pages the difference lies between {low} and {high}"
            blocks.append(Note(f"{to_one_line(row['name'])}: {words.replace('_', ' ')}; {reach}.", "warn"))
    blocks += [Note(f"By {fields['estimator']}, if {fields['assumption']}.")]
    blocks += [Note(f"Note: {to_one_line(note, _WIDTH)}.") for note in fields["notes"]]
    return Section("value", "What would another ranking earn?", lead, blocks)


def _tabulate(rows: list[Fields]) -> Grid:
    table = []
    for at, row in enumerate(rows):
        apart = "" if at == 0 else _range(row["difference"], row["difference_low"], row["difference_high"], "+.4g")
        metrics = [_number((row["metrics"] or {}).get(name, {}).get("value"), ".3f") for name in ("ndcg", "success")]
        ends = "" if at == 0 else format_share(row["valued_share"])
        value = _range(row["value"], row["low"], row["high"], ".4g")
        table.append((to_one_line(row["name"]), value, apart, *metrics, ends, "" if at == 0 else row["verdict"]))
    head = ("ranking", "clicks a page", "difference", "nDCG", "success", "valued", "verdict")
    marks: list[Tone] = ["calm", *(_TONES[row["verdict"]] for row in rows[1:])]
    return Grid(head, table, numeric=head[1:6], caption="With 95% intervals.", marks=marks)


def _draw_intervals(rankings: list[Fields]) -> Figure:
    rows = [
        {
            "label": f"{to_one_line(row['name'], 40)}, {one['estimator']}",
            "value": one["difference"],
            "low": one["difference_low"],
            "high": one["difference_high"],
            "verdict": one["verdict"],
            "text": _range(one["difference"], one["difference_low"], one["difference_high"], "+.4g"),
        }
        for row in rankings
        for one in row["estimators"]
        if one["difference"] is not None
    ]
    along = number_field("value", "difference of clicks a page from what was shown")
    down = name_field("label", axis={"domain": False, "ticks": False, "labelColor": INK, "labelLimit": 260})
    colour = name_field("verdict", scale={"domain": list(_COLOURS), "range": list(_COLOURS.values())})
    layers: list[Spec] = [
        {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"x": {"datum": 0, "type": "quantitative"}}},
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": down, "x": {**along, "field": "low"}, "x2": {"field": "high"}, "color": colour},
        },
        {
            "mark": {"type": "circle", "size": 90, "opacity": 1},
            "encoding": {
                "y": down,
                "x": along,
                "color": colour,
                "tooltip": tooltip(label="ranking", text="difference"),
            },
        },
    ]
    return Figure(
        "value-intervals",
        "Each ranking against what was shown, by every estimator",
        chart(separate_labels(rows), 26 * len(rows) + 30, layers),
        "The difference of expected clicks a page, with intervals that hold at once for all rankings with 95% "
        "confidence.",
        "An interval that crosses 0 does not tell which is better. Estimators that differ rest on different "
        "assumptions: "
        "model on the prior of relevance, ips and snips on the click model alone.",
    )


def _draw_waterfall(rankings: list[Fields]) -> Figure:
    rows = []
    for row in rankings:
        at = 0.0
        for one in row["groups"] or ():
            rows.append(
                _step(row["name"], f"{one['group']} ({format_count(one['queries'])} queries)", at, one["difference"])
            )
            at += one["difference"]
        rows.append(_step(row["name"], "all", 0.0, at))
    along = number_field("begin", "difference of clicks a page")
    down = name_field("label", axis={"domain": False, "ticks": False, "labelColor": INK, "labelLimit": 260})
    colour = name_field("sign", scale={"domain": ["gains", "loses"], "range": [GOOD, BAD]})
    bars: Spec = {
        "mark": {"type": "bar", "height": 16},
        "encoding": {
            "y": down,
            "x": along,
            "x2": {"field": "end"},
            "color": colour,
            "tooltip": tooltip(label="queries", text="adds"),
        },
    }
    return Figure(
        "value-groups",
        "Where the difference comes from",
        chart(separate_labels(rows), 24 * len(rows) + 30, [bars]),
        "What queries add to the difference, one group after the other: the head has as few queries as make a third "
        "of the "
        "pages, the middle as few again, the tail all others.",
        "Bars start where the one above ends; the last is their sum.",
    )


def _step(name: str, group: str, begin: float, amount: float) -> dict[str, Any]:
    sign = "gains" if amount >= 0 else "loses"
    label = f"{to_one_line(name, 40)}: {group}"
    return {"label": label, "begin": begin, "end": begin + amount, "sign": sign, "text": f"{amount:+.4g}"}


def _list_queries(row: Fields) -> list[tuple[str, Fields]]:
    found = row["by_query"]
    return [*(("wins", one) for one in found["most_winners"]), *(("loses", one) for one in found["most_losers"])]


def _tabulate_queries(row: Fields) -> Grid:
    found = row["by_query"]
    rows = [
        (
            to_one_line(one["query"], 60),
            word,
            format_count(one["pages"]),
            _number(one["difference"], "+.3g"),
            _number(one["se"], ".2g"),
            _number(one["q_value"], ".2g"),
        )
        for word, one in _list_queries(row)
    ]
    caption = (
        f"{to_one_line(row['name'])}: of {format_count(found['tested'])} queries tested "
        f"{format_count(found['winners'])} win and "
        f"{format_count(found['losers'])} lose; {found['false_discovery']:.0%} of these at most are wrong, in "
        "expectation. "
        "Those that most is gained or lost by."
    )
    marks: list[Tone] = ["good" if word == "wins" else "bad" for word, _ in _list_queries(row)]
    head = ("query", "", "pages", "difference", "error", "q")
    return Grid(head, rows, numeric=head[2:], caption=caption, marks=marks)


def _range(value: float | None, low: float | None, high: float | None, form: str) -> str:
    return f"{_number(value, form)} ({_number(low, form)} to {_number(high, form)})"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
