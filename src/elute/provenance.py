"""Where a result comes from: kept in every file elute writes about a log."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

from elute.log import ClickLog


@dataclass(frozen=True)
class Provenance:
    """The log, its columns, and elute's version; the date only as it was given."""

    log: str
    item: list[str]
    bias: list[str]
    date: str | None
    elute: str = version("elute")


def provenance(log: ClickLog, date: str | None = None) -> Provenance:
    """What a file remembers of the log it was made from."""
    return Provenance(log.engine.label, list(log.roles.item), list(log.roles.bias), date)
