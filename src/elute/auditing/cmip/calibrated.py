"""CMIP against what noise alone would make of it, and the bias that it could have seen.

Items that the policy showed less are known less well, so the relevance of any fit depends on the policy: CMIP is above
0 for the right model too. The null is therefore not "independent given the grade" but "as dependent as noise makes this
model, were its own law of clicks true and relevance as the grade has it": every item's relevance ρ is drawn from what
its grade has (`elute.auditing.cmip.population`), without a look at where it was shown; its cells are clicked anew with
α(t)·ρ + β(t), α and β those of the fit (1 and 0 for a model that ignores positions); the model is fitted again; and
CMIP is taken again. Clicks that do carry a position effect give a model that ignores it more than that.

What is compared is CMIP's monotone part (its Gaussian copula estimate). Bias has a direction, and the part without one
is where noise lives: on 86 queries of 10 a twofold bias shows in 13% of draws in the whole of CMIP, in all of them in
its monotone part.

Power: the same draws with relevance tilted, so that what the policy ranked first is rated `TILT` times as high as an
equal item ranked last. The share of them that the test finds says what "no excess" is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from elute.auditing.cmip.copula import normal_scores
from elute.auditing.cmip.local import standardise
from elute.auditing.cmip.metric import cmip
from elute.auditing.cmip.population import ClickLaw, SpreadByGrade
from elute.auditing.cmip.strata import SMALLEST, cut_grades
from elute.auditing.cmip.within import rank_within
from elute.cells.counts import Cells
from elute.progress import Progress, silent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DRAWS, POWER_DRAWS = 79, 40
LEVEL = 0.025
CLEAR, SLIGHT = 3.0, 0.1
"""What fails a model: p at most `LEVEL`, and an excess of at least `CLEAR` standard deviations of the null and `SLIGHT`
of what the stated bias gives. Propensities that few clicks tell have a null that the fit itself knows only roughly, so
its few draws alone are not to decide: a right model must not fail in more than one log in twenty. And in a large log
any trifle is significant."""
TILT = 2.0
AGAINST = f"rating the policy's first {TILT:g} times as high as an equal last"
_95_PERCENT = 1.959963984540054


@dataclass(frozen=True)
class Excess:
    """CMIP's monotone part less its mean over draws of the null, in nats, with a 95% interval and a p-value. `least`:
    what it must reach to fail a model."""

    estimate: float
    low: float
    high: float
    p_value: float
    null_mean: float
    least: float
    draws: int

    @property
    def is_bias(self) -> bool:
        """Whether noise does not explain it."""
        return self.p_value <= LEVEL and self.estimate >= self.least


@dataclass(frozen=True)
class Power:
    """`value`: how often a bias of this size, `against`, would have been found."""

    against: str
    value: float


Redraw = Callable[[Floats, np.random.Generator], Floats]
"""Relevance of the judged items, fitted again to clicks drawn anew; theirs was multiplied by the first argument."""


class RedrawnItems(Protocol):
    """Judged items with grade, query and the policy's score, and how to draw the clicks of their log anew."""

    @property
    def grade(self) -> Floats: ...
    @property
    def query(self) -> Ints: ...
    @property
    def policy(self) -> Floats: ...

    def prepare(self, rng: np.random.Generator) -> Redraw: ...


@dataclass(frozen=True, eq=False)
class JudgedCells:
    """The cells a model was fitted to, its law of clicks, how to fit it to other clicks (relevance by item), and the
    judged ones among its items."""

    cells: Cells
    law: ClickLaw
    again: Callable[[NDArray[np.uint64]], Floats]
    item: Ints
    grade: Floats
    query: Ints
    policy: Floats

    def prepare(self, rng: np.random.Generator) -> Redraw:
        relevances = SpreadByGrade.estimate(self.cells, self.law, self.item, self.grade, rng)

        def redraw(tilt: Floats, rng: np.random.Generator) -> Floats:
            rho = relevances.draw(rng)
            rho[self.item] *= tilt
            return self.again(_draw_clicks(self, rho, rng))[self.item]

        return redraw


