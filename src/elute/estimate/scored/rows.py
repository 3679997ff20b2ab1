"""Cells by score: what remains of a log once items are told apart by query and by what the logging policy made of them.

A score is comparable within the scale it is read at. `raw`: as it is, for one scale over all queries. `query`: less the
query's mean, over its standard deviation. `rank`: the share of the query's items that it is above, ties in the middle.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.cells.counts import Clustered, Counts
from elute.cells.roles import describe_missing
from elute.errors import EluteError
from elute.log import ClickLog, read_log
from elute.progress import Progress

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
ScoreScale = Literal["raw", "query", "rank"]


class ScoredRows(NamedTuple):
    """Cells (query, item, score, factor), equally long arrays of codes and amounts. `query`: the item's own where the
    log has no queries. `item`: within its query."""

    query: Codes
    item: Codes
    score: Floats
    factor: Codes
    shown: Floats
    clicked: Floats
    has_queries: bool


def read_rows(log: ClickLog, column: str, scale: ScoreScale, progress: Progress) -> ScoredRows:
    """The cells of a log by a column of scores."""
    if column not in log.engine.columns:
        raise EluteError(f"{log.engine.label}: {describe_missing(column, log.engine.columns)} for `score=`")
    query = log.roles.query
    if scale != "raw" and query is None:
        raise EluteError(f"`score_scale='{scale}'` is within queries, and {log.engine.label} has none; name `query=`")
    if query is not None and not log.roles.items_within_queries:  # a score is of an item within its query
        with read_log(log.source, **{**log.options, "item": [query, *log.roles.item]}) as within:
            return read_rows(within, column, scale, progress)
    counts = log.counts(progress)
    progress(f"reading {column}", 0, 0)
    rows = counts.read_clusters(column)
    if rows.cluster.min(initial=0) < 0:
        raise EluteError(
            f"{log.engine.label}: column '{column}' is null in some rows; fill them in, or leave them out by `where=`"
        )
    queries = _find_queries(counts)
    score = _read_numbers(rows, column, log.engine.label)[rows.cluster]
    item = rows.item.astype(np.int64)
    score = _rescale(score, queries[item], item, scale)
    order = np.lexsort((score, rows.factor, item))  # engines hand rows over in any order: sums are to be the same
    item, score, factor = item[order], score[order], rows.factor[order].astype(np.int64)
    shown, clicked = (part[order].astype(np.float64) for part in (rows.impressions, rows.clicks))
    return ScoredRows(queries[item], item, score, factor, shown, clicked, query is not None)


def _find_queries(counts: Counts) -> Codes:
    """By item, which is of one query."""
    queries = np.arange(counts.n_items)
    if counts.membership is not None:
        queries[counts.membership.item] = counts.membership.query
    return queries


def _read_numbers(rows: Clustered, column: str, label: str) -> Floats:
    """By cluster, its score."""
    try:
        values = pc.cast(rows.values, pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EluteError(f"{label}: column '{column}' is not of numbers, and `score=` must be") from error
    numbers = np.asarray(values.to_numpy(zero_copy_only=False), np.float64)
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
