"""What a reproduction says: published and measured side by side, claims that hold or do not, pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROUNDING = 0.0015
"""Published values have three decimals; one more unit for sums that were rounded before."""

PUBLIC_CODE = "public code, run here"
"""Where values stand that a paper's public code gave when we ran it: measured too, if not by elute; not published."""


@dataclass(frozen=True)
class Published:
    """A value as printed in a paper: mean and, over `runs`, standard deviation."""

    mean: float
    sd: float = 0.0
    runs: int = 10


@dataclass(frozen=True)
class ComparedValue:
    """One quantity: what was published (None: nothing) and what the runs gave (empty: there is no data to run on)."""

    where: Mapping[str, str]
    """The row and column it belongs to, by heading: {"method": "DLA", "metric": "MCC"}."""
    measured: tuple[float, ...]
    published: Published | None = None
    at_most: bool = False
    """The published value is an upper bound, as in "click MSE < 10⁻⁸"."""
    mark: str = ""
    """Set after the measured value; the page's settings say what it means."""

    @property
    def mean(self) -> float:
        return float(np.mean(self.measured)) if self.measured else float("nan")

    @property
    def sd(self) -> float:
        """Over runs, as the papers give it."""
        return float(np.std(self.measured)) if self.measured else float("nan")

    @property
    def tolerance(self) -> float:
        """Rounding, or twice the standard error of the difference of two means where runs differ."""
        if self.published is None:
            return float("nan")
        squares = self.published.sd**2 / self.published.runs + self.sd**2 / len(self.measured)
        return max(ROUNDING, 2 * float(np.sqrt(squares)))

    @property
    def passed(self) -> bool | None:
        """Whether it agrees; None where nothing was published, or nothing measured."""
        if self.published is None or not self.measured:
            return None
        if self.at_most:
            return self.mean <= self.published.mean
        return abs(self.mean - self.published.mean) <= self.tolerance


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, or of ours, that the run bears out or not, with the figures that decide it."""

    sentence: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class StudyFigure:
    """A chart, and what it shows."""

    name: str
    caption: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class Reproduction:
    """The outcome of one module of `elute_reproduce`."""

    name: str
    title: str
    source: str
    settings: Sequence[str]
    """How it was run, a sentence each."""
    compared: Sequence[ComparedValue] = ()
    claims: Sequence[Claim] = ()
    figures: Sequence[StudyFigure] = ()
    reading: Sequence[str] = ()
    """What differs from the paper and why; what the data can and cannot show."""
    command: str = ""
    seconds: float = field(default=0.0, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The fields of `elute reproduce --json`."""
        verdicts = [entry.passed for entry in self.compared if entry.passed is not None]
        verdicts += [claim.holds for claim in self.claims]
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "passed": sum(verdicts),
            "failed": len(verdicts) - sum(verdicts),
            "compared": [
                {
                    **entry.where,
                    "published": entry.published and entry.published.mean,
                    "published_sd": entry.published and entry.published.sd,
                    "measured": entry.mean if entry.measured else None,
                    "measured_sd": entry.sd if entry.measured else None,
                    "runs": len(entry.measured),
                    "tolerance": None if entry.passed is None or entry.at_most else entry.tolerance,
                    "passed": entry.passed,
                    "mark": entry.mark,
                }
                for entry in self.compared
            ],
            "claims": [{"sentence": c.sentence, "holds": c.holds, "evidence": c.evidence} for c in self.claims],
            "settings": list(self.settings),
            "reading": list(self.reading),
            "seconds": self.seconds,
        }
