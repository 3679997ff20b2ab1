"""What a test of an assumption says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Verdict = Literal["holds", "rejected", "untestable"]
Floats = NDArray[np.float64]

LEVEL = 0.05
"""Below this p-value an assumption is rejected."""


@dataclass(frozen=True)
class Panel:
    """Points with their errors beside straight lines: what a chart of a finding shows."""

    title: str
    x: str
    y: str
    """What the axes are."""
    points: Sequence[Mapping[str, float]]
    """x, y, their standard errors x_se and y_se, and impressions."""
    lines: Mapping[str, tuple[float, float]]
    """Intercept and slope, by what the line is."""


@dataclass(frozen=True)
class Finding:
    """One assumption. "holds" means: these clicks do not contradict it. "untestable": no clicks of this shape could;
    `next` then says what data would."""

    name: str
    verdict: Verdict
    p_value: float | None
    effect: float | None
    """How far off, in the unit that `sentence` names; None where there is no such number."""
    sentence: str
    next: str
    evidence: Sequence[Mapping[str, Any]] = ()
    """The parts the verdict rests on (factors, pairs of factors, groups), worst first: rows of a chart."""
    factors: Sequence[Mapping[str, Any]] = ()
    """The same by factor, where `evidence` is by pair."""
    panels: Sequence[Panel] = ()
    """The clicks behind the worst of them."""
    cluster: str | None = None
    """The column within whose values clicks may depend on each other; None: clicks count as independent."""
    design_effect: float | None = None
    """With clusters: the variance of clicks, as far as it matters to this test, over that of independent ones."""

    @property
    def note(self) -> str | None:
        """What was done about clusters."""
        if self.cluster is None or self.design_effect is None:
            return None
        return (
            f"Clicks may depend on each other within {self.cluster}: their variance here is {self.design_effect:.2g} "
            "times that of independent clicks, and taken in."
        )

    def to_dict(self) -> dict[str, Any]:
        """An entry of `assumptions` in JSON."""
        return {
            "name": self.name,
            "verdict": self.verdict,
            "p_value": self.p_value,
            "effect": self.effect,
            "sentence": self.sentence,
            "next": self.next,
            "evidence": [dict(row) for row in self.evidence],
            "factors": [dict(row) for row in self.factors],
            "cluster": self.cluster,
            "design_effect": self.design_effect,
            "note": self.note,
        }

    def __repr__(self) -> str:
        return f"<Finding {self.name}: {self.verdict}. {self.sentence}>"


def report_untestable(name: str, sentence: str, following: str) -> Finding:
    """The finding that there is nothing to find."""
    return Finding(name, "untestable", None, None, sentence, following)


def decide(p_value: float) -> Verdict:
    """At `LEVEL`."""
    return "rejected" if p_value <= LEVEL else "holds"


def exceedance(observed: float, drawn: Floats) -> float:
    """The p-value of a statistic among draws under the null, itself counted as one: never 0, and exact in level."""
    return float((1 + np.sum(drawn >= observed)) / (1 + len(drawn)))


def find_design_effect(clusters: object | None, drawn: Floats, freedom: int) -> float | None:
    """Draws of a statistic by clusters, over its mean if clicks were independent; None without clusters."""
    return None if clusters is None else float(drawn.mean() / freedom)


def holm(p_values: Floats) -> Floats:
    """p-values corrected for being many (Holm 1979): at level α, one wrong rejection or more has probability ≤ α."""
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    out = np.empty(len(p_values))
    out[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return out


def format_p_value(p_value: float) -> str:
    """A p-value in words."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"
