"""Sections on an audit: is a fit debiased, which one is to be taken, and do the click model's assumptions hold?

An audit comes as the fields of `elute audit --json`, from a file that anybody may have written: what is missing or of
another kind is refused with one line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elute._util.text import count, plain
from elute.auditing.assumptions.finding import Finding
from elute.errors import EluteError
from elute.reporting.charts.looks import (
    BAD,
    GOOD,
    INK,
    WARN,
    along_positions,
    apart,
    chart,
    frame,
    name,
    number,
    tooltip,
    wide,
)
from elute.reporting.parts import Block, Figure, Grid, Note, Section, Spec
from elute.reporting.sections.assumptions import evidence_charts
from elute.results.card import Tone

_TONES: dict[str, Tone] = {"pass": "good", "warn": "warn", "fail": "bad"}
_FOUND: dict[str, Tone] = {"holds": "good", "rejected": "bad", "untestable": "calm"}
_WIDTH = 600

Fields = Mapping[str, Any]


def read_audit(path: str | Path) -> dict[str, Any]:
    """The fields of an audit from the file that `elute audit --json` was written to."""
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(fields, dict) or not ({"models", "assumptions"} & set(fields)):
            raise ValueError("neither models nor assumptions in it")
        audit_section(fields)
        assumptions_section(fields)
    except FileNotFoundError:
        raise EluteError(f"no audit '{path}': write one with `elute.audit`") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EluteError(f"{path} is not what `elute.audit` writes ({plain(repr(error), 120)}); run it again") from None
    return fields


def audit_section(fields: Fields) -> Section | None:
    """Verdicts by model; None where the audit is of assumptions alone."""
    if "models" not in fields:
        return None
    models = fields["models"]
    lead = f"Take {plain(fields['selected'])}. {plain(fields['selection']['sentence'], _WIDTH)}"
    blocks: list[Block] = [_figures(fields)]
    if any(model["cmip"] is not None for model in models):
        blocks.append(_cmip(models))
    if fields["positions"] is not None:
        blocks.append(_perplexity(fields))
    blocks += [Note(f"{plain(m['name'])}: {plain(m['sentence'], _WIDTH)}", _TONES[m["verdict"]]) for m in models]
    notes = dict.fromkeys(note for model in models for note in model["notes"])
    blocks += [Note(f"Note: {plain(note, _WIDTH)}.") for note in notes]
    return Section("audit", "Is the fit to be trusted?", lead, blocks)


def _figures(fields: Fields) -> Grid:
    rows = []
    for model in fields["models"]:
        cmip = model["cmip"]
        rows.append(
            (
                plain(model["name"]),
                plain(model["model"]),
                _figure(model["perplexity"], 4),
                _figure(model["ood_perplexity"], 4),
                _figure(model["ndcg"], 3),
                "–" if cmip is None else f"{cmip['estimate']:.3f}",
                "–" if cmip is None else _chance(cmip["p_value"]),
                str(model["verdict"]),
            )
        )
    judged = fields["judged_items"]
    return Grid(
        ("fit", "model", "perplexity", "shifted log", "nDCG", "CMIP", "p", "verdict"),
        rows,
        numeric=("perplexity", "shifted log", "nDCG", "CMIP", "p"),
        caption=f"nDCG and CMIP on {count(int(judged))} judged items."
        if judged
        else "No judged items: no nDCG, no CMIP.",
        marks=[_TONES[model["verdict"]] for model in fields["models"]],
    )


def _cmip(models: list[Fields]) -> Figure:
    bars = [
        {
            "label": plain(model["name"]),
            "value": float(model["cmip"]["estimate"]),
            "low": float(model["cmip"]["low"]),
            "high": float(model["cmip"]["high"]),
            "verdict": str(model["verdict"]),
            "text": f"{model['cmip']['estimate']:.3f} ({model['cmip']['low']:.3f} to {model['cmip']['high']:.3f})",
        }
        for model in models
        if model["cmip"] is not None
    ]
    along = number("value", "CMIP in nats")
    down = name("label", axis={"domain": False, "ticks": False, "labelColor": INK})
    colour = name("verdict", scale={"domain": list(_TONES), "range": [GOOD, WARN, BAD]})
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
        "What relevance still says of the logging policy",
        chart(apart(bars), 34 * len(bars) + 20, layers),
        "For each fit the information that its relevance shares with the logging policy's scores beyond the grades, "
        "with its 95% interval.",
        "0 is debiased. A fit far to the right repeats the policy that made the log: it breaks when the ranking "
        "changes.",
    )


def _perplexity(fields: Fields) -> Figure:
    rows = [
        {"x": at, "y": value, "fit": plain(model["name"]), "text": f"{value:.4f}"}
        for model in fields["models"]
        for at, value in zip(fields["positions"], model["perplexity_at"], strict=True)
        if value is not None
    ]
    across = along_positions("position")
    up = number("y", "perplexity", scale={"zero": False})
    colour = {"color": name("fit", legend={"symbolType": "stroke"})}
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
        "The perplexity of each fit's click predictions at each position: 1 is perfect, 2 a coin.",
        "Lower is better. Fits that look alike here can still differ in bias, which shows when another policy ranks.",
    )


def assumptions_section(fields: Fields) -> Section | None:
    """What tests of the click model found; None where none were run."""
    findings = fields.get("assumptions")
    if not findings:
        return None
    bad = [plain(one["name"]) for one in findings if one["verdict"] == "rejected"]
    lead = (
        f"The clicks contradict {len(bad)} of {len(findings)}: {', '.join(bad)}."
        if bad
        else "No assumption is rejected."
    )
    rows = [
        (
            plain(one["name"]),
            str(one["verdict"]),
            _chance(one["p_value"]),
            plain(one["sentence"], _WIDTH),
            plain(one["next"], _WIDTH),
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
    return Section("assumptions", "Do the model's assumptions hold?", lead, [grid, *_evidence(findings)])


def _evidence(findings: Sequence[Fields]) -> list[Figure]:
    """What the verdicts rest on, factor by factor or pair by pair."""
    known = [
        Finding(
            one["name"],
            one["verdict"],
            one["p_value"],
            one["effect"],
            plain(one["sentence"], _WIDTH),
            plain(one["next"], _WIDTH),
            evidence=_shown(one.get("evidence", ())),
            factors=_shown(one.get("factors", ())),
        )
        for one in findings
    ]
    return [
        Figure(f"assumption{n}", drawn.title, wide(drawn.spec), drawn.caption, drawn.reading)
        for n, drawn in enumerate(evidence_charts(known))
    ]


def _shown(rows: Sequence[Fields]) -> list[dict[str, Any]]:
    return [{key: plain(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows]


def _figure(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _chance(p_value: float | None) -> str:
    if p_value is None:
        return "–"
    return "<0.001" if p_value < 0.001 else f"{p_value:.2g}"
