"""Linear, affine, or neither: what the tests 'linear' and 'affine' say together, overall and by factor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from elute.auditing.assumptions.finding import LEVEL, Finding

_LISTED = 5
"""Factors, or runs of numbered ones, that a sentence names."""

_NUMBERED = re.compile(r"([^,]+) (\d+)")
_PLURAL = {"position": "positions", "rank": "ranks", "slot": "slots"}

Form = Literal["linear", "affine", "neither", "unknown"]


@dataclass(frozen=True)
class Shape:
    """How click probability depends on relevance. "linear": α_t·r. "affine": α_t·r + β_t. By factor, corrected for
    their number; a factor is linear or affine against the others, relevance itself having no origin."""

    overall: Form
    factors: dict[str, Form]

    @property
    def sentence(self) -> str:
        """In words."""
        if self.overall == "unknown":
            return "Whether clicks are linear or affine in relevance cannot be told from this log."
        words = {"linear": "linear in relevance", "affine": "affine in relevance, not linear", "neither": "not affine"}
        forms: tuple[Form, ...] = ("linear", "affine", "neither")
        parts = [f"{form} under {under}" for form in forms if (under := self._list_factors(form))]
        return f"Click probability is {words[self.overall]}. By factor: {'; '.join(parts) or 'unknown'}."

    def _list_factors(self, form: Form) -> str:
        """The factors of one form, the first few."""
        return list_factors([name for name, found in self.factors.items() if found == form])

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "overall": self.overall,
            "sentence": self.sentence,
            "factors": [{"factor": name, "shape": form} for name, form in self.factors.items()],
        }


def list_factors(names: Sequence[str]) -> str:
    """The first few in words; numbered ones in order, as runs: 'positions 1, 3 to 9'."""
    numbered = [_NUMBERED.fullmatch(name) for name in names]
    columns = {match[1] if match else None for match in numbered}
    if len(names) < 2 or len(columns) > 1 or None in columns:
        return _shorten(list(names), [1] * len(names))
    numbers = sorted({int(match[2]) for match in numbered if match})
    column = str(columns.pop())
    begins = [i for i, number in enumerate(numbers) if i == 0 or number != numbers[i - 1] + 1]
    runs = [numbers[i:j] for i, j in zip(begins, [*begins[1:], len(numbers)], strict=True)]
    words = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return f"{_PLURAL.get(column, column)} {_shorten(words, [len(run) for run in runs])}"


def _shorten(words: Sequence[str], sizes: Sequence[int]) -> str:
    """The first few; `sizes`: how many each stands for."""
    rest = sum(sizes[_LISTED:])
    return ", ".join(words[:_LISTED]) + (f" and {rest:,} more" if rest else "")


def classify_shape(findings: Sequence[Finding]) -> Shape:
    """From the findings of `assumptions`."""
    by_name = {finding.name: finding for finding in findings}
    linear, affine = by_name["linear"], by_name["affine"]
    offset = {row["factor"]: row["p_value"] <= LEVEL for row in linear.factors}
    bent = {row["factor"]: row["p_value"] <= LEVEL for row in affine.evidence}
    names = dict.fromkeys((*(row["against"] for row in linear.factors), *offset, *bent))
    factors = {name: _classify(offset.get(name, False if linear.factors else None), bent.get(name)) for name in names}
    tested = {"holds": False, "rejected": True, "untestable": None}
    return Shape(_classify(tested[linear.verdict], tested[affine.verdict]), factors)


def _classify(offset: bool | None, bent: bool | None) -> Form:
    """None: not tested. Linear clicks are affine, so nothing more needs to hold for them."""
    if bent:
        return "neither"
    if offset is None:
        return "unknown" if bent is None else "affine"
    if offset:
        return "unknown" if bent is None else "affine"
    return "linear"
