"""Cells by query: which places the pages of a query have, and how often they come.

Every page of a query shows one item at each of its places. So the impressions of a query's items under a factor are the
pages of the query that have this place, and an item can be shown there as often as such pages come.

Queries and items stand in an order that does not hang on where the log was counted (`elute.known.canonical`): of
equally good swaps the first is taken, so that one log has one plan.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.canonical import hash_items
from elute.cells.counts import Cells, Counts
from elute.checking.check import Check
from elute.kernels.jit import jit
from elute.known.canonical import rank_items, rank_queries

Ints = NDArray[np.int64]


class Traffic(NamedTuple):
    """Rows (item, factor, impressions), those of a query together and in it those of an item: query `q` owns
    `offsets[q]` to `offsets[q + 1]`. `names`: of queries; None where the log has none and all of it counts as one."""

    offsets: Ints
    item: Ints
    factor: Ints
    impressions: Ints
    names: pa.Array | None


def find_traffic(check: Check) -> Traffic:
    """Of the log that was checked."""
    counts, roles = check.counts, check.log.roles
    every = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
    hashed = hash_items(Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks))
    rank = rank_items(hashed)
    if roles.query is None or counts.membership is None:
        return _sort(np.zeros_like(every), rank, every, counts.factor.astype(np.int64), _widen(counts), None)
    if not roles.items_within_queries:
        rows = counts.read_clusters(roles.query)
        query, item, factor, shown = (np.asarray(column, np.int64) for column in rows[:4])
        return _sort(query, rank, item, factor, shown, rows.values)
    members, of_item = counts.membership, np.zeros(counts.n_items, np.int64)
    of_item[members.item] = rank_queries(hashed, members.item, members.query, members.queries)[members.query]
    return _sort(of_item[every], rank, every, counts.factor.astype(np.int64), _widen(counts), None)


def _widen(counts: Counts) -> Ints:
    return counts.impressions.astype(np.int64)


def _sort(
    query: Ints, rank: NDArray[np.integer], item: Ints, factor: Ints, impressions: Ints, names: pa.Array | None
) -> Traffic:
    order = np.lexsort((factor, rank[item], query))
    offsets = np.searchsorted(query[order], np.arange(int(query.max(initial=-1)) + 2))
    return Traffic(offsets, item[order], factor[order], impressions[order], names)


def count_pages(traffic: Traffic, kind: Ints, place: Ints) -> Ints:
    """Pages of every query: of each kind those of the place that most of them have."""
    return _count_pages(traffic.offsets, traffic.factor, traffic.impressions, kind, place)


@jit
def _count_pages(offsets: Ints, factor: Ints, shown: Ints, kind: Ints, place: Ints) -> Ints:
    out = np.zeros(offsets.shape[0] - 1, np.int64)
    seen, most = np.zeros(int(place.max()) + 1, np.int64), np.zeros(int(kind.max()) + 1, np.int64)
    for q in range(out.shape[0]):
        for row in range(offsets[q], offsets[q + 1]):
            t = factor[row]
            seen[place[t]] += shown[row]
            most[kind[t]] = max(most[kind[t]], seen[place[t]])
        for row in range(offsets[q], offsets[q + 1]):
            t = factor[row]
            out[q] += most[kind[t]]
            seen[place[t]], most[kind[t]] = 0, 0
    return out
