"""Where a result comes from: kept in every file elute writes about a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Self


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

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """As a file has it; raises KeyError, TypeError or ValueError where it is not one."""
        return cls(
            str(fields["log"]),
            [str(name) for name in fields["item"]],
            [str(name) for name in fields["bias"]],
            fields.get("date"),
            str(fields.get("elute")),
            fields.get("session"),
            fields.get("impressions"),
            fields.get("filters"),
        )
