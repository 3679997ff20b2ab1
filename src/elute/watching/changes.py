"""Tests of periods against their baselines, and the level at which they raise an alarm.

| test | what changed | null hypothesis |
|---|---|---|
| `traffic` | impressions | as many as the days before let expect |
| `click_rate` | clicks at a fixed mix of items | the level of the baseline |
| `curve` | propensities, beside that level | the curve of the baseline: jointly, and position by position |
| `links` | items shown in several places, by place | as many as in the baseline, or more |
| `doubled` | cells with even counts | as many as in the baseline, or fewer |

The joint test of the curve turns the t of each position into the normal score with the same chance, and sums the squares.
Positions may move together; how much so, the residuals of the baseline tell: Box's approximation (1954) gives the sum the
degrees of freedom that it then has. A change of one position is found sooner by itself: the curve has changed if either
says so, at half the level each.

False alarms: each test of each period has the level (alarms a year)/365/5. So no more than that many alarms a year are
to be expected of daily parts in which nothing happens, however the five depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri

from elute.watching.calendar import design
from elute.watching.figures import FEW, POOR, Figure, Figures
from elute.watching.prediction import Flags, Floats, Prediction, predict

TESTS = ("traffic", "click_rate", "curve", "links", "doubled")
PERIODS = 365
"""In which false alarms are counted: a year of days."""
LEAST = 7
"""Periods without which there is no baseline."""
_FREEDOM = 5
"""Degrees of freedom below which a test says nothing."""
_BESIDE = 0.05
"""Level at which positions are named once the curve has changed."""


class Judged(NamedTuple):
    """One test of some periods. `p`: by period, 1 where it could not be made (`tested` is false). `parts`: of each
    group by itself, where there are groups; else of the figure."""

    p: Floats
    tested: Flags
    parts: Prediction
    side: int


def find_level(false_alarms: float) -> float:
    """Of one test of one period."""
    return false_alarms / PERIODS / len(TESTS)


def choose_baselines(periods: int, judged: Sequence[int], baseline: int, usable: Flags) -> NDArray[np.int64]:
    """For each period to be judged those before it, at most so many and without those that are not `usable`; -1 where
    there are fewer."""
    chosen = np.full((len(judged), baseline), -1)
    for row, at in enumerate(judged):
        own = np.flatnonzero(usable[:at])[-baseline:]
        chosen[row, : len(own)] = own
    return chosen


def judge(
    figures: Figures, times: Sequence[datetime] | None, judged: Sequence[int], baselines: NDArray[np.int64]
) -> dict[str, Judged]:
    """Every test of each of the periods `judged`, with its row of `baselines`."""
    periods = len(figures.traffic.y)
    x = np.zeros((len(judged), periods, 8))
    for row, at in enumerate(judged):
        keep = np.zeros(periods, np.bool_)
        keep[baselines[row][baselines[row] >= 0]] = True
        x[row] = design(times, keep, at)
    new, there = np.asarray(judged, np.int64), baselines >= 0
    rows = np.arange(len(new))[:, None]

    def predict_of(figure: Figure) -> Prediction:
        y, s = (
            part.reshape(periods, -1)[np.maximum(baselines, 0)].swapaxes(1, 2) for part in (figure.y, figure.variance)
        )
        y_new, s_new = (part.reshape(periods, -1)[new] for part in (figure.y, figure.variance))
        keep = there[:, None, :] & (s <= POOR)
        x_old, x_new = x[rows, np.maximum(baselines, 0)][:, None], x[rows[:, 0], new][:, None]
        found = predict(y, s, keep, x_old, y_new, s_new, x_new, _FREEDOM)
        return found._replace(t=np.where(s_new <= FEW, found.t, np.nan))

    def judge_alone(figure: Figure, side: int = 0) -> Judged:
        found = predict_of(figure)
        p, tested = found.p(side), np.isfinite(found.t)
        times_tried = np.maximum(tested.sum(1), 1)
        return Judged(np.minimum(1.0, p.min(1, initial=1.0) * times_tried), tested.any(1), found, side)

    return {
        "traffic": judge_alone(figures.traffic),
        "click_rate": judge_alone(figures.level),
        "curve": _judge_jointly(judge_alone(figures.curve)),
        "links": judge_alone(figures.links, -1),
        "doubled": judge_alone(figures.even, 1),
    }


def _judge_jointly(alone: Judged) -> Judged:
    """All groups at once, beside the one that has changed most."""
    found = alone.parts
    tested = np.isfinite(found.t)
    number = tested.sum(1)
    freedom = np.where(tested, found.freedom, np.inf).min(1, initial=np.inf)
    freedom = np.where(np.isfinite(freedom), freedom, 1.0)
    residual = np.where(tested[..., None], found.residual, 0.0)
    length = np.sqrt((residual**2).sum(-1, keepdims=True))
    residual = np.divide(residual, length, out=np.zeros_like(residual), where=length > 0)
    squares = (np.einsum("jgb,jhb->jgh", residual, residual) ** 2).sum((1, 2))  # of correlations, by chance too large
    squares = freedom**2 / np.maximum((freedom - 1) * (freedom + 2), 1.0) * (squares - number**2 / freedom)
    own = np.clip(number**2 / np.maximum(squares, 1e-9), 1.0, np.maximum(number, 1))
    score = np.where(tested, ndtri(np.maximum(found.p(), 1e-300) / 2), 0.0)
    jointly = np.where(number > 1, chdtrc(own, (score**2).sum(1) * own / np.maximum(number, 1)), 1.0)
    return alone._replace(p=np.minimum(1.0, 2 * np.minimum(jointly, alone.p)))


def name_changed(judged: Judged, row: int) -> list[int]:
    """The groups that stand out of one period, the most surprising first: those that Holm's procedure keeps, or else
    the one that is most so."""
    p = judged.parts.p(judged.side)[row]
    tested = np.flatnonzero(np.isfinite(judged.parts.t[row]))
    order = tested[np.argsort(p[tested], kind="stable")]
    standing = p[order] * np.arange(len(order), 0, -1) <= _BESIDE
    many = len(order) if standing.all() else int(standing.argmin())
    return [int(group) for group in order[: max(many, 1)]]
