"""Rankings to be valued: which document stands at which place, for every query of a log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute._util.matching import describe_row, id_columns, refuse_repeats
from elute._util.text import to_one_line
from elute.cells.roles import DEFAULT_DOC, DEFAULT_QUERY, Roles
from elute.engines.duckdb.source import DuckDBSource
from elute.errors import EluteError
from elute.valuing.inputs.traffic import PageTraffic

Ints = NDArray[np.int64]

RankingSource: TypeAlias = object
"""A path of any format a log may have, or a pandas, polars or Arrow table."""

Missing = Literal["refuse", "logged"]

SCORE, RANK = "score", "rank"
NEVER_SHOWN = -1


@dataclass(frozen=True, eq=False)
class Ranking:
    """Documents of query `q` are `offsets[q]` to `offsets[q + 1]`, best first: codes of the log's items, or
    `NEVER_SHOWN`; `row`: of each among the `ids` of the file it came from. A query without documents here keeps what it
    was shown: `kept`."""

    name: str
    offsets: Ints
    item: Ints
    row: Ints
    kept: NDArray[np.bool_]
    ids: list[pa.Array]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Names:
    """Ids of the log's items, `query` and `doc`, and of its queries, `queries`, as text; `code`: of every item's
    query."""

    query: pa.Array
    doc: pa.Array
    queries: pa.Array
    code: NDArray[np.int32]

    @classmethod
    def read(cls, items: pa.Table, roles: Roles, traffic: PageTraffic) -> Names:
        """Of items that are a query's documents."""
        doc = next(name for name in roles.item if name != roles.query)
        query, document = id_columns(items, [str(roles.query), doc])
        first = np.unique(traffic.query, return_index=True)[1]
        return cls(query, document, query.take(pa.array(first)), traffic.query)

    @cached_property
    def _index(self) -> tuple[pa.Array, Ints, Ints]:
        """Documents, each once; items by their query and document, in rising order; and which items these are."""
        coded = self.doc.dictionary_encode()
        keys = self.code.astype(np.int64) * len(coded.dictionary) + coded.indices.to_numpy()
        order = np.argsort(keys)
        return coded.dictionary, keys[order], order

    def find(self, ids: list[pa.Array]) -> tuple[Ints, Ints]:
        """The log's query of every row, and its item; -1 where there is none. What of the log must be sorted for that
        is sorted once, for all rankings."""
        documents, keys, order = self._index
        query, doc = (_find_codes(*pair) for pair in zip(ids, (self.queries, documents), strict=True))
        wanted = np.where((query >= 0) & (doc >= 0), query * len(documents) + doc, -1)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return query, np.where(keys[at] == wanted, order[at], -1)


def require_documents(roles: Roles, label: str) -> None:
    """Refuse logs whose items are not the documents of a query: their rankings would have no places to fill."""
    if roles.query is None or len(roles.item) != 2 or roles.query not in roles.item:
        raise EluteError(
            f"{label}: relevance belongs to {', '.join(roles.item)}; rankings are valued where it belongs to a query "
            "and a document: leave out `item=`"
        )
    if roles.click is None:
        raise EluteError(f"{label} has no clicks to value a ranking by")


def read_ranking(
    source: RankingSource, name: str, roles: Roles, names: Names, traffic: PageTraffic, missing: Missing
) -> Ranking:
    """A table with the query, the document, and `score` (the higher the better) or `rank` (the lower the better).

    Of equal scores the document first by name stands first."""
    ids, values, place = read_scored(source, f"ranking '{name}'", roles, RANK)
    query, item = names.find(ids)
    if (query < 0).all():
        raise EluteError(
            f"{place} has no query of the log: the log names {to_one_line(names.queries[0])}, the ranking "
            f"{to_one_line(ids[0][0])}; check the ids"
        )
    if (item < 0).all():
        raise EluteError(
            f"no document of {place} was ever shown in the log, which names "
            f"{describe_row([names.query, names.doc], 0)}, the ranking {describe_row(ids, 0)}; check the ids"
        )
    ranked = np.zeros(traffic.n_queries, np.bool_)
    ranked[query[query >= 0]] = True
    notes = _judge_queries(place, ranked, query, names, traffic, missing)
    row = _sort(query, values, ids[1])
    row = row[query[row] >= 0]
    offsets = np.searchsorted(query[row], np.arange(traffic.n_queries + 1))
    return Ranking(name, offsets, item[row], row, ~ranked, ids, tuple(notes))


