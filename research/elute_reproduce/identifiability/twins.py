"""Structural twins of the paper's two large sets, which are not free to pass on: generated documents that repeat as
theirs must, so that tables of the graph run at the paper's size.

What is known of the sets is Table 4, and that the paper's public code pads short lists with one feature vector. So a
twin has as many queries of ten slots as give the published number of nodes, short lists whose padding is one vector,
and vectors that occur twice, in as many pairs as give the published components. Features, grades and the order of
lists are made up: what depends on them is a statement about the twin alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from elute.ranking.data import RankingData
from elute_reproduce.identifiability.semi_synthetic import (
    ISTELLA,
    POSITIONS,
    YAHOO,
    Dataset,
    Features,
    Floats,
    Ints,
    RankedPages,
)

FEATURES = 40
_VALUES = (2, 5_000)
"""How many values a feature has: from, to, evenly on a log scale."""
_SIGNAL, _POLICY = 0.5, 0.3
"""Correlation of a feature, and of the order of lists, with what makes grades."""
_SHARES = (0.52, 0.23, 0.13, 0.08, 0.04)
"""Of grades 0 to 4."""


TWINS = (
    "Twins are generated sets with the structure of the paper's, at its size: as many queries of ten slots, short "
    "lists padded by one vector as the public code has them (Yahoo!), and repeated feature vectors as Table 4 "
    "demands. Their features, grades and rankings are made up; a value of a twin is not a value of the set, and "
    "none is compared with what was published."
)


class TwinShape(NamedTuple):
    """`short` lists have 2 to 9 documents, the others ten; `pairs` feature vectors occur twice and one `often`."""

    queries: int
    short: int
    pairs: int
    often: int


SHAPES = {YAHOO: TwinShape(19_060, 2_940, 9_600, 0), ISTELLA: TwinShape(19_245, 0, 860, 101)}


def make_twins() -> list[Dataset]:
    """All of them, the same every time."""
    return [make_twin(name) for name in SHAPES]


def make_twin(name: str) -> Dataset:
    """The twin of one of the paper's sets."""
    shape = SHAPES[name]
    rng = np.random.default_rng(list(name.encode()))
    length = np.full(shape.queries, POSITIONS)
    length[rng.choice(shape.queries, shape.short, replace=False)] = rng.integers(2, POSITIONS, shape.short)
    offsets = np.arange(shape.queries + 1) * POSITIONS
    there = np.arange(POSITIONS) < length[:, None]
    slots = np.flatnonzero(there)
    signal = np.full(there.size, -np.inf)
    features = np.zeros((there.size, FEATURES), np.float32)  # the padding's
    signal[slots] = rng.normal(size=len(slots))
    features[slots] = _draw_features(signal[slots], rng)
    of = _draw_repeats(slots, shape, rng)
    signal, features = signal[of], features[of]
    grades = np.searchsorted(np.quantile(signal[slots], np.cumsum(_SHARES)[:-1]), signal).astype(np.int32)
    pages = _rank(signal, offsets, rng)
    documents, names = np.arange(there.size).astype(np.str_), np.arange(shape.queries).astype(np.str_)
    train = RankingData(features, grades, offsets, names, documents)
    return Dataset(f"{name} twin", None, train, train, pages=pages, twin_of=name)


def _draw_features(signal: Floats, rng: np.random.Generator) -> Features:
    """Whole numbers from 1 on: many values in some columns, few in others, all of them telling of the signal."""
    low, high = np.log(_VALUES)
    values = np.exp(rng.uniform(low, high, FEATURES)).astype(np.int64)
    noise = rng.normal(size=(len(signal), FEATURES))
    uniform = ndtr(_SIGNAL * signal[:, None] + np.sqrt(1 - _SIGNAL**2) * noise)
    return np.asarray(1 + np.floor(values * uniform), np.float32)


def _draw_repeats(slots: Ints, shape: TwinShape, rng: np.random.Generator) -> Ints:
    """By slot: the slot whose document it shows."""
    of = np.arange(shape.queries * POSITIONS)
    chosen = rng.choice(slots, 2 * shape.pairs + shape.often, replace=False)
    one, other = chosen[: 2 * shape.pairs].reshape(2, -1)
    of[other] = one
    of[chosen[2 * shape.pairs :]] = chosen[-1] if shape.often else 0
    return of


def _rank(signal: Floats, offsets: Ints, rng: np.random.Generator) -> RankedPages:
    """Lists in the order of a weak policy; padding last."""
    score = _POLICY * signal + np.sqrt(1 - _POLICY**2) * rng.normal(size=len(signal))
    order = np.argsort(-score.reshape(-1, POSITIONS), axis=1) + offsets[:-1, None]
    return RankedPages(order.ravel(), np.tile(np.arange(POSITIONS), len(offsets) - 1), offsets)
