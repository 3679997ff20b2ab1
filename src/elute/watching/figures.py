"""The figures of every period that are tested: how much more or less than the reference, and the variance of that.

All are ratios r of what was counted to what was to be expected. Counts are skewed, r^(2/3) of a Poisson count hardly
is: so a figure is y = 3/2·(r^(2/3) - 1), which near r = 1 is log r, with the variance of r.

The reference is the same for all periods, those that are judged included: so none is treated otherwise than the rest,
and what it has wrong is the same in all and cancels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from elute.watching.observed import Codes, Floats, Observed, count_even, count_links, score

_UNKNOWN = 1e4
"""Variance of what nothing tells."""
_EDGE = 0.05
"""Least variance of one item's being moved or not: where all are, one that is not would be infinitely surprising."""
FEW = 0.1
"""Variance from which on a figure tells too little to be tested: that of ten clicks."""
POOR = 0.25
"""Variance from which on a period tells too little to be in a baseline."""


class PeriodFigure(NamedTuple):
    """By period, and by group where there are groups: the figure and its sampling variance."""

    y: Floats
    variance: Floats


class Figures(NamedTuple):
    """`traffic`: impressions. `level`: clicks at fixed items, all positions together; `curve`: each group beside the
    level. `links`: items that were shown in more than one place. `even`: doubled counts."""

    traffic: PeriodFigure
    level: PeriodFigure
    curve: PeriodFigure
    links: PeriodFigure
    even: PeriodFigure
    observed: Floats
    expected: Floats
    moved: Floats
    """By period and group: clicks, those expected at fixed items, and items that link the group to others."""


def to_figure(ratio: Floats, variance: Floats) -> PeriodFigure:
    """Of ratios."""
    return PeriodFigure(1.5 * (np.cbrt(np.maximum(ratio, 0.0)) ** 2 - 1), variance)


def to_ratio(y: Floats) -> Floats:
    """Back from a figure."""
    return np.asarray(np.maximum(1 + y / 1.5, 0.0) ** 1.5)


def measure_figures(seen: Observed, o: Floats, group: Codes, groups: int) -> Figures:
    """`o`: propensities by factor, of all periods together. `group`: by factor."""
    shown = np.bincount(seen.period, seen.impressions, seen.periods)
    typical = float(np.exp(np.log(np.maximum(shown, 1)).mean())) if len(shown) else 1.0
    traffic = PeriodFigure(np.log(np.maximum(shown, 1) / typical), 1 / np.maximum(shown, 1))
    scores = score(seen, o, group, groups)
    unit = np.eye(groups) / _UNKNOWN
    covariance = np.linalg.inv(scores.information + unit)
    surplus = scores.observed - scores.expected
    change = (covariance @ surplus[..., None])[..., 0]
    own = np.diagonal(covariance, axis1=1, axis2=2)
    amount = (scores.information + unit).sum((1, 2))
    clicks, level = to_figure(1 + change, own), to_figure(1 + surplus.sum(1) / amount, 1 / amount)
    beside = PeriodFigure(
        clicks.y - level.y[:, None],
        np.maximum(own - 1 / amount[:, None], 1e-9) if groups > 1 else np.full_like(own, _UNKNOWN),
    )
    links = count_links(seen, group, groups)
    cells, even = count_even(seen)
    return Figures(
        traffic,
        level,
        beside,
        _compare_shares(links.moved, links.movable),
        _compare_few(even, cells),
        scores.observed,
        scores.expected,
        links.moved,
    )


def _compare_shares(some: Floats, of: Floats) -> PeriodFigure:
    """A share of each period against that of all of them."""
    share = np.divide(some.sum(0) + 0.5, of.sum(0) + 1.0)
    expected = of * share
    variance = np.maximum(1 - share, _EDGE) / np.maximum(expected, 1 / _UNKNOWN)
    # half a count on both sides: where hardly any is expected, one is no surprise
    return to_figure((some + 0.5) / (expected + 0.5), np.minimum(variance, _UNKNOWN))


def _compare_few(some: Floats, of: Floats) -> PeriodFigure:
    """The same where hardly any may be expected, and all would be a fault: counts below ten are lifted to ten on both
    sides, with the variance of one count more than is expected."""
    figure = _compare_shares(some, of)
    share = (some.sum() + 0.5) / (of.sum() + 1.0)
    expected = of * share
    lifted = to_figure((some + 10 - expected) / 10, np.minimum((expected * (1 - share) + 1) / 100, FEW))
    few = expected < 10
    return PeriodFigure(np.where(few, lifted.y, figure.y), np.where(few, lifted.variance, figure.variance))
