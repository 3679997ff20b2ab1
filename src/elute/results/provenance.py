"""Where a result comes from: kept in every file elute writes about a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from elute._util.text import format_number
from elute._util.urls import hide_secrets
from elute.door.fields import each, mapping, maybe, record, scalar, text

_NAMES = each(text, least=1, unique=True)

PROVENANCE = record(
    {"log": text, "item": _NAMES, "bias": _NAMES},
    {
        **dict.fromkeys(("date", "elute", "session", "impressions", "formula"), maybe(text)),
        **dict.fromkeys(("filters", "options"), maybe(mapping(scalar))),
    },
)
"""What a file may say of it."""


@dataclass(frozen=True)
class Provenance:
    """The log, its columns and filters, and elute's version; the date only as it was given."""

    log: str
    item: list[str]
    bias: list[str]
    date: str | None = None
    elute: str = version("elute")
    session: str | None = None
    impressions: str | None = None
    filters: dict[str, Any] | None = None
    """What was read of the log; None where all of it was."""
    options: dict[str, Any] = field(default_factory=dict)
    """What a verb was given beside the log, as far as a command can repeat it."""
    formula: str | None = None
    """How the bias columns act together; None where every combination of their values stands for itself."""

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """As a file has it that is of the kind `PROVENANCE`."""
        return cls(
            fields["log"],
            list(fields["item"]),
            list(fields["bias"]),
            fields.get("date"),
            str(fields.get("elute")),
            fields.get("session"),
            fields.get("impressions"),
            fields.get("filters"),
            dict(fields.get("options") or {}),
            fields.get("formula"),
        )

    def with_options(self, **given: object) -> Self:
        """With what a verb was given: names, numbers and files. None and False are what a verb takes by itself, and a
        table in memory has no name."""
        kept = {name: _to_plain(value) for name, value in given.items() if value is not None and value is not False}
        return replace(self, options={name: value for name, value in kept.items() if value is not None})


def _to_plain(value: object) -> Any:
    """As JSON holds it and a command spells it; None for what neither can."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | Path):
        return hide_secrets(str(value))
    if isinstance(value, Mapping):
        return ",".join(f"{name}={format_number(number)}" for name, number in value.items())
    if isinstance(value, list | tuple) and all(isinstance(part, int | float | str) for part in value):
        return ",".join(format_number(part) if isinstance(part, float) else str(part) for part in value)
    return None
