"""Which column of a log plays which part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from elute.cells.formula import BiasFormula, read_formula
from elute.errors import EluteError

DEFAULT_QUERY = "query_id"
DEFAULT_DOC = "doc_id"
DEFAULT_BIAS = "position"
DEFAULT_CLICK = "click"

TAKEN = (
    "component", "relevance", "propensity", "log_se", "log_se_clusters", "offset", "low", "high", "shape", "rate",
    "evidence", "impressions", "clicks",
)  # fmt: skip
"""What stands beside the columns of items and factors in the files of a fit, and cannot be one of them."""

_PREFIX = "elute_"
"""Of elute's own columns while a log is read, and in a folder of counts."""

ColumnNames = str | Sequence[str]
"""One name, several joined by commas, or a list; `*` and `?` stand for parts of a name."""

BiasNames = ColumnNames | BiasFormula
"""The same, or a formula (`elute.cells.formula`)."""


@dataclass(frozen=True)
class Roles:
    """Column names, each checked against the log.

    `item`: what relevance belongs to. `bias`: what a factor is made of. `query`: None where the log has
    none. `click`: None where only impressions are known. `impressions`: given where a row is a count of
    impressions, and `click` then counts too. `formula`: how the bias columns act together; None where every
    combination of their values stands for itself.
    """

    item: tuple[str, ...]
    bias: tuple[str, ...]
    query: str | None
    click: str | None
    impressions: str | None
    session: str | None
    formula: BiasFormula | None = None

    @classmethod
    def from_fields(cls, given: Mapping[str, Any]) -> Roles:
        """As a file has them."""
        formula = given.get("formula")
        named = {**given, "item": tuple(given["item"]), "bias": tuple(given["bias"])}
        return cls(**{**named, "formula": None if formula is None else BiasFormula.parse(formula)})

    def to_dict(self) -> dict[str, Any]:
        """As JSON has them; a formula only where there is one."""
        formula = {} if self.formula is None else {"formula": str(self.formula)}
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "formula"}
        return {**named, "item": list(self.item), "bias": list(self.bias), **formula}

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


def refuse_lookalikes(columns: Iterable[str], label: str) -> None:
    """SQL does not tell capitals from small letters: neither DuckDB nor Spark could tell two such columns apart."""
    known: dict[str, str] = {}
    for column in columns:
        other = known.setdefault(column.lower(), column)
        if other != column:
            raise EluteError(f"{label}: columns '{other}' and '{column}' differ in capitals only; rename one")


def resolve_roles(
    existing: Sequence[str],
    *,
    query: str = DEFAULT_QUERY,
    doc: str = DEFAULT_DOC,
    item: ColumnNames | None = None,
    bias: BiasNames = DEFAULT_BIAS,
    click: str | None = DEFAULT_CLICK,
    impressions: str | None = None,
    session: str | None = None,
) -> tuple[Roles, list[str]]:
    """The roles, and one sentence for every column that is not there.

    The default query column may be absent where `item` names other columns: recommendation logs have
    no query, and only the figures about queries are lost.
    """
    items = _expand(item, existing) if item is not None else (query, doc)
    biases, formula = _read_bias(bias, existing)
    asked_query: str | None = query
    if query == DEFAULT_QUERY and query not in existing and query not in items:
        asked_query = None
    roles = Roles(items, biases, asked_query, click, impressions, session, formula)
    missing = [describe_missing(name, existing) for name in roles.columns if name not in existing]
    return roles, missing + [_describe_taken(name) for name in roles.ids if name in existing and _is_taken(name)]


def _is_taken(name: str) -> bool:
    """Engines tell names apart only by more than their case."""
    return name.lower() in TAKEN or name.lower().startswith(_PREFIX)


def _describe_taken(name: str) -> str:
    return f"column '{name}' is called like one of elute's own, which stand beside it in files; rename it"


def _read_bias(bias: BiasNames, existing: Sequence[str]) -> tuple[tuple[str, ...], BiasFormula | None]:
    """The columns, and the formula over them; None where it says no more than a list of names."""
    if not isinstance(bias, BiasFormula):
        names = _expand(bias, existing)
        if not isinstance(bias, str) or all(name in existing for name in names):
            return names, None
        read = read_formula(bias, existing)
        if read is None:
            return names, None
        bias = read
    return bias.columns, None if bias.saturated else bias


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
