"""Cells by score: what remains of a log once items are told apart by query and by what the logging policy made of them.

A score is comparable within the scale it is read at. `raw`: as it is, for one scale over all queries. `query`: less the
query's mean, over its standard deviation. `rank`: the share of the query's items that it is above, ties in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.cells.roles import ColumnNames, describe_missing
from elute.errors import EluteError
from elute.log import ClickLog, read_log
from elute.progress import Progress

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
ScoreScale = Literal["raw", "query", "rank"]


class ScoredRows(NamedTuple):
    """Cells (query, item, scores, factor), equally long arrays of codes and amounts. `query`: the item's own where the
    log has no queries. `item`: within its query. `whole`: the item as the log has it, which may be in several queries.
    `score`: a column for each column of scores."""

    query: Codes
    item: Codes
    whole: Codes
    score: Floats
    factor: Codes
    shown: Floats
    clicked: Floats
    has_queries: bool


def list_scores(given: ColumnNames) -> tuple[str, ...]:
    """The names of columns of scores."""
    names = given.split(",") if isinstance(given, str) else given
    return tuple(dict.fromkeys(name.strip() for name in names))


def read_rows(log: ClickLog, columns: Sequence[str], scale: ScoreScale, progress: Progress) -> ScoredRows:
    """The cells of a log by columns of scores."""
    for column in columns:
        if column not in log.engine.columns:
            raise EluteError(f"{log.engine.label}: {describe_missing(column, log.engine.columns)} for `score=`")
    query = log.roles.query
    if scale != "raw" and query is None:
        raise EluteError(f"`score_scale='{scale}'` is within queries, and {log.engine.label} has none; name `query=`")
    apart = query is not None and not log.roles.items_within_queries  # a score is of an item within its query
    if not apart and len(columns) == 1:
        return _read(log, log, columns, scale, progress)
    named = [*([query] if apart else []), *log.roles.item]
    finer = [*named, *(column for column in columns[1:] if column not in named)]
    with read_log(log.source, **{**log.options, "item": finer}) as fine:
        return _read(fine, log, columns, scale, progress)


def _read(fine: ClickLog, log: ClickLog, columns: Sequence[str], scale: ScoreScale, progress: Progress) -> ScoredRows:
    """`fine`: the log with items that are told apart by query and by all scores but the first."""
    counts, label = fine.counts(progress), log.engine.label
    progress(f"reading {', '.join(columns)}", 0, 0)
    rows = counts.read_clusters(columns[0])
    if rows.cluster.min(initial=0) < 0:
        raise EluteError(
            f"{label}: column '{columns[0]}' is null in some rows; fill them in, or leave them out by `where=`"
        )
    owner, queries = rows.item.astype(np.int64), _find_queries(counts)
    scores = [_read_numbers(rows.values, columns[0], label)[rows.cluster]]
    scores += [_read_numbers(counts.items[column].combine_chunks(), column, label)[owner] for column in columns[1:]]
    item = whole = np.arange(counts.n_items)
    if fine is not log:
        whole = _find_rows(counts.items, log.counts(progress).items)
        item = np.unique(np.stack((queries, whole)), axis=1, return_inverse=True)[1].reshape(-1)
    query, whole, item = queries[owner], whole[owner], item[owner]
    score = np.stack([_rescale(one, query, item, scale) for one in scores], axis=1)
    factor = rows.factor.astype(np.int64)
    order = np.lexsort((*score.T, factor, item))  # engines hand rows over in any order: sums are to be the same
    shown, clicked = (part[order].astype(np.float64) for part in (rows.impressions, rows.clicks))
    query, item, whole = (part[order] for part in (query, item, whole))
    return ScoredRows(query, item, whole, score[order], factor[order], shown, clicked, log.roles.query is not None)


def _find_rows(items: pa.Table, among: pa.Table) -> Codes:
    """By row of a table, the row of another that has the same values in all of its columns."""
    both = pa.concat_tables([among, items.select(among.column_names)])
    code = np.zeros(both.num_rows, np.int64)
    for column in both.column_names:
        own = both[column].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
        code = np.unique(np.stack((code, own.astype(np.int64))), axis=1, return_inverse=True)[1].reshape(-1)
    place = np.empty(among.num_rows, np.int64)
    place[code[: among.num_rows]] = np.arange(among.num_rows)
    return place[code[among.num_rows :]]


def _find_queries(counts: Counts) -> Codes:
    """By item, which is of one query."""
    queries = np.arange(counts.n_items)
    if counts.membership is not None:
        queries[counts.membership.item] = counts.membership.query
    return queries


def _read_numbers(values: pa.Array | None, column: str, label: str) -> Floats:
    """Scores, as numbers."""
    try:
        casted = pc.cast(values, pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EluteError(f"{label}: column '{column}' is not of numbers, and `score=` must be") from error
    numbers = np.asarray(casted.to_numpy(zero_copy_only=False), np.float64)
    if not np.isfinite(numbers).all():
        raise EluteError(f"{label}: column '{column}' has values that are not finite; leave them out by `where=`")
    return numbers


def _rescale(score: Floats, query: Codes, item: Codes, scale: ScoreScale) -> Floats:
    """Each score of an item counts once, however often and wherever it was shown."""
    if scale == "raw":
        return score
    keys = np.stack((query.astype(np.float64), item.astype(np.float64), score), axis=1)
    each, at = np.unique(keys, axis=0, return_inverse=True)
    own, value = each[:, 0].astype(np.int64), each[:, 2]
    at, own = at.reshape(-1), np.unique(own, return_inverse=True)[1]
    number = np.bincount(own)
    if scale == "query":
        centred = value - (np.bincount(own, value) / number)[own]
        spread = np.sqrt(np.bincount(own, centred**2) / number)[own]
        return cast(Floats, np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)[at])
    return _rank(value, own, number)[at]


def _rank(value: Floats, group: Codes, number: Codes) -> Floats:
    """The share of a group's values below each, those equal to it by half."""
    order = np.lexsort((value, group))
    first = np.r_[0, np.cumsum(number)[:-1]]
    place = np.arange(len(value)) - first[group[order]]
    new = np.r_[True, (np.diff(group[order]) != 0) | (np.diff(value[order]) != 0)]
    tie = np.cumsum(new) - 1
    middle = np.bincount(tie, place + 0.5) / np.bincount(tie)
    out = np.empty(len(value))
    out[order] = middle[tie] / number[group[order]]
    return out
