"""Tests of periods against their baselines, and the level at which they raise an alarm.

| test | what changed | null hypothesis |
|---|---|---|
| `traffic` | impressions | as many as the days before let expect |
| `click_rate` | clicks at a fixed mix of items | the level of the baseline |
| `curve` | propensities, beside that level | the curve of the baseline: jointly, and position by position |
| `links` | items shown in several places, by place | as many as in the baseline, or more |
| `doubled` | cells with even counts | as many as in the baseline, or fewer |
| `click_rate_week`, `curve_week` | the same of the last 7 periods together | that of the baseline before them |

The joint test of the curve turns the t of each position into the normal score with the same chance, and sums the
squares. Positions may move together; how much so, the correlations of the baseline's residuals tell: by their
eigenvalues the sum has its first three moments, and the chi-square distribution with these (Pearson, 1959) its chance.
A change of one position is found sooner by itself: the curve has changed if either says so, at half the level each.

A change that one day is too short for shows over a week. Days of one week may be alike, which a baseline of four
cannot tell: so the variance between days is taken in whole, as if all seven had moved together, and only that of
sampling falls.

False alarms: each test of each period has the level (alarms a year)/365/7. So no more than that many alarms a year are
to be expected of daily parts in which nothing happens, however the tests, and the days, depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri

from elute.watching.calendar import design, find_weekdays
from elute.watching.figures import FEW, POOR, Figures, PeriodFigure
from elute.watching.prediction import Flags, Floats, Prediction, predict

TESTS = ("traffic", "click_rate", "curve", "links", "doubled", "click_rate_week", "curve_week")
WEEK = 7
"""Periods that the last two look at together."""
PERIODS = 365
"""In which false alarms are counted: a year of days."""
LEAST = 7
"""Periods without which there is no baseline."""
_FREEDOM = 5
"""Degrees of freedom below which a test says nothing."""
_BESIDE = 0.05
"""Level at which positions are named once the curve has changed."""


class JudgedPeriods(NamedTuple):
    """One test of some periods. `p`: by period, 1 where it could not be made (`tested` is false). `parts`: of each
    group by itself, where there are groups; else of the figure."""

    p: Floats
    tested: Flags
    parts: Prediction
    side: int


def find_level(false_alarms: float) -> float:
    """Of one test of one period."""
    return false_alarms / PERIODS / len(TESTS)


def choose_baselines(first: NDArray[np.int64], baseline: int) -> NDArray[np.int64]:
    """Those before each of some periods, at most so many; -1 where there are fewer."""
    before = first[:, None] - np.arange(baseline, 0, -1)
    return np.where(before >= 0, before, -1)


def judge(
    figures: Figures, times: Sequence[datetime] | None, judged: Sequence[int], baseline: int
) -> dict[str, JudgedPeriods]:
    """Every test of each of the periods `judged`, against so many before it."""
    weekday = find_weekdays(times)
    day, week = (_Setting.make(weekday, judged, baseline, span) for span in (1, WEEK))
    return {
        "traffic": _judge_alone(_Setting.make(weekday, judged, baseline, 1, trend=True), figures.traffic),
        "click_rate": _judge_alone(day, figures.level),
        "curve": _judge_jointly(_judge_alone(day, figures.curve)),
        "links": _judge_alone(day, figures.links, -1),
        "doubled": _judge_alone(day, figures.even, 1),
        "click_rate_week": _judge_alone(week, figures.level),
        "curve_week": _judge_jointly(_judge_alone(week, figures.curve)),
    }


class _Setting(NamedTuple):
    """Of each judged period: which are looked at together, which are its baseline (-1: there is none), and the design's
    rows of either."""

    new: NDArray[np.int64]
    baselines: NDArray[np.int64]
    x_new: Floats
    x_old: Floats

    @classmethod
    def make(
        cls, weekday: NDArray[np.int64] | None, judged: Sequence[int], baseline: int, span: int, trend: bool = False
    ) -> _Setting:
        """`span`: periods that are looked at together. `trend`: traffic may grow; in all else a trend is a change."""
        new = np.asarray(judged, np.int64)[:, None] - np.arange(span)[::-1]
        baselines = choose_baselines(new[:, 0], baseline)
        x_new, x_old = np.zeros((*new.shape, 8)), np.zeros((*baselines.shape, 8))
        made: dict[tuple[int, bytes], Floats] = {}  # weeks are alike
        for row, own in enumerate(baselines):
            there = own >= 0
            all_of = np.append(np.where(there, own, 0), np.maximum(new[row], 0))
            days = None if weekday is None else weekday[all_of]
            key = int(there.sum()), b"" if days is None else days.tobytes()
            if key not in made:
                made[key] = design(days, np.append(there, np.zeros(span, np.bool_)), trend)
            x_old[row], x_new[row] = made[key][:baseline], made[key][baseline:]
        return cls(new, baselines, x_new, x_old)

    def predict(self, figure: PeriodFigure) -> Prediction:
        """By judged period and group. Periods that are looked at together count by what each tells."""
        y, s = (part.reshape(len(part), -1) for part in (figure.y, figure.variance))
        old, new = np.maximum(self.baselines, 0), np.maximum(self.new, 0)
        weight = 1 / s[new].swapaxes(1, 2)
        total = weight.sum(-1)
        y_new = (weight * y[new].swapaxes(1, 2)).sum(-1) / total
        x_new = np.einsum("jgn,jnp->jgp", weight, self.x_new) / total[..., None]
        y_old, s_old = y[old].swapaxes(1, 2), s[old].swapaxes(1, 2)
        keep = (self.baselines >= 0)[:, None, :] & (s_old <= POOR)
        found = predict(y_old, s_old, keep, self.x_old[:, None], y_new, 1 / total, x_new, _FREEDOM)
        return found._replace(t=np.where(1 / total <= FEW, found.t, np.nan))


def _judge_alone(setting: _Setting, figure: PeriodFigure, side: int = 0) -> JudgedPeriods:
    """The group that has changed most, at a level that counts how many were tried."""
    found = setting.predict(figure)
    p, tested = found.p(side), np.isfinite(found.t)
    tried = np.maximum(tested.sum(1), 1)
    return JudgedPeriods(np.minimum(1.0, p.min(1, initial=1.0) * tried), np.asarray(tested.any(1)), found, side)


def _judge_jointly(alone: JudgedPeriods) -> JudgedPeriods:
    """All groups at once, beside the one that has changed most."""
    found = alone.parts
    tested = np.isfinite(found.t)
    number = tested.sum(1)
    residual = np.where(tested[..., None], found.residual, 0.0)
    length = np.sqrt((residual**2).sum(-1, keepdims=True))
    residual = np.divide(residual, length, out=np.zeros_like(residual), where=length > 0)
    alike = residual @ residual.swapaxes(1, 2)
    twice = alike @ alike
    second, third = (alike**2).sum((1, 2)), (twice * alike).sum((1, 2))
    own = np.divide(second**3, third**2, out=np.ones_like(third), where=third > 0)
    score = np.where(tested, ndtri(np.maximum(found.p(), 1e-300) / 2), 0.0)
    beyond = ((score**2).sum(1) - number) * np.sqrt(own / np.maximum(second, 1e-9))
    jointly = np.where(number > 1, chdtrc(own, np.maximum(own + beyond, 0.0)), 1.0)
    return alone._replace(p=np.minimum(1.0, 2 * np.minimum(jointly, alone.p)))


def name_changed(judged: JudgedPeriods, row: int) -> list[int]:
    """The groups that stand out of one period, the most surprising first: those that Holm's procedure keeps, or else
    the one that is most so."""
    p = judged.parts.p(judged.side)[row]
    tested = np.flatnonzero(np.isfinite(judged.parts.t[row]))
    order = tested[np.argsort(p[tested], kind="stable")]
    standing = p[order] * np.arange(len(order), 0, -1) <= _BESIDE
    many = len(order) if standing.all() else int(standing.argmin())
    return [int(group) for group in order[: max(many, 1)]]
