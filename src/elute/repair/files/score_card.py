"""What a score plan shows of itself: the verdict on the score first, then what it joins."""

from __future__ import annotations

from elute._util.text import format_count
from elute.cells.factors import describe
from elute.known.precision import TARGET
from elute.results.base import Fields
from elute.results.card import Bars, Card, Tone

_LOOKS: dict[str, tuple[Tone, str]] = {
    "holds": ("good", "Placed by a score"),
    "contradicted": ("bad", "Placed by a score that the log contradicts"),
    "untestable": ("warn", "Placed by a score that cannot be tested"),
}


def describe_score(fields: Fields) -> Card:
    """The card of a score plan's fields."""
    before, known = int(fields["components_before"]), fields["propensities"]
    assumed = fields["assumption"]
    tone, word = _LOOKS[assumed["verdict"]]
    if not assumed["components_placed"] and not assumed["components_combined"]:
        return Card("calm", "Nothing to repair", "Nothing to place: items alone know all ratios of propensities.")
    what = "one component" if before == 1 else f"{format_count(before)} components"
    joined = f"A score puts the log's {what} on one scale. {assumed['sentence']} {fields['score']['sentence']}"
    errors = [row["log_se"] for row in known if row["log_se"] is not None]
    if tone == "good" and max(errors, default=0.0) > TARGET:
        tone, word = "warn", "Placed loosely by a score"
    figures = [(format_count(before), "component before" if before == 1 else "components before")]
    figures.append((f"{max(errors, default=0.0):.2g}", "largest standard error of log propensities"))
    ends = [row["log_se"] or 0.0 for row in known]
    values = [row["propensity"] for row in known]
    low, high = (
        [v * 2.718281828459045 ** (2 * sign * e) for v, e in zip(values, ends, strict=True)] for sign in (-1, 1)
    )
    chart = Bars("Propensity, ± 2 standard errors", [describe(row["factor"]) for row in known], values, low, high)
    return Card(tone, word, joined, figures, chart)
