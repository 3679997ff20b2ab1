"""Labels and the logging policy's scores, read from files of any format a log may have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute._util.matching import describe_row, id_columns, match, refuse_repeats
from elute.cells.roles import DEFAULT_DOC, DEFAULT_QUERY, Roles
from elute.engines.duckdb.source import DuckDBSource
from elute.errors import EluteError
from elute.log import ClickLog
from elute.progress import Progress, silent

Floats = NDArray[np.float64]

GRADE, RELEVANCE, SCORE = "grade", "relevance", "score"

NegativeGrades: TypeAlias = Literal["refuse", "zero"]

TableSource: TypeAlias = object
"""A path of any format a log may have, or a pandas, polars or Arrow table."""


@dataclass(frozen=True, eq=False)
class Labels:
    """A row for each judged item. `query`: numbers of the queries, None where the file has no query column."""

    place: str
    items: list[pa.Array]
    grade: Floats
    query: NDArray[np.int64] | None
    notes: tuple[str, ...] = ()
    """What a reader of figures that use them should know."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The logging policy's score of each item. `place`: where they come from."""

    place: str
    items: list[pa.Array]
    score: Floats

    def look_up(self, labels: Labels) -> Floats:
        """By label; NaN where there is none."""
        at = match(labels.items, self.items)
        if (at < 0).all():
            raise EluteError(
                f"no item of {labels.place} has a score in {self.place}: labels name {describe_row(labels.items, 0)}, "
                f"scores {describe_row(self.items, 0)}; check the ids"
            )
        return np.where(at < 0, np.nan, self.score[at])


def read_labels(source: TableSource, roles: Roles, grade: str = GRADE) -> Labels:
    """Rows without a grade are left out: files with the truth of a simulated log hold other rows too. An item may be
    repeated, as in a log, as long as its grade is the same."""
    path, table, columns, _ = _read(source, roles, "the labels", grade)
    query = roles.query if roles.query is not None and roles.query in table.column_names else DEFAULT_QUERY
    keys = list(dict.fromkeys(([query] if query in table.column_names else []) + columns))
    table = _drop_repeats(table, keys, grade, path)
    codes = None
    if query in table.column_names:
        codes = id_columns(table, [query])[0].dictionary_encode().indices.to_numpy().astype(np.int64)
    return Labels(path, id_columns(table, columns), _to_numbers(table, grade, path), codes)


def settle_negative_grades(labels: Labels, rule: NegativeGrades) -> Labels:
    """Ranking metrics have no gain for grades below 0: refuse them, or count them as 0 and say so."""
    below = int((labels.grade < 0).sum())
    if not below:
        return labels
    if rule == "refuse":
        raise EluteError(
            f"{labels.place}: {below:,} grades are below 0, for instance {labels.grade.min():g}; where they mean "
            "\"not relevant\", as TREC's -2 for junk does, pass `negative_grades='zero'`"
        )
    notes = (f"{below:,} grades below 0 count as 0, not relevant",)
    return replace(labels, grade=np.maximum(labels.grade, 0.0), notes=notes)


def read_item_labels(source: TableSource, items: pa.Table, roles: Roles, grade: str = GRADE) -> Floats:
    """P(relevant) of a log's items: the file's column `relevance`, or else its `grade`; NaN where there is none."""
    path, table, columns, value = _read(source, roles, "the labels", RELEVANCE, grade)
    table = _drop_repeats(table, columns, value, path)
    found, wanted = id_columns(table, columns), id_columns(items, roles.item)
    at = match(wanted, found)
    if (at < 0).all():
        raise EluteError(
            f"no item of the log has a label in {path}: the log names {describe_row(wanted, 0)}, "
            f"labels {describe_row(found, 0)}; check the ids"
        )
    return np.where(at < 0, np.nan, _to_numbers(table, value, path)[at])


def read_relevance(source: TableSource, log: ClickLog, progress: Progress = silent) -> Floats:
    """The same, to test a score by: none is below 0."""
    found = read_item_labels(source, log.counts(progress).items, log.roles)
    if np.nanmin(found) < 0:
        raise EluteError("some labels are below 0, and relevance is not; set them to 0, or leave them out")
    return found


def read_scores(source: TableSource, roles: Roles) -> Scores:
    """One score an item."""
    path, table, columns, _ = _read(source, roles, "the policy's scores", SCORE)
    found = id_columns(table, columns)
    refuse_repeats(found, path)
    return Scores(path, found, _to_numbers(table, SCORE, path))


def read_log_scores(log: ClickLog) -> Scores | None:
    """The mean of the log's own `score` column by item; None where it has none."""
    if SCORE not in log.engine.columns:
        return None
    item = log.roles.item
    table = log.engine.compute_means(item, SCORE)
    table = table.filter(pc.invert(pc.is_null(table[SCORE], nan_is_null=True)))
    place = f"column '{SCORE}' of {log.engine.label}"
    return Scores(place, id_columns(table, item), _to_numbers(table, SCORE, place)) if table.num_rows else None


def _read(source: TableSource, roles: Roles, what: str, *values: str) -> tuple[str, pa.Table, list[str], str]:
    """How messages name the source, its rows with a value, which columns name their items, and the value's own: the
    first of `values` there is."""
    path = str(source) if isinstance(source, str | Path) else what
    table = DuckDBSource(source).read_table()
    columns = _find_item_columns(table, roles)
    value = next((name for name in values if name in table.column_names), values[-1])
    missing = [name for name in (*columns, value) if name not in table.column_names]
    if missing:
        raise EluteError(f"{path} has no column '{missing[0]}'; it has: {', '.join(table.column_names)}")
    used = pc.invert(pc.is_null(table[value], nan_is_null=pa.types.is_floating(table[value].type)))
    for name in columns:
        used = pc.and_(used, pc.is_valid(table[name]))
    table = table.filter(used)
    if not table.num_rows:
        raise EluteError(f"{path} has no row with {', '.join(columns)} and {value}")
    return path, table, columns, value


def _drop_repeats(table: pa.Table, keys: list[str], value: str, path: str) -> pa.Table:
    """One row for each item; refuses items whose rows do not agree."""
    ids = id_columns(table, keys)
    first = match(ids, ids)
    values = _to_numbers(table, value, path)
    apart = np.unique(first[values != values[first]])
    if len(apart):
        example = describe_row(ids, int(apart[0]))
        raise EluteError(
            f"{path}: {len(apart):,} items have more than one {value}, for instance {example}; keep one each"
        )
    return table.take(pa.array(np.unique(first)))


def _find_item_columns(table: pa.Table, roles: Roles) -> list[str]:
    """The log's names; the usual names where the file has these instead."""
    usual = (DEFAULT_QUERY, DEFAULT_DOC)
    if len(roles.item) == len(usual) and roles.item[0] == roles.query:
        pairs = zip(roles.item, usual, strict=True)
        return [
            name if name in table.column_names or other not in table.column_names else other for name, other in pairs
        ]
    return list(roles.item)


def _to_numbers(table: pa.Table, column: str, place: str) -> Floats:
    try:
        return np.asarray(table[column].cast(pa.float64()).to_numpy(), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise EluteError(f"{place}: column '{column}' has values that are not numbers; write numbers there") from None
