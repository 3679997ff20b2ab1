"""`elute audit --assumptions`: what the log says of the click model itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from elute.audit.assumptions.battery import assumptions
from elute.audit.assumptions.finding import Finding, number
from elute.audit.assumptions.groups import by_column
from elute.audit.assumptions.shape import shape
from elute.audit.judged import label_of_items
from elute.cli.text import plain
from elute.estimate.pbm import PBM
from elute.files import write_text
from elute.report.assumptions import evidence_charts
from elute.report.render import svg

if TYPE_CHECKING:
    from elute.log import ClickLog
    from elute.progress import Progress

_STYLES = {"holds": ("✓", "green"), "rejected": ("✗", "red"), "untestable": ("?", "yellow")}
_DIRECTIONS = 5
"""Flat directions that the page tells of."""


def tested(log: ClickLog, column: str | None, labels: str | None, seed: int, progress: Progress) -> list[Finding]:
    """The findings on a log. `column`: by what position effects might differ; `labels`: a file of them."""
    counts = log.counts(progress)
    groups = None if column is None else by_column(counts, column)
    relevance = None if labels is None else label_of_items(labels, counts.items, log.roles)
    fit = PBM(progress=progress).fit(counts)
    return assumptions(counts, fit, groups=groups, labels=relevance, seed=seed, progress=progress)


def fields(findings: list[Finding]) -> dict[str, Any]:
    """What `--json` says."""
    return {"assumptions": [finding.to_dict() for finding in findings], "shape": shape(findings).to_dict()}


def draw(folder: str, findings: list[Finding]) -> list[Path]:
    """Write every chart of the evidence as a picture and as the Vega-Lite spec it was made from."""
    written = []
    for chart in evidence_charts(findings):
        target = Path(folder) / re.sub(r"\W+", "-", chart.title.lower()).strip("-")
        described = {**chart.spec, "description": f"{chart.title}. {chart.caption} {chart.reading}"}
        write_text(target.with_suffix(".svg"), svg(chart.spec))
        write_text(target.with_suffix(".json"), json.dumps(described, ensure_ascii=False, allow_nan=False))
        written.append(target.with_suffix(".svg"))
    return written


def show(console: Console, findings: list[Finding]) -> None:
    """Print a verdict, a sentence and the next step for every assumption."""
    for finding in findings:
        mark, style = _STYLES[finding.verdict]
        chance = "" if finding.p_value is None else f" ({number(finding.p_value)})"
        text = Text(f"{mark} {finding.name}: {finding.verdict}{chance}\n", style=f"bold {style}")
        text.append(f"{plain(finding.sentence, 800)}\n", style="not bold default")
        for row in finding.evidence[:_DIRECTIONS]:
            if "sentence" in row:
                text.append(f"- {plain(row['sentence'], 600)}\n", style="not bold default")
        text.append(plain(finding.next, 400), style="dim not bold default")
        console.print(Padding(text, (1, 2, 0, 2)))
    console.print(Padding(Text(plain(shape(findings).sentence, 800), style="bold"), (1, 2)))