def read_scored(
    source: RankingSource, what: str, roles: Roles, otherwise: str | None = None
) -> tuple[list[pa.Array], NDArray[np.float64], str]:
    """The queries and documents of a table, each pair once, their scores, and how messages name it. `otherwise`: the
    column of ranks that may stand in place of scores."""
    place = str(source) if isinstance(source, str | Path) else what
    table = DuckDBSource(source, place).read_table()
    columns = _find_columns(table, roles, place)
    for column in columns:
        nulls = table[column].null_count
        if nulls:
            raise EluteError(f"{place}: '{column}' is null in {nulls:,} rows; name every document, or drop the rows")
    if not table.num_rows:
        raise EluteError(f"{place} has no rows; give it a row for every query and document")
    ids = id_columns(table, columns)
    values = _read_scores(table, ids, place, otherwise)
    query, doc = (column.dictionary_encode() for column in ids)
    keys = query.indices.to_numpy().astype(np.int64) * len(doc.dictionary) + doc.indices.to_numpy()
    if len(np.unique(keys)) < len(keys):
        refuse_repeats(ids, place)
    return ids, values, place


def name_rankings(sources: list[RankingSource]) -> list[str]:
    """What to call them: files by their names, numbered where these are not one each."""
    stems = [Path(s).stem if isinstance(s, str | Path) else f"ranking {n}" for n, s in enumerate(sources, 1)]
    return [stem if stems.count(stem) == 1 else f"{stem} ({stems[:n].count(stem) + 1})" for n, stem in enumerate(stems)]


def _judge_queries(
    place: str, ranked: NDArray[np.bool_], query: Ints, names: Names, traffic: PageTraffic, missing: Missing
) -> list[str]:
    """What to say of queries that only the log has, or only the ranking."""
    notes, lost = [], np.flatnonzero(~ranked)
    if len(lost):
        share = traffic.pages[lost].sum() / traffic.pages.sum()
        words = f"{len(lost):,} of the log's {traffic.n_queries:,} queries ({share:.1%} of the pages)"
        if missing == "refuse":
            example = to_one_line(names.queries[int(lost[0])])
            raise EluteError(
                f"{place} does not rank {words}, for instance {example}; rank them too, or say with `missing='logged'` "
                "that they keep what was shown"
            )
        notes.append(f"{place} does not rank {words}: they keep what was shown")
    beyond = int((query < 0).sum())
    if beyond:
        notes.append(f"{place}: {beyond:,} rows are of queries that the log does not have, and count for nothing")
    return notes


def _find_columns(table: pa.Table, roles: Roles, place: str) -> list[str]:
    """The log's names; the usual names where the file has these instead."""
    doc = next(name for name in roles.item if name != roles.query)
    found = []
    for name, usual in ((str(roles.query), DEFAULT_QUERY), (doc, DEFAULT_DOC)):
        found.append(usual if name not in table.column_names and usual in table.column_names else name)
    lacking = [name for name in found if name not in table.column_names]
    if lacking:
        raise EluteError(f"{place} has no column '{lacking[0]}'; a ranking needs {', '.join(found)} and score or rank")
    return found


def _read_scores(table: pa.Table, ids: list[pa.Array], place: str, otherwise: str | None) -> NDArray[np.float64]:
    """The higher the better."""
    column = SCORE if SCORE in table.column_names or otherwise is None else otherwise
    if column not in table.column_names:
        wanted = SCORE if otherwise is None else f"{SCORE}' or '{otherwise}"
        raise EluteError(f"{place} has no column '{wanted}'; it has: {', '.join(table.column_names)}")
    try:
        values = np.asarray(table[column].cast(pa.float64()).to_numpy(), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise EluteError(f"{place}: column '{column}' has values that are not numbers; write numbers there") from None
    lacking = np.flatnonzero(~np.isfinite(values))
    if len(lacking):
        example = describe_row(ids, int(lacking[0]))
        raise EluteError(
            f"{place}: {len(lacking):,} rows have no finite {column}, for instance {example}; give each a number, or "
            "drop it"
        )
    return values if column == SCORE else -values


def _find_codes(values: pa.Array, known: pa.Array) -> Ints:
    """The place of each value among those known; -1 where it is not there."""
    found = pc.index_in(values, value_set=known).fill_null(-1)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)


def _sort(query: Ints, values: NDArray[np.float64], names: pa.Array) -> Ints:
    """Rows by query, best first; names are looked at only where scores are equal."""
    row = np.lexsort((-values, query))
    tied = (np.diff(query[row]) == 0) & (np.diff(values[row]) == 0)
    return np.lexsort((_rank_names(names), -values, query)) if tied.any() else row


def _rank_names(names: pa.Array) -> Ints:
    values = names.dictionary_encode()
    order = pc.rank(values.dictionary, sort_keys="ascending", tiebreaker="first").to_numpy()
    return np.asarray(order[values.indices.to_numpy()], np.int64)
