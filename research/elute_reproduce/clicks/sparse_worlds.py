"""Worlds of `clicks-sparse`: pages that a ranker which knows something made, clicked by users of a known kind."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.clicks import Sessions

Floats = NDArray[np.float64]

RANKS, DEPTH = 10, 14
"""Results on a page, and documents of a query: the ranker shows the better ones, with noise."""

EXAMINATION = np.array([1.0, 0.75, 0.6, 0.5, 0.4, 0.34, 0.28, 0.22, 0.18, 0.15])
"""By rank where nothing was clicked."""

GAMMA, ALPHA = 0.85, (0.9, 0.7, 0.35)
"""Of the DBN user; of the CCM user."""


class SparseWorld(NamedTuple):
    """Pages to fit and pages to judge on, how many documents there are, and what the user's own model says of the
    latter: P(click | clicks above)."""

    train: Sessions
    test: Sessions
    documents: int
    truth: Floats


def browse_table() -> Floats:
    """Examination by (rank, distance), from 0: a click makes the places below it likelier to be read."""
    table = np.full((RANKS, RANKS), np.nan)
    for rank in range(RANKS):
        for distance in range(rank):
            table[rank, distance] = 0.25 * EXAMINATION[rank] + 0.4 * 0.8**distance
        table[rank, rank] = EXAMINATION[rank]
    return table


def draw_world(user: str, impressions: float, pages: int, rng: np.random.Generator) -> SparseWorld:
    """`impressions`: of a document of the pages to fit, on average. Queries are drawn evenly."""
    queries = max(int(pages * RANKS / impressions / RANKS), 1)
    attraction = rng.beta(0.8, 2.4, (queries, DEPTH))
    known = 0.6 * (attraction - attraction.mean()) / attraction.std() + 0.8 * rng.normal(size=attraction.shape)
    satisfaction = rng.beta(2.0, 2.0, (queries, DEPTH))

    def show(amount: int) -> tuple[Sessions, Floats]:
        query = rng.integers(0, queries, amount)
        noisy = known[query] + 0.6 * rng.normal(size=(amount, DEPTH))
        order = np.argsort(-noisy, axis=1)[:, :RANKS]
        a, s = (np.take_along_axis(values[query], order, axis=1) for values in (attraction, satisfaction))
        clicks, p = (_browse if user in ("pbm", "ubm") else _chain)(user, a, s, rng)
        doc = query[:, None] * DEPTH + order
        return Sessions.from_arrays(doc, clicks, query=query), p

    train, _ = show(pages)
    test, truth = show(pages)
    return SparseWorld(train, test, queries * DEPTH, truth)


def _browse(user: str, a: Floats, _: Floats, rng: np.random.Generator) -> tuple[NDArray[np.uint8], Floats]:
    table, last = browse_table(), np.zeros(len(a), np.int64)
    clicks, p = np.zeros(a.shape, np.uint8), np.zeros(a.shape)
    for rank in range(RANKS):
        p[:, rank] = a[:, rank] * (EXAMINATION[rank] if user == "pbm" else table[rank, rank - last])
        clicked = rng.random(len(a)) < p[:, rank]
        clicks[:, rank], last = clicked, np.where(clicked, rank + 1, last)
    return clicks, p


def _chain(user: str, a: Floats, s: Floats, rng: np.random.Generator) -> tuple[NDArray[np.uint8], Floats]:
    """A click proves that a place was read; `e` is the probability that the next one is, given the clicks so far."""
    on_skip = GAMMA if user == "dbn" else ALPHA[0]
    on_click = GAMMA * (1.0 - s) if user == "dbn" else ALPHA[1] * (1.0 - a) + ALPHA[2] * a
    reads, e = np.ones(len(a), np.bool_), np.ones(len(a))
    clicks, p = np.zeros(a.shape, np.uint8), np.zeros(a.shape)
    for rank in range(RANKS):
        p[:, rank] = e * a[:, rank]
        clicked = reads & (rng.random(len(a)) < a[:, rank])
        going_on = np.where(clicked, on_click[:, rank], on_skip)
        reads &= rng.random(len(a)) < going_on
        e = np.where(clicked, on_click[:, rank], on_skip * e * (1.0 - a[:, rank]) / (1.0 - e * a[:, rank]))
        clicks[:, rank] = clicked
    return clicks, p
