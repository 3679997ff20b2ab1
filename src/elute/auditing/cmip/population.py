"""How relevance is spread among the items of a grade, as far as clicks tell it apart from noise.

Clicks of a cell are Binomial(n, α(t)·ρ + β(t)), ρ drawn for each item from a distribution that its grade has. That is
estimated as a mixture of a few points (Kiefer and Wolfowitz 1956): EM on weights over a fixed grid, then on weights and
places. Noise adds no spread to it, so where all items of a grade are alike the points run together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.auditing.cmip.strata import cut_grades
from elute.cells.counts import Cells

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POINTS = 24
LOWEST = 1e-4
"""Of the grid, on a scale where 1 is certain."""
ON_GRID, MOVING = 40, 25
"""Steps of EM."""
MOST_ITEMS = 3_000
"""More items of a grade are represented by a sample of so many."""
_EDGE = 1e-9


class ClickLaw(NamedTuple):
    """P(click) = α(t)·ρ + β(t), by factor."""

    alpha: Floats
    beta: Floats

    def predict(self, relevance: Floats, factor: NDArray[np.integer]) -> Floats:
        """By cell, within what a probability can be."""
        return np.asarray(np.clip(self.alpha[factor] * relevance + self.beta[factor], 0.0, 1.0), np.float64)


class Tallies(NamedTuple):
    """As `Cells`, with amounts that need not be whole."""

    offsets: Ints
    factor: NDArray[np.integer]
    impressions: Floats
    clicks: Floats


class Mixture(NamedTuple):
    """Points and the share of items at each."""

    place: Floats
    share: Floats

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        return np.asarray(rng.choice(self.place, size, p=self.share), np.float64)


def fit_mixture(cells: Cells | Tallies, law: ClickLaw, items: Ints, rng: np.random.Generator) -> Mixture:
    """Of these items' relevance."""
    if len(items) > MOST_ITEMS:
        items = rng.choice(items, MOST_ITEMS, replace=False)
    sizes = cells.offsets[items + 1] - cells.offsets[items]
    first = np.cumsum(sizes) - sizes
    cell = np.repeat(cells.offsets[items] - first, sizes) + np.arange(sizes.sum())
    factor = cells.factor[cell]
    shown, clicked = (part[cell].astype(np.float64) for part in (cells.impressions, cells.clicks))
    exposure = np.add.reduceat(shown * law.alpha[factor], first)
    credit = np.add.reduceat(clicked - shown * law.beta[factor], first)

    def weigh(place: Floats, share: Floats) -> Floats:
        """How probable each point is for each item."""
        p = np.clip(law.alpha[factor][:, None] * place + law.beta[factor][:, None], _EDGE, 1 - _EDGE)
        value = np.add.reduceat(clicked[:, None] * np.log(p) + (shown - clicked)[:, None] * np.log1p(-p), first, axis=0)
        likely = np.exp(value - value.max(axis=1, keepdims=True)) * share
        return np.asarray(likely / likely.sum(axis=1, keepdims=True), np.float64)

    place, share = np.geomspace(LOWEST, 1.0, POINTS), np.full(POINTS, 1 / POINTS)
    alone = weigh(place, np.ones(POINTS))
    for _ in range(ON_GRID):
        weight = alone * share
        share = (weight / weight.sum(axis=1, keepdims=True)).mean(axis=0)
    for _ in range(MOVING):
        place, share = place[share > 1e-6], share[share > 1e-6]
        weight = weigh(place, share / share.sum())
        share, seen = weight.mean(axis=0), weight.T @ exposure
        moved = np.clip(weight.T @ credit / np.where(seen > 0, seen, 1.0), LOWEST, 1.0)
        place = np.where(seen > 0, moved, place)
    return Mixture(place, share / share.sum())


@dataclass(frozen=True, eq=False)
class SpreadByGrade:
    """The items of each grade, first those without one, and how their relevance is spread."""

    groups: list[Ints]
    spread: list[Mixture]

    @classmethod
    def estimate(
        cls, cells: Cells | Tallies, law: ClickLaw, item: Ints, grade: Floats, rng: np.random.Generator
    ) -> SpreadByGrade:
        """`item`: those with a grade. Items without cells are as the others of their grade, or as all."""
        some = np.diff(cells.offsets) > 0
        code = np.full(len(some), -1)
        code[item] = cut_grades(grade)[0]
        groups = [np.flatnonzero(code == value) for value in np.unique(code)]
        seen = [group[some[group]] if some[group].any() else np.flatnonzero(some) for group in groups]
        return cls(groups, [fit_mixture(cells, law, own, rng) for own in seen])

    def draw(self, rng: np.random.Generator) -> Floats:
        """By item."""
        out = np.empty(sum(map(len, self.groups)))
        for group, spread in zip(self.groups, self.spread, strict=True):
            out[group] = spread.draw(len(group), rng)
        return out
