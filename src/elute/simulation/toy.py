"""A small log to try things on: position-based clicks on rankings that move, or do not move, documents.

In the sound log a document changes places with its neighbour now and then, so that chains of documents
link all positions. In the broken one the page has two blocks (positions 1 to 4 and 5 to 10), filled by
two systems: documents move within a block, never across, and nothing tells the propensities of one block
from those of the other. Queries with at most four results lie in one block and can still be ranked.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.repair.plan import SwapPlan
from elute.simulation.grades import PROPENSITIES

Ints = NDArray[np.int64]

_BLOCK = 4
_SHORT_SHARE = 0.25
_SWAP_SHARE = 0.2
_LEAST = 0.1
_GRADES = 5


def draw_truth(queries: int, seed: int) -> pa.Table:
    """What `simulate` with the same seed draws clicks from: `query_id, doc_id, relevance`; as `grade` its fifth of the
    scale, from 0; as `score` what the rankings start from before documents change places."""
    relevance = _draw_relevance(_spawn_streams(seed)[0], queries)
    query, doc = np.indices(relevance.shape).reshape(2, -1)
    return pa.table(
        {
            "query_id": [f"q{q:03d}" for q in query],
            "doc_id": [f"q{q:03d}-d{d:02d}" for q, d in zip(query, doc, strict=True)],
            "relevance": relevance.ravel(),
            "grade": pa.array(np.floor((relevance.ravel() - _LEAST) / (1.0 - _LEAST) * _GRADES), pa.int32()),
            "score": -doc.astype(np.float64),
        }
    )


def simulate(sessions: int, queries: int, broken: bool, seed: int, swaps: SwapPlan | None = None) -> pa.Table:
    """A log with `session_id, query_id, doc_id, position, click`. `swaps`: a plan whose pages follow the others; on
    each, a document changes places with what stands at its new position."""
    world, visits, rankings, clicks = _spawn_streams(seed)
    relevance = _draw_relevance(world, queries)
    length = np.where(world.random(queries) < _SHORT_SHARE, _BLOCK, len(PROPENSITIES))
    query = visits.integers(queries, size=sessions)
    log = _show_pages(0, query, _draw_orders(query, length, broken, rankings), length, relevance, clicks)
    if swaps is None:
        return log
    query, doc, place = _list_pages(swaps)
    order = _draw_orders(query, length, broken, rankings)
    page = np.arange(len(query))
    was = (order == doc[:, None]).argmax(axis=1)
    order[page, was] = order[page, place]
    order[page, place] = doc
    return pa.concat_tables([log, _show_pages(sessions, query, order, length, relevance, clicks)])


def _list_pages(swaps: SwapPlan) -> tuple[Ints, Ints, Ints]:
    """The query, the document and its place (from 0) of every page of a plan."""
    pages = [swap.impressions for swap in swaps.swaps]
    query = [int(str(swap.item["query_id"])[1:]) for swap in swaps.swaps]
    doc = [int(str(swap.item["doc_id"]).rpartition("-d")[2]) for swap in swaps.swaps]
    place = [int(swap.target["position"]) - 1 for swap in swaps.swaps]
    return np.repeat(query, pages), np.repeat(doc, pages), np.repeat(place, pages)


def _draw_orders(query: Ints, length: Ints, broken: bool, rankings: np.random.Generator) -> Ints:
    """By page, the document at every position: neighbours changed places now and then."""
    positions = len(PROPENSITIES)
    order = np.tile(np.arange(positions), (len(query), 1))
    for upper in rankings.permutation(positions - 1):
        if broken and upper == _BLOCK - 1:
            continue
        swap = rankings.random(len(query)) < _SWAP_SHARE
        swap &= upper + 1 < length[query]
        order[swap, upper], order[swap, upper + 1] = order[swap, upper + 1], order[swap, upper]
    return order


def _show_pages(
    first: int, query: Ints, order: Ints, length: Ints, relevance: NDArray[np.float64], clicks: np.random.Generator
) -> pa.Table:
    """Rows of these pages, numbered from `first`, with clicks."""
    session, position = np.nonzero(np.arange(order.shape[1]) < length[query][:, None])
    doc = order[session, position]
    probability = relevance[query[session], doc] * np.array(PROPENSITIES)[position]
    return pa.table(
        {
            "session_id": first + session,
            "query_id": [f"q{q:03d}" for q in query[session]],
            "doc_id": [f"q{q:03d}-d{d:02d}" for q, d in zip(query[session], doc, strict=True)],
            "position": pa.array(position + 1, pa.int32()),
            "click": clicks.random(len(doc)) < probability,
        }
    )


def _spawn_streams(seed: int) -> list[np.random.Generator]:
    """One for each part of the world, so that none depends on how much another draws."""
    return [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(4)]


def _draw_relevance(world: np.random.Generator, queries: int) -> NDArray[np.float64]:
    """By query and document."""
    return world.uniform(_LEAST, 1.0, size=(queries, len(PROPENSITIES)))
