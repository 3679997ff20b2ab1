"""What a page is made of: sections of figures, tables and notes. Data only; `page` turns them into HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from elute.results.card import Tone

Spec = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A chart, with what it shows and how to read it. `details`: for charts that answer a click, what to say of each
    mark by its `id`: pairs of a word and a text."""

    key: str
    title: str
    spec: Spec
    shows: str
    reads: str
    details: dict[str, list[tuple[str, str]]] | None = None


@dataclass(frozen=True)
class Grid:
    """A table; columns in `numeric` are set flush right. `marks`: a tone for each row, where rows have one."""

    head: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    numeric: tuple[str, ...] = ()
    caption: str = ""
    marks: Sequence[Tone] = ()


@dataclass(frozen=True)
class Note:
    """A sentence."""

    text: str
    tone: Tone = "calm"


@dataclass(frozen=True)
class Commands:
    """Command lines, each with what it is for."""

    lines: Sequence[tuple[str, str]]


Block = Figure | Grid | Note | Commands


@dataclass(frozen=True)
class Section:
    """A heading, its answer in a sentence, and the evidence."""

    key: str
    title: str
    lead: str
    blocks: list[Block] = field(default_factory=list)
