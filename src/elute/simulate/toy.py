"""A small log to try things on: position-based clicks on rankings that move, or do not move, documents.

In the sound log a document changes places with its neighbour now and then, so that chains of documents
link all positions. In the broken one the page has two blocks (positions 1 to 4 and 5 to 10), filled by
two systems: documents move within a block, never across, and nothing tells the propensities of one block
from those of the other. Queries with at most four results lie in one block and can still be ranked.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from elute.simulate.grades import PROPENSITIES

_BLOCK = 4
_SHORT_SHARE = 0.25
_SWAP_SHARE = 0.2


def simulate(sessions: int, queries: int, broken: bool, seed: int) -> pa.Table:
    """A log with `session_id, query_id, doc_id, position, click`."""
    streams = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(4)]
    world, visits, rankings, clicks = streams
    positions = len(PROPENSITIES)
    relevance = world.uniform(0.1, 1.0, size=(queries, positions))
    length = np.where(world.random(queries) < _SHORT_SHARE, _BLOCK, positions)

    query = visits.integers(queries, size=sessions)
    order = np.tile(np.arange(positions), (sessions, 1))
    for upper in rankings.permutation(positions - 1):
        if broken and upper == _BLOCK - 1:
            continue
        swap = rankings.random(sessions) < _SWAP_SHARE
        swap &= upper + 1 < length[query]
        order[swap, upper], order[swap, upper + 1] = order[swap, upper + 1], order[swap, upper]

    shown = np.arange(positions) < length[query][:, None]
    session, position = np.nonzero(shown)
    doc = order[session, position]
    probability = relevance[query[session], doc] * np.array(PROPENSITIES)[position]
    return pa.table(
        {
            "session_id": session,
            "query_id": [f"q{q:03d}" for q in query[session]],
            "doc_id": [f"q{q:03d}-d{d:02d}" for q, d in zip(query[session], doc, strict=True)],
            "position": pa.array(position + 1, pa.int32()),
            "click": clicks.random(len(doc)) < probability,
        }
    )
