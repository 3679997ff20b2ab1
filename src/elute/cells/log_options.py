"""How to read a log, as the verbs take it."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from elute.cells.roles import BiasNames, ColumnNames


class LogOptions(TypedDict, total=False):
    """How to read what is not a log yet: the parameters of `elute.read_log`."""

    query: str
    doc: str
    item: ColumnNames | None
    bias: BiasNames
    click: str
    impressions: str | None
    session: str | None
    where: str | None
    max_position: int | None
    min_factor_impressions: int | None
    last: int | None
    drop: str | None
    engine: str
    exact: bool
    memory: int | None
    spill: str | Path | None
    threads: int | None
