"""Worlds to value rankings in: who ranked, who clicks, how many pages there are, and how another ranking differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Counts, Membership

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DOCS, PLACES = 12, 8
LOOK = np.arange(1.0, PLACES + 1) ** -1.0
_TRUST = 0.3 / np.arange(1, PLACES + 1)
_GO_ON, _LEAVE = 0.85, 0.6
"""The DBN's user goes on after a place with this probability; leaves satisfied after a click, times relevance."""

_DRAWS = 300_000
"""Pages of the logging policy, in all, that its true value is averaged over."""


@dataclass(frozen=True)
class ValueWorld:
    """`strong`: the logging policy knows relevance well. `large`: the other ranking is another ranker, not the same
    with noise. `fit`: the model that propensities are fitted by."""

    queries: int
    pages: int
    strong: bool
    large: bool
    user: Literal["pbm", "trust", "dbn"] = "pbm"
    fit: Literal["pbm", "affine"] = "pbm"

    @property
    def holds(self) -> bool:
        """Whether the fit's assumption does."""
        return (self.user, self.fit) in (("pbm", "pbm"), ("trust", "affine"))


class DrawnLog(NamedTuple):
    """A log: the query of every page, the documents at its places, clicks."""

    query: Ints
    order: Ints
    clicks: NDArray[np.bool_]


def list_worlds() -> dict[str, ValueWorld]:
    """By name."""
    sizes = {"dense": (50, 20_000), "sparse": (400, 8_000), "very sparse": (2_000, 6_000)}
    out = {
        f"{size}, {'strong' if strong else 'weak'} logging, {'large' if large else 'small'} change": ValueWorld(
            *amounts, strong, large
        )
        for size, amounts in sizes.items()
        for strong in (True, False)
        for large in (False, True)
    }
    for change in (False, True):
        word = "large" if change else "small"
        out[f"trust bias, fit of pbm, {word} change"] = ValueWorld(50, 20_000, False, change, "trust")
        out[f"trust bias, fit of affine, {word} change"] = ValueWorld(50, 20_000, False, change, "trust", "affine")
        out[f"DBN, fit of pbm, {word} change"] = ValueWorld(50, 20_000, False, change, "dbn")
    return out


class Truth:
    """What a world's logs are drawn from; the same for every log."""

    def __init__(self, world: ValueWorld, seed: int) -> None:
        rng = np.random.default_rng([seed, 0])
        shape = world.queries, DOCS
        self.world = world
        self.relevance = 0.02 + 0.9 * rng.beta(1.0, 2.5, shape)
        quality = np.log(self.relevance / (1 - self.relevance))
        noise = rng.normal(size=shape)
        self.score = quality + 0.7 * noise if world.strong else 0.3 * quality + noise
        other = quality + 0.7 * rng.normal(size=shape) if world.large else self.score + 0.4 * rng.normal(size=shape)
        self.ranking = np.argsort(-other, axis=1)[:, :PLACES]
        self.new = self.expect(np.arange(world.queries), self.ranking).sum(axis=1)
        self.logged = self._value_logging(np.random.default_rng([seed, 1]))

    def rank(self, query: Ints, rng: np.random.Generator) -> Ints:
        """Pages of the logging policy: Plackett-Luce on its scores."""
        noise = rng.gumbel(size=(len(query), DOCS))
        return np.argsort(-(self.score[query] + 0.7 * noise), axis=1)[:, :PLACES]

    def expect(self, query: Ints, order: Ints) -> Floats:
        """P(click) at every place of some pages."""
        r = self.relevance[query[:, None], order]
        if self.world.user == "pbm":
            return np.asarray(r * LOOK)
        if self.world.user == "trust":
            return np.asarray(LOOK * (r + (1 - r) * _TRUST))
        look = np.cumprod(
            np.concatenate((np.ones((len(r), 1)), _GO_ON * (1 - _LEAVE * r[:, :-1] ** 2)), axis=1), axis=1
        )
        return np.asarray(look * r)

    def click(self, query: Ints, order: Ints, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Clicks of a user; the DBN's leaves the page satisfied, or tired."""
        p = self.expect(query, order)
        if self.world.user != "dbn":
            return np.asarray(rng.random(p.shape) < p)
        r, here = self.relevance[query[:, None], order], np.ones(len(query), np.bool_)
        out = np.zeros(p.shape, np.bool_)
        for place in range(PLACES):
            out[:, place] = here & (rng.random(len(query)) < r[:, place])
            satisfied = out[:, place] & (rng.random(len(query)) < _LEAVE * r[:, place])
            here &= ~satisfied & (rng.random(len(query)) < _GO_ON)
        return out

    def draw(self, rng: np.random.Generator) -> DrawnLog:
        """A log."""
        query = rng.integers(self.world.queries, size=self.world.pages)
        order = self.rank(query, rng)
        return DrawnLog(query, order, self.click(query, order, rng))

    def _value_logging(self, rng: np.random.Generator) -> Floats:
        """By query."""
        total, each = np.zeros(self.world.queries), max(_DRAWS // self.world.queries, 1)
        for query in _cut(np.repeat(np.arange(self.world.queries), each)):
            total += np.bincount(query, self.expect(query, self.rank(query, rng)).sum(axis=1), self.world.queries)
        return total / each


def count(drawn: DrawnLog) -> tuple[Counts, Ints, Ints]:
    """The cells of a log, its items (query · DOCS + document) and its queries, in the order of their codes."""
    key = ((drawn.query[:, None] * DOCS + drawn.order) * PLACES + np.arange(PLACES)).ravel()
    cell, at = np.unique(key, return_inverse=True)
    shown, clicked = np.bincount(at).astype(np.uint32), np.bincount(at, drawn.clicks.ravel()).astype(np.uint32)
    item, first = np.unique(cell // PLACES, return_index=True)
    queries, code = np.unique(item // DOCS, return_inverse=True)
    numbers = np.arange(len(item), dtype=np.int32)
    members = Membership(len(queries), code.astype(np.int32), numbers, np.ones(len(item), np.int64))
    offsets, factor = np.append(first, len(cell)).astype(np.int64), (cell % PLACES).astype(np.int32)
    positions = pa.table({"position": np.arange(1, PLACES + 1)})
    names = pa.table({"query_id": item // DOCS, "doc_id": item % DOCS})
    return Counts(offsets, factor, shown, clicked, positions, members, 0.0, lambda: names), item, queries


def _cut(rows: Ints, size: int = 100_000) -> Iterator[Ints]:
    for first in range(0, len(rows), size):
        yield rows[first : first + size]
