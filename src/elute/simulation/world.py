"""A world: ranking data, a policy that shows results, a user who clicks. Pages come in chunks, so that a log of any
length takes the memory of one chunk.

Queries, rankings, contexts and clicks have a random stream each. Were one shared, clicks would correlate with the
noise that made the ranking, and a log could be told from a real one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.kernels.jit import jit
from elute.ranking.data import RankingData
from elute.simulation.policies.base import Policy, Rankings
from elute.simulation.shown import ShownPages
from elute.simulation.users.base import Clicks, User

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDTH = 10
"""Results on a page."""

PAGES_AT_A_TIME = 100_000
"""Pages made at a time: about 50 MB of arrays at 10 results a page."""


@dataclass(frozen=True, eq=False)
class World:
    """`relevance`: P(relevant) by document; `satisfaction` likewise, where it does not follow from relevance.
    `contexts`: how many contexts results may stand in; 0: none."""

    data: RankingData
    policy: Policy
    user: User
    relevance: Floats
    satisfaction: Floats | None = None
    width: int = WIDTH
    contexts: int = 0


class SimulatedPages(NamedTuple):
    """Some result pages, and what was clicked on them."""

    query: Ints
    """The number of each page's query."""
    rankings: Rankings
    context: NDArray[np.int32] | None
    clicks: Clicks


class Streams(NamedTuple):
    """One generator for each kind of chance."""

    queries: np.random.Generator
    rankings: np.random.Generator
    contexts: np.random.Generator
    clicks: np.random.Generator


def spawn_streams(seed: int) -> Streams:
    """Independent generators from one seed."""
    return Streams(*map(np.random.default_rng, np.random.SeedSequence(seed).spawn(4)))


def draw_pages(world: World, sessions: int, chance: Streams, chunk: int = PAGES_AT_A_TIME) -> Iterator[SimulatedPages]:
    """Sessions with queries drawn uniformly (CMIP paper, section 5.1.3), `chunk` at a time."""
    if sessions < 1:
        raise EluteError(f"{sessions} sessions make no log; ask for at least 1")
    sampler = world.policy.sampler(world.data)
    for first in range(0, sessions, chunk):
        query = chance.queries.integers(world.data.n_queries, size=min(chunk, sessions - first))
        rankings = sampler.sample(query, world.width, chance.rankings)
        context = draw_contexts(world, rankings, chance)
        yield SimulatedPages(query, rankings, context, draw_clicks(world, rankings, context, chance))


def draw_contexts(world: World, rankings: Rankings, chance: Streams) -> NDArray[np.int32] | None:
    """A context for every result, uniformly; None in a world without contexts."""
    if world.contexts == 0:
        return None
    return chance.contexts.integers(world.contexts, size=rankings.rows.shape, dtype=np.int32)


def draw_clicks(world: World, rankings: Rankings, context: NDArray[np.int32] | None, chance: Streams) -> Clicks:
    """What the user clicks on these pages."""
    satisfaction = None if world.satisfaction is None else _gather(world.satisfaction, rankings.rows)
    shown = ShownPages(_gather(world.relevance, rankings.rows), rankings.length, satisfaction, context)
    return world.user.draw_clicks(shown, chance.clicks)


@jit
def _gather(values: Floats, rows: NDArray[np.int32]) -> Floats:
    """Values by document where documents are shown; 0 beyond the end of a page."""
    out = np.zeros(rows.shape)
    for page in range(rows.shape[0]):
        for place in range(rows.shape[1]):
            if rows[page, place] >= 0:
                out[page, place] = values[rows[page, place]]
    return out
