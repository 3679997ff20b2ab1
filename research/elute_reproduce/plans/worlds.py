"""Search engines whose logs are apart, and what happens if results are shown elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.ranking.data import RankingData
from elute.repair.plan import SwapPlan
from elute.simulation.policies.base import Rankings
from elute.simulation.policies.scored import Scored
from elute.simulation.shown import ShownPages
from elute.simulation.swaps import draw_swapped_pages
from elute.simulation.users.contextual import ContextualPositionBased
from elute.simulation.users.position import PositionBased
from elute.simulation.world import SimulatedPages, Streams, World, draw_clicks, draw_contexts, draw_pages

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PLACES = 10
_DOCUMENTS = 14
_GAP = 60.0
"""Between scores of two blocks of a page, in units of the noise: no document ever crosses."""


@dataclass(frozen=True)
class ApartWorld:
    """`queries` of 14 documents, of which ten are shown; `blocks`: where the page is cut, so that documents change
    places within blocks only; `noise` of the ranker within them. `contexts`: kinds of results, drawn for every
    result. `fold`: what is left of examination beyond the first block."""

    queries: int
    pages: int
    blocks: tuple[int, ...]
    noise: float = 1.0
    contexts: int = 0
    fold: float = 1.0

    @property
    def bias(self) -> str:
        return "position,context" if self.contexts else "position"

    def build(self, rng: np.random.Generator) -> World:
        """Documents whose relevance the ranker knows roughly, and a user who sees position k with 1/k^0.8."""
        relevance = rng.beta(1.2, 4.0, (self.queries, _DOCUMENTS))
        believed = np.argsort(-np.log(relevance) - rng.gumbel(size=relevance.shape) * 0.7, axis=1)
        relevance = np.take_along_axis(relevance, believed, axis=1)
        place = np.arange(_DOCUMENTS)
        block = np.searchsorted(self.blocks, place, side="right")
        scores = np.tile(-_GAP * block - self.noise * place, (self.queries, 1))
        data = RankingData(
            np.zeros((relevance.size, 1), np.float32),
            np.zeros(relevance.size, np.int32),
            np.arange(self.queries + 1) * _DOCUMENTS,
            np.array([f"q{q}" for q in range(self.queries)]),
            np.array([f"d{d}" for _ in range(self.queries) for d in range(_DOCUMENTS)]),
        )
        seen = np.arange(1.0, PLACES + 1) ** -0.8
        seen[self.blocks[0] :] *= self.fold
        user: PositionBased | ContextualPositionBased = PositionBased(seen)
        if self.contexts:
            slope = np.linspace(-0.4, 0.4, self.contexts)[:, None]
            user = ContextualPositionBased(slope, np.ones(1), seen)
        policy = Scored(scores.ravel(), temperature=1.0)
        return World(data, policy, user, relevance.ravel(), width=PLACES, contexts=self.contexts)


FOLD = "a fold where pages are cut"

WORLDS = {
    "two blocks": ApartWorld(100, 20_000, (4,)),
    "three blocks": ApartWorld(100, 30_000, (3, 6)),
    "queries that come rarely": ApartWorld(2_000, 24_000, (4,)),
    "with contexts": ApartWorld(60, 40_000, (5,), contexts=3),
    FOLD: ApartWorld(100, 20_000, (4,), fold=0.5),
}


def to_table(world: World, parts: list[SimulatedPages]) -> pa.Table:
    """The rows of these pages."""
    rows = np.concatenate([part.rankings.rows for part in parts])
    clicks = np.concatenate([part.clicks for part in parts])
    page, place = np.nonzero(rows >= 0)
    doc = rows[page, place]
    columns = {
        "session_id": page,
        "query_id": world.data.queries[world.data.query_of[doc]],
        "doc_id": world.data.documents[doc],
        "position": place + 1,
        "click": clicks[page, place],
    }
    if world.contexts:
        context = np.concatenate([part.context for part in parts if part.context is not None])
        columns["context"] = context[page, place]
    return pa.table(columns)


def truth_of(world: World, factors: pa.Table) -> Floats:
    """The true propensity of every factor."""
    propensities = world.user.propensities
    if propensities is None:
        raise ValueError("a user without propensities")
    place = factors["position"].to_numpy() - 1
    context = () if propensities.ndim == 1 else (factors["context"].to_numpy(),)
    return np.asarray(propensities[(*context, place)])


class PagesShown(NamedTuple):
    """Pages that were shown elsewhere, and how many clicks they cost, in expectation over clicks alone."""

    pages: list[SimulatedPages]
    lost: float


def draw_log(world: World, pages: int, chance: Streams) -> list[SimulatedPages]:
    """As the search engine shows it."""
    return list(draw_pages(world, pages, chance))


def carry_out(world: World, plan: SwapPlan, chance: Streams) -> PagesShown:
    """Show what a plan asks for, as `elute simulate --swap` does; what users lose is compared with as many pages of the
    same queries as they are."""
    pages = list(draw_swapped_pages(world, plan, chance))
    lost = sum(_expect_usual(world, part) - _expect_clicks(world, part.rankings, part.context) for part in pages)
    return PagesShown(pages, float(lost))


def _expect_usual(world: World, part: SimulatedPages, repeats: int = 20) -> float:
    """Clicks that pages of these queries get as they are, a mean over rankings."""
    chance = Streams(*(np.random.default_rng([7, len(part.query), n]) for n in range(4)))
    sampler = world.policy.sampler(world.data)
    total = 0.0
    for _ in range(repeats):
        rankings = sampler.sample(part.query, world.width, chance.rankings)
        total += _expect_clicks(world, rankings, draw_contexts(world, rankings, chance))
    return total / repeats


def _expect_clicks(world: World, rankings: Rankings, context: NDArray[np.int32] | None) -> float:
    relevance = np.where(rankings.rows >= 0, world.relevance[rankings.rows], 0.0)
    return float(world.user.probabilities(ShownPages(relevance, rankings.length, None, context)).sum())


def experiment(world: World, name: str, pages: int, chance: Streams) -> PagesShown:
    """Pages of a standard experiment: `top k` shuffles the page, `FairPairs` and `RandPair` swap neighbours."""
    sampler = world.policy.sampler(world.data)
    query = chance.queries.integers(world.data.n_queries, size=pages)
    rankings = sampler.sample(query, world.width, chance.rankings)
    context = draw_contexts(world, rankings, chance)
    before = _expect_clicks(world, rankings, context)
    rows = rankings.rows.copy()
    if name == "FairPairs":
        even = chance.queries.random(pages) < 0.5
        for first in range(PLACES - 1):
            swap = (even if first % 2 == 0 else ~even) & (chance.queries.random(pages) < 0.5)
            rows[swap, first], rows[swap, first + 1] = rows[swap, first + 1], rows[swap, first]
    elif name == "RandPair":
        upper, at = chance.queries.integers(PLACES - 1, size=pages), np.arange(pages)
        rows[at, upper], rows[at, upper + 1] = rows[at, upper + 1], rows[at, upper]
    else:
        rows = chance.queries.permuted(rows, axis=1)
    shuffled = Rankings(rows, rankings.length)
    after = _expect_clicks(world, shuffled, context)
    clicks = draw_clicks(world, shuffled, context, chance)
    return PagesShown([SimulatedPages(query, shuffled, context, clicks)], before - after)
