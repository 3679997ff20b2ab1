"""`elute audit --assumptions`: what the log says of the click model itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from elute.audit.assumptions.battery import assumptions
from elute.audit.assumptions.finding import Finding
from elute.audit.assumptions.groups import Groups
from elute.cli.text import plain
from elute.estimate.pbm import PBM

if TYPE_CHECKING:
    from elute.log import ClickLog
    from elute.progress import Progress

_STYLES = {"holds": ("✓", "green"), "rejected": ("✗", "red"), "untestable": ("?", "yellow")}


def tested(log: ClickLog, column: str | None, seed: int, progress: Progress) -> list[Finding]:
    """The findings on a log; `column`: by what position effects might differ."""
    counts = log.counts(progress)
    groups = None if column is None else Groups(column, counts.read_clusters(column))
    return assumptions(counts, PBM(progress=progress).fit(counts), groups=groups, seed=seed, progress=progress)


def show(console: Console, findings: list[Finding]) -> None:
    """Print a verdict, a sentence and the next step for every assumption."""
    for finding in findings:
        mark, style = _STYLES[finding.verdict]
        chance = "" if finding.p_value is None else f" (p = {finding.p_value:.3g})"
        text = Text(f"{mark} {finding.name}: {finding.verdict}{chance}\n", style=f"bold {style}")
        text.append(f"{plain(finding.sentence, 400)}\n", style="not bold default")
        text.append(plain(finding.next, 300), style="dim not bold default")
        console.print(Padding(text, (1, 2, 0, 2)))
    console.print()