def calibrate(
    judged: RedrawnItems,
    relevance: Floats,
    seed: int = 0,
    progress: Progress = silent,
    draws: int = DRAWS,
    power_draws: int = POWER_DRAWS,
) -> tuple[Excess, Power]:
    """The excess of a fit whose relevance of the judged items is `relevance`, and what it could have shown."""
    rng = np.random.default_rng((seed, 1))
    high = rank_within(judged.policy, judged.query)
    measure = MonotonePart.prepare(high, judged.grade, rng)
    observed = measure.estimate(relevance, rng)
    redraw = judged.prepare(rng)

    def draw(tilt: float, done: int) -> float:
        progress("redrawing clicks", done, draws + power_draws)
        return measure.estimate(redraw(tilt ** (high - 0.5), rng), rng)

    null = np.array([draw(1.0, i) for i in range(draws)])
    known = cmip(relevance, judged.policy, judged.grade, "copula", seed, 1, judged.query)
    error = (known.high - known.low) / (2 * _95_PERCENT)
    tilted = np.array([draw(TILT, draws + i) for i in range(power_draws)])
    least = max(CLEAR * float(null.std(ddof=1)), SLIGHT * float(tilted.mean() - null.mean()))
    found = [_compare(value, null, error, least).is_bias for value in tilted]
    return _compare(observed, null, error, least), Power(AGAINST, float(np.mean(found)))


def _compare(observed: float, null: Floats, error: float, least: float) -> Excess:
    """With draws of the null; `error`: of what was observed."""
    mean, sd = float(null.mean()), float(null.std(ddof=1))
    reach = _95_PERCENT * max(error, sd)
    p = (1 + int(np.sum(null >= observed))) / (1 + len(null))
    return Excess(observed - mean, observed - mean - reach, observed - mean + reach, p, mean, least, len(null))


@dataclass(frozen=True, eq=False)
class MonotonePart:
    """The copula estimate of `elute.auditing.cmip.metric` for many relevances and one policy: its side is prepared."""

    rows: list[Ints]
    """By stratum."""
    policy: list[Floats]
    """Their normal scores."""

    @classmethod
    def prepare(cls, policy: Floats, grade: Floats, rng: np.random.Generator) -> MonotonePart:
        code = cut_grades(grade)[0]
        members = [np.flatnonzero(code == value) for value in np.unique(code)]
        rows = [own for own in members if len(own) >= SMALLEST]
        return cls(rows, [_score_normally(policy[own], rng) for own in rows])

    def estimate(self, relevance: Floats, rng: np.random.Generator) -> float:
        """Items that a refit lost stand in the middle, where they pull nowhere."""
        total = 0.0
        for own, policy in zip(self.rows, self.policy, strict=True):
            values, known = relevance[own], np.isfinite(relevance[own])
            if not known.any() or np.ptp(values[known]) == 0 or np.ptp(policy) == 0:
                continue
            r = float(np.mean(_score_normally(np.where(known, values, np.median(values[known])), rng) * policy))
            r = min(abs(r), 1 - 1 / len(own) ** 2)
            total += len(own) * (-0.5 * np.log1p(-(r**2)) - 0.5 / (len(own) - 1))
        return float(total / sum(map(len, self.rows))) if self.rows else 0.0


def _score_normally(values: Floats, rng: np.random.Generator) -> Floats:
    """Normal scores of ranks, ties in random order."""
    rank = np.empty(len(values), np.int64)
    rank[np.lexsort((rng.random(len(values)), values))] = np.arange(len(values))
    return standardise(normal_scores(rank))


def _draw_clicks(judged: JudgedCells, relevance: Floats, rng: np.random.Generator) -> NDArray[np.uint64]:
    cells = judged.cells
    chance = judged.law.predict(relevance.repeat(np.diff(cells.offsets)), cells.factor)
    return rng.binomial(cells.impressions.astype(np.int64), chance).astype(np.uint64)
