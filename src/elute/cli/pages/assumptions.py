"""`elute audit --assumptions`: what the log says of the click model itself."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from elute._util.files import write_text
from elute.auditing.assumptions.finding import Finding, format_p_value
from elute.auditing.assumptions.shape import classify_shape
from elute.cli.text import to_one_line
from elute.reporting.charts.render import render_svg
from elute.reporting.sections.assumptions import draw_evidence

_STYLES = {"holds": ("✓", "green"), "rejected": ("✗", "red"), "untestable": ("?", "yellow")}
_DIRECTIONS = 3
"""Flat directions that the page tells of."""


def draw_charts(folder: str, findings: Sequence[Finding]) -> list[Path]:
    """Write every chart of the evidence as a picture and as the Vega-Lite spec it was made from."""
    written = []
    for chart in draw_evidence(findings):
        target = Path(folder) / re.sub(r"\W+", "-", chart.title.lower()).strip("-")
        described = {**chart.spec, "description": f"{chart.title}. {chart.caption} {chart.reading}"}
        write_text(target.with_suffix(".svg"), render_svg(chart.spec))
        write_text(target.with_suffix(".json"), json.dumps(described, ensure_ascii=False, allow_nan=False))
        written.append(target.with_suffix(".svg"))
    return written


def show(console: Console, findings: Sequence[Finding]) -> None:
    """Print a verdict, a sentence and the next step for every assumption."""
    for finding in findings:
        mark, style = _STYLES[finding.verdict]
        chance = "" if finding.p_value is None else f" ({format_p_value(finding.p_value)})"
        text = Text(f"{mark} {finding.name}: {finding.verdict}{chance}\n", style=f"bold {style}")
        text.append(f"{to_one_line(finding.sentence, 800)}\n", style="not bold default")
        told = [to_one_line(row["sentence"], 400) for row in finding.evidence if "sentence" in row]
        for sentence in told[:_DIRECTIONS]:
            text.append(f"- {sentence}\n", style="not bold default")
        if len(told) > _DIRECTIONS:
            text.append(f"- and {len(told) - _DIRECTIONS:,} more: --json lists them\n", style="not bold default")
        if finding.note is not None:
            text.append(f"{finding.note}\n", style="not bold default")
        text.append(to_one_line(finding.next, 400), style="dim not bold default")
        console.print(Padding(text, (1, 2, 0, 2)))
    console.print(Padding(Text(to_one_line(classify_shape(findings).sentence, 800), style="bold"), (1, 2)))
