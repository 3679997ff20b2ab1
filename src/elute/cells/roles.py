"""Which column of a log plays which part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

DEFAULT_QUERY = "query_id"
DEFAULT_DOC = "doc_id"
DEFAULT_BIAS = "position"
DEFAULT_CLICK = "click"

ColumnNames = str | Sequence[str]
"""One name, several joined by commas, or a list; `*` and `?` stand for parts of a name."""


@dataclass(frozen=True)
class Roles:
    """Column names, each checked against the log.

    `item`: what relevance belongs to. `bias`: what a factor is made of. `query`: None where the log has
    none. `click`: None where only impressions are known. `impressions`: given where a row is a count of
    impressions, and `click` then counts too.
    """

    item: tuple[str, ...]
    bias: tuple[str, ...]
    query: str | None
    click: str | None
    impressions: str | None
    session: str | None

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that must not be null, each once."""
        query = () if self.query is None else (self.query,)
        return tuple(dict.fromkeys((*query, *self.item, *self.bias)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read, each once."""
        others = (self.click, self.impressions, self.session)
        return tuple(dict.fromkeys((*self.ids, *(c for c in others if c is not None))))

    @property
    def items_within_queries(self) -> bool:
        """Whether an item belongs to one query by its very name."""
        return self.query is not None and self.query in self.item


def resolve_roles(
    existing: Sequence[str],
    *,
    query: str = DEFAULT_QUERY,
    doc: str = DEFAULT_DOC,
    item: ColumnNames | None = None,
    bias: ColumnNames = DEFAULT_BIAS,
    click: str | None = DEFAULT_CLICK,
    impressions: str | None = None,
    session: str | None = None,
) -> tuple[Roles, list[str]]:
    """The roles, and one sentence for every column that is not there.

    The default query column may be absent where `item` names other columns: recommendation logs have
    no query, and only the figures about queries are lost.
    """
    items = _expand(item, existing) if item is not None else (query, doc)
    biases = _expand(bias, existing)
    asked_query: str | None = query
    if query == DEFAULT_QUERY and query not in existing and query not in items:
        asked_query = None
    roles = Roles(items, biases, asked_query, click, impressions, session)
    return roles, [describe_missing(name, existing) for name in roles.columns if name not in existing]


def _expand(columns: ColumnNames, existing: Sequence[str]) -> tuple[str, ...]:
    """Names and patterns to names; a pattern that matches nothing stays, and is reported as missing."""
    names = columns.split(",") if isinstance(columns, str) else columns
    return tuple(dict.fromkeys(match for name in names for match in _match_pattern(name.strip(), existing)))


def _match_pattern(name: str, existing: Sequence[str]) -> Iterable[str]:
    if name in existing or not any(sign in name for sign in "*?"):
        return [name]
    return [column for column in existing if fnmatchcase(column, name)] or [name]


def describe_missing(name: str, existing: Sequence[str]) -> str:
    """A sentence about a column that is not there, with those that may be meant."""
    lower = {column.lower(): column for column in existing}
    close = [lower[match] for match in get_close_matches(name.lower(), lower, n=3, cutoff=0.5)]
    hint = f"closest: {', '.join(close)}" if close else f"it has: {', '.join(existing[:12])}"
    return f"no column '{name}' ({hint})"
