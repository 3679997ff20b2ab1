"""Sections on an audit: is a fit debiased, which one to take, and do the click model's assumptions hold?

An audit comes as the fields of `elute audit --json`, from a file that anybody may have written: what is missing or of
another kind is refused with one line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elute._util.text import format_count, to_one_line
from elute.auditing.assumptions.finding import Finding
from elute.door.json_file import read_json
from elute.errors import EluteError
from elute.reporting.audit_kind import audit_kind
from elute.reporting.charts.looks import (
    BAD,
    GOOD,
    INK,
    WARN,
    chart,
    frame,
    name_field,
    number_field,
    position_axis,
    separate_labels,
    tooltip,
    widen,
)
from elute.reporting.parts import Block, Figure, Grid, Note, Section, Spec
from elute.reporting.sections.assumptions import draw_evidence
from elute.results.card import Tone

_TONES: dict[str, Tone] = {"pass": "good", "unknown": "warn", "fail": "bad"}
_FOUND: dict[str, Tone] = {"holds": "good", "rejected": "bad", "untestable": "calm"}
_WIDTH = 600

Fields = Mapping[str, Any]


def read_audit(path: str | Path) -> dict[str, Any]:
    """The fields of an audit from the file that `elute audit --json` was written to."""
    try:
        fields: dict[str, Any] = read_json(path, audit_kind, "what `elute.audit` writes", "run it again")
    except FileNotFoundError:
        raise EluteError(f"no audit '{path}': write one with `elute.audit`") from None
    try:
        audit_section(fields)
        assumptions_section(fields)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # rows of some test
        raise EluteError(
            f"{path} is not what `elute.audit` writes ({to_one_line(repr(error), 120)}); run it again"
        ) from None
    return fields


def audit_section(fields: Fields) -> Section | None:
    """Verdicts by model; None where the audit is of assumptions alone."""
    if "models" not in fields:
        return None
    models = fields["models"]
    selected = fields["selected"]
    head = "Take none" if selected is None else f"Take {to_one_line(selected)}"
    lead = f"{head}. {to_one_line(fields['selection']['sentence'], _WIDTH)}"
    blocks: list[Block] = [_tabulate_figures(fields)]
    if any(_has_interval(model) for model in models):
        blocks.append(_draw_cmip(models))
    if fields["positions"] is not None:
        blocks.append(_draw_perplexity(fields))
    blocks += [
        Note(f"{to_one_line(m['name'])}: {to_one_line(m['sentence'], _WIDTH)}", _TONES[m["verdict"]]) for m in models
    ]
    notes = dict.fromkeys(note for model in models for note in model["notes"])
    blocks += [Note(f"Note: {to_one_line(note, _WIDTH)}.") for note in notes]
    return Section("audit", "Can the fit be trusted?", lead, blocks)


def _tabulate_figures(fields: Fields) -> Grid:
    rows = []
    for model in fields["models"]:
        cmip = model["cmip"]
        excess = None if cmip is None else cmip.get("excess")
        rows.append(
            (
                to_one_line(model["name"]),
                to_one_line(model["model"]),
                _format_figure(model["perplexity"], 4),
                _format_figure(model["ood_perplexity"], 4),
                _format_figure(model["ndcg"], 3),
                "–" if cmip is None else f"{cmip['estimate']:.3f}",
                "–" if excess is None else f"{excess['estimate']:.3f}",
                "–" if excess is None else _format_p_value(excess["p_value"]),
                str(model["verdict"]),
            )
        )
    judged = fields["judged_items"]
    return Grid(
        ("fit", "model", "perplexity", "shifted log", "nDCG", "CMIP", "excess", "p", "verdict"),
        rows,
        numeric=("perplexity", "shifted log", "nDCG", "CMIP", "excess", "p"),
        caption=f"nDCG and CMIP on {format_count(int(judged))} judged items; excess: CMIP beyond noise, and its p."
        if judged
        else "No judged items: no nDCG, no CMIP.",
        marks=[_TONES[model["verdict"]] for model in fields["models"]],
    )


def _has_interval(model: Fields) -> bool:
    """The estimator dv has none."""
    return model["cmip"] is not None and model["cmip"]["low"] is not None


def _draw_cmip(models: list[Fields]) -> Figure:
    bars = [
        {
            "label": to_one_line(model["name"]),
            "value": float(model["cmip"]["estimate"]),
            "low": float(model["cmip"]["low"]),
            "high": float(model["cmip"]["high"]),
            "verdict": str(model["verdict"]),
            "text": f"{model['cmip']['estimate']:.3f} ({model['cmip']['low']:.3f} to {model['cmip']['high']:.3f})",
        }
        for model in models
        if _has_interval(model)
    ]
    along = number_field("value", "CMIP in nats")
    down = name_field("label", axis={"domain": False, "ticks": False, "labelColor": INK})
    colour = name_field("verdict", scale={"domain": list(_TONES), "range": [GOOD, WARN, BAD]})
    layers: list[Spec] = [
        {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"x": {"datum": 0, "type": "quantitative"}}},
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": down, "x": {**along, "field": "low"}, "x2": {"field": "high"}, "color": colour},
        },
        {
            "mark": {"type": "circle", "size": 90, "opacity": 1},
            "encoding": {"y": down, "x": along, "color": colour, "tooltip": tooltip(label="fit", text="CMIP")},
        },
    ]
    return Figure(
        "cmip",
        "What relevance still says about the logging policy",
        chart(separate_labels(bars), 34 * len(bars) + 20, layers),
        "For each fit the information that its relevance shares with the logging policy's scores beyond the grades, "
        "with its 95% interval.",
        "A fit far to the right repeats the policy that made the log: it breaks when the ranking changes. Noise alone "
        "moves a fit to the right of 0; the verdict is by what is in excess of that.",
    )


def _draw_perplexity(fields: Fields) -> Figure:
    rows = [
        {"x": at, "y": value, "fit": to_one_line(model["name"]), "text": f"{value:.4f}"}
        for model in fields["models"]
        for at, value in zip(fields["positions"], model["perplexity_at"], strict=True)
        if value is not None
    ]
    across = position_axis("position")
    up = number_field("y", "perplexity", scale={"zero": False})
    colour = {"color": name_field("fit", legend={"symbolType": "stroke"})}
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"x": across, "y": up, **colour}},
        {
            "mark": {"type": "circle", "size": 60, "opacity": 1},
            "encoding": {
                "x": across,
                "y": up,
                **colour,
                "tooltip": tooltip(x="position", fit="fit", text="perplexity"),
            },
        },
    ]
    return Figure(
        "perplexity",
        "How well clicks are predicted",
        frame(240, layers, data={"values": rows}),
        "The perplexity of each fit's click predictions at each position: 1 is perfect, 2 is a coin toss.",
        "Lower is better. Fits that look alike here can still differ in bias, which shows when another policy ranks.",
    )


def assumptions_section(fields: Fields) -> Section | None:
    """What tests of the click model found; None where none were run."""
    findings = fields.get("assumptions")
    if not findings:
        return None
    bad = [to_one_line(one["name"]) for one in findings if one["verdict"] == "rejected"]
    lead = (
        f"The clicks contradict {len(bad)} of {len(findings)} assumptions: {', '.join(bad)}."
        if bad
        else "No assumption is rejected."
    )
    rows = [
        (
            to_one_line(one["name"]),
            str(one["verdict"]),
            _format_p_value(one["p_value"]),
            to_one_line(one["sentence"], _WIDTH),
            to_one_line(one["next"], _WIDTH),
        )
        for one in findings
    ]
    grid = Grid(
        ("assumption", "verdict", "p", "what was found", "what to do"),
        rows,
        numeric=("p",),
        caption="Holds: these clicks do not contradict it. Untestable: no clicks of this shape could.",
        marks=[_FOUND[one["verdict"]] for one in findings],
    )
    return Section("assumptions", "Do the model's assumptions hold?", lead, [grid, *_draw_evidence(findings)])


def _draw_evidence(findings: Sequence[Fields]) -> list[Figure]:
    """What the verdicts rest on, factor by factor or pair by pair."""
    known = [
        Finding(
            one["name"],
            one["verdict"],
            one["p_value"],
            one["effect"],
            to_one_line(one["sentence"], _WIDTH),
            to_one_line(one["next"], _WIDTH),
            evidence=_clean_rows(one.get("evidence", ())),
            factors=_clean_rows(one.get("factors", ())),
        )
        for one in findings
    ]
    return [
        Figure(f"assumption{n}", drawn.title, widen(drawn.spec), drawn.caption, drawn.reading)
        for n, drawn in enumerate(draw_evidence(known))
    ]


def _clean_rows(rows: Sequence[Fields]) -> list[dict[str, Any]]:
    return [
        {key: to_one_line(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows
    ]


def _format_figure(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _format_p_value(p_value: float | None) -> str:
    if p_value is None:
        return "–"
    return "<0.001" if p_value < 0.001 else f"{p_value:.2g}"
