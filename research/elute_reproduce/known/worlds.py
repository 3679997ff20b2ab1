"""Worlds from dense to very sparse, and some that break what the measure assumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Generator = np.random.Generator

PLACES = 10
_DOCS = 14


@dataclass(frozen=True)
class SearchWorld:
    """Queries of 14 documents, ten of which a noisy ranker shows on every page; `o` falls with the position's power
    `eta`. `spread`: of pages over queries (log-normal). `noise`: of the ranker's opinion. `users`: people who share the
    pages, None where each page has its own; `level`: half of them click so much more than the mean, half so much less.
    `trust`: clicks on what
    is not relevant, at position 1. `cascade`: a page ends with its first click. `relevance`: drawn by query and doc."""

    queries: int
    pages: float
    relevance: Callable[[Generator, tuple[int, int]], Floats] = lambda rng, size: rng.beta(1, 6, size)
    spread: float = 0.0
    noise: float = 1.0
    eta: float = 1.0
    users: int | None = None
    level: float = 0.0
    trust: float = 0.0
    cascade: bool = False
    rung: str = ""
    """What it must come out as; empty where either of two may be right."""

    def draw(self, rng: Generator) -> tuple[pa.Table, Floats]:
        """A log, and the true relevance by query and document."""
        truth = self.relevance(rng, (self.queries, _DOCS))
        opinion = np.log(truth + 0.02) + self.noise * rng.normal(size=truth.shape)
        tail = np.exp(self.spread * rng.normal(size=self.queries) - self.spread**2 / 2)
        query = np.repeat(np.arange(self.queries), np.maximum(1, rng.poisson(self.pages * tail)))
        n = len(query)
        jitter = 0.7 * rng.normal(size=(n, _DOCS))
        shown = np.argsort(-(opinion[query] + jitter), axis=1)[:, :PLACES]
        user = np.arange(n) if self.users is None else rng.integers(self.users, size=n)
        keen = 1.0 + self.level * rng.choice([-1.0, 1.0], int(user.max()) + 1)[user]
        seen = 1.0 / np.arange(1, PLACES + 1) ** self.eta
        r = truth[query[:, None], shown]
        p = (r + self.trust * (1 - r) * seen) * seen * keen[:, None]
        click = rng.random(p.shape) < p
        if self.cascade:
            click &= np.cumsum(click, axis=1) == 1
        return (
            pa.table(
                {
                    "query_id": np.repeat(query, PLACES),
                    "doc_id": shown.ravel(),
                    "position": np.tile(np.arange(1, PLACES + 1), n),
                    "click": click.ravel().astype(np.int8),
                    "user_id": np.repeat(user, PLACES),
                }
            ),
            truth,
        )


def draw_grades(rng: Generator, size: tuple[int, int]) -> Floats:
    """Four values, as from graded documents."""
    return np.asarray(rng.choice([0.03, 0.1, 0.25, 0.5], p=[0.5, 0.25, 0.15, 0.1], size=size))


def draw_low(rng: Generator, size: tuple[int, int]) -> Floats:
    """Low enough that a user may click twice as often."""
    return np.asarray(0.5 * rng.beta(1, 3, size))


def draw_high(rng: Generator, size: tuple[int, int]) -> Floats:
    return rng.beta(3, 3, size)


WORLDS: Mapping[str, SearchWorld] = {
    "dense": SearchWorld(75, 400, rung="known"),
    "medium": SearchWorld(600, 50, rung="known"),
    "sparse": SearchWorld(2_000, 3, rung="loose"),
    "very sparse": SearchWorld(2_500, 1, rung="loose"),
    "few popular queries": SearchWorld(1_500, 4, spread=1.5, rung="loose"),
    "four grades, dense": SearchWorld(75, 400, draw_grades, rung="known"),
    "four grades, sparse": SearchWorld(2_000, 3, draw_grades, rung="loose"),
    "many clicks": SearchWorld(200, 50, draw_high, rung="known"),
    "a good ranker": SearchWorld(500, 40, noise=0.2),
    "a random ranker": SearchWorld(500, 40, noise=5.0),
    "pages that differ": SearchWorld(500, 40, draw_low, level=0.9),
    "users who come again": SearchWorld(500, 40, draw_low, users=150, level=0.9),
    "pages end with a click": SearchWorld(75, 250, cascade=True),
    "clicks on trust": SearchWorld(75, 250, trust=0.1),
}
"""The last five break an assumption, or come near to it."""


def add_rows(log: pa.Table, query: list[int], doc: list[int], position: list[int], click: list[int]) -> pa.Table:
    """The log with some impressions more."""
    more = {"query_id": query, "doc_id": doc, "position": position, "click": click, "user_id": [0] * len(query)}
    return pa.concat_tables([log, pa.table(more).cast(log.schema)])


def draw_thin(rng: Generator) -> tuple[pa.Table, Floats]:
    """A known log, and nine results that once stood far below."""
    log, truth = replace(WORLDS["medium"], queries=300).draw(rng)
    places = list(range(41, 50))
    return add_rows(log, [10_000 + place for place in places], [0] * 9, places, [0] * 9), truth


def draw_six(rng: Generator) -> tuple[pa.Table, Floats]:
    """A known log, and a position seen six times and clicked each time."""
    log, truth = replace(WORLDS["medium"], queries=300).draw(rng)
    return add_rows(log, [0] * 6, list(range(6)), [12] * 6, [1] * 6), truth


def draw_dead(rng: Generator) -> tuple[pa.Table, Floats]:
    """Two pairs of positions, joined by one item that was shown 1,000 times and never clicked."""
    truth = rng.beta(2, 3, (200, 1))
    rows = [(q, 0, place) for q in range(200) for place in ((1, 2) if q < 100 else (3, 4)) for _ in range(50)]
    query, doc, position = map(np.array, zip(*rows, strict=True))
    click = (rng.random(len(query)) < truth[query, 0] / position).astype(np.int8)
    table = {"query_id": query, "doc_id": doc, "position": position, "click": click, "user_id": np.arange(len(query))}
    joined = [10_000] * 1_000, [0] * 1_000, [2] * 500 + [3] * 500, [0] * 1_000
    return add_rows(pa.table(table), *joined), truth


def draw_lone(rng: Generator) -> tuple[pa.Table, Floats]:
    """Fifteen positions, each with documents of its own: a study whose pages never change."""
    query, position = (part.ravel() for part in np.meshgrid(np.arange(300), np.arange(1, 16), indexing="ij"))
    click = (rng.random(len(query)) < 0.4 / position).astype(np.int8)
    table = {"query_id": query, "doc_id": position, "position": position, "click": click, "user_id": query}
    return pa.table(table), np.empty((0, 0))


SHAPES: Mapping[str, tuple[Callable[[Generator], tuple[pa.Table, Floats]], str]] = {
    "nine results far below": (draw_thin, "apart"),
    "a position seen six times": (draw_six, "loose"),
    "a link that was never clicked": (draw_dead, "linked"),
    "fifteen lone positions": (draw_lone, "apart"),
}
"""Shapes of real logs that structure alone gets wrong, and the rung each must be at."""
