"""The result of an audit: fits compared with each other, and the click model's own assumptions tested."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from elute.auditing.assumptions.finding import Finding
from elute.auditing.assumptions.shape import classify_shape
from elute.auditing.comparison import Comparison
from elute.results.base import Fields, Result
from elute.results.card import Bars, Card, Tone

_TONES: dict[str, Tone] = {"pass": "good", "unknown": "warn", "fail": "bad"}


@dataclass(frozen=True, repr=False)
class Audit(Result):
    """`fits`: the models compared, None where only assumptions were tested. `findings`: on assumptions, None where they
    were not."""

    fits: Comparison | None
    findings: tuple[Finding, ...] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """What it was given beside fits and log, as far as a command can repeat it."""

    @property
    def selected(self) -> str | None:
        """The name of the fit to take; None where there is none."""
        return None if self.fits is None else self.fits.selected

    def to_dict(self) -> dict[str, Any]:
        """The fields of `elute audit --json`."""
        fields = {} if self.fits is None else self.fits.to_dict()
        if self.findings is not None:
            fields["assumptions"] = [finding.to_dict() for finding in self.findings]
            fields["shape"] = classify_shape(self.findings).to_dict()
        return {**fields, "options": self.options}

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        findings = fields.get("assumptions")
        notes = [] if findings is None else [f"{found['name']}: {found['verdict']}" for found in findings]
        if "models" not in fields:
            return Card("calm", "Assumptions", fields["shape"]["sentence"], notes=notes)
        models, selected = fields["models"], fields["selected"]
        taken = next((model for model in models if model["name"] == selected), None)
        head = "Take none" if taken is None else f"Take {selected}"
        tone: Tone = ("warn" if fields["selection"]["tied"] else "bad") if taken is None else _TONES[taken["verdict"]]
        values = [model["perplexity"] if model["perplexity"] is not None else float("nan") for model in models]
        chart = Bars("Perplexity of clicks; lower is better", [model["name"] for model in models], values)
        figures = [(str(len(models)), "fits"), (str(fields["judged_items"]), "judged items")]
        told = [f"{model['name']}: {model['sentence']}" for model in models]
        return Card(tone, head, f"{head}. {fields['selection']['sentence']}", figures, chart, [*told, *notes])
