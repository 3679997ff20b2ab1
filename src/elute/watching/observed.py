"""What periods tell by their cells: scores of propensities at fixed items, links, doubled counts.

Clicks of item i under factor k in period d have the mean n·o(k)·γ(i)·exp(δ(d, k)). Given all clicks of the item, C(i),
over all periods, those of a cell are C(i)·p expected, p = n·o(k)/Σ n·o over the item's cells: γ has gone, however
rarely the item was shown, and with it the mix of items. The score of δ(d) is the observed clicks less these, its
information I(d) = Σ C(i)·(diag p - p·pᵀ) over the items of the period. So an item tells of a factor in a period if it
was shown there and under another factor, or in another period; one that was not has p = 1 and tells nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Numbers = NDArray[np.int64]


class Observed(NamedTuple):
    """Cells of several periods: period d owns `starts[d]` to `starts[d + 1]`, in the order of items, which are numbered
    across periods, as factors are."""

    starts: Numbers
    item: Codes
    factor: Codes
    impressions: Numbers
    clicks: Numbers
    items: int
    factors: int

    @property
    def periods(self) -> int:
        return len(self.starts) - 1

    @property
    def period(self) -> Numbers:
        """Of every cell."""
        return np.repeat(np.arange(self.periods), np.diff(self.starts))

    def tabulate(self, amounts: NDArray[np.integer]) -> Floats:
        """Sums by period and factor."""
        at = self.period * self.factors + self.factor
        return _sum(at, amounts, self.periods * self.factors).reshape(self.periods, self.factors)


class PeriodScores(NamedTuple):
    """By period and group of factors: clicks, those expected at fixed items, and the information."""

    observed: Floats
    expected: Floats
    information: Floats


class PeriodLinks(NamedTuple):
    """By period and group: items that were shown there and could have been elsewhere in that period, having been shown
    twice or more, and how many of them were."""

    movable: Floats
    moved: Floats


def score(seen: Observed, o: Floats, group: Codes, groups: int) -> PeriodScores:
    """`o`: propensities by factor, the same for all periods; what has none (0) is left out. `group`: by factor."""
    reach = _sum(seen.item, seen.impressions * o[seen.factor], seen.items)
    total = _sum(seen.item, seen.clicks * (o[seen.factor] > 0), seen.items)
    starts, item, factor, impressions, clicks, *_ = seen
    return PeriodScores(*_score(starts, item, factor, impressions, clicks, o, group, groups, reach, total))


@jit
def _score(
    starts: Numbers,
    item: Codes,
    factor: Codes,
    impressions: Numbers,
    clicks: Numbers,
    o: Floats,
    group: Codes,
    groups: int,
    reach: Floats,
    total: Floats,
) -> tuple[Floats, Floats, Floats]:
    periods = starts.shape[0] - 1
    observed, expected = np.zeros((periods, groups)), np.zeros((periods, groups))
    information = np.zeros((periods, groups, groups))
    share, touched = np.zeros(groups), np.empty(groups, np.int64)
    for d in range(periods):
        at = starts[d]
        while at < starts[d + 1]:
            one, n = item[at], 0
            while at < starts[d + 1] and item[at] == one:
                g = group[factor[at]]
                if total[one] > 0 and o[factor[at]] > 0:
                    if share[g] == 0.0:
                        touched[n] = g
                        n += 1
                    share[g] += impressions[at] * o[factor[at]] / reach[one]
                    observed[d, g] += clicks[at]
                at += 1
            for a in range(n):
                g = touched[a]
                expected[d, g] += total[one] * share[g]
                information[d, g, g] += total[one] * share[g]
                for b in range(n):
                    information[d, g, touched[b]] -= total[one] * share[g] * share[touched[b]]
            for a in range(n):
                share[touched[a]] = 0.0
    return observed, expected, information


def count_links(seen: Observed, group: Codes, groups: int) -> PeriodLinks:
    """A group counts as one place."""
    return PeriodLinks(*_count_links(*seen[:4], group, groups))


@jit
def _count_links(
    starts: Numbers, item: Codes, factor: Codes, impressions: Numbers, group: Codes, groups: int
) -> tuple[Floats, Floats]:
    periods = starts.shape[0] - 1
    movable, moved = np.zeros((periods, groups)), np.zeros((periods, groups))
    last = np.full(groups, -1, np.int64)
    touched = np.empty(groups, np.int64)
    number = 0
    for d in range(periods):
        at = starts[d]
        while at < starts[d + 1]:
            one, n, shown = item[at], 0, 0
            number += 1
            while at < starts[d + 1] and item[at] == one:
                g = group[factor[at]]
                if last[g] != number:
                    last[g] = number
                    touched[n] = g
                    n += 1
                shown += impressions[at]
                at += 1
            if shown > 1:
                for a in range(n):
                    movable[d, touched[a]] += 1
                    moved[d, touched[a]] += n > 1
    return movable, moved


def count_even(seen: Observed) -> tuple[Floats, Floats]:
    """By period: cells, and those with even impressions and even clicks. Where rows were loaded twice all are."""
    even = (seen.impressions % 2 == 0) & (seen.clicks % 2 == 0)
    return _sum(seen.period, np.ones(len(even)), seen.periods), _sum(seen.period, even, seen.periods)


def share_known(seen: Observed) -> Floats:
    """By period: the share of impressions whose item is also in another one."""
    pairs = np.unique(seen.period * np.int64(max(seen.items, 1)) + seen.item)
    within = np.bincount((pairs % max(seen.items, 1)).astype(np.int64), minlength=seen.items)
    shown = np.bincount(seen.period, seen.impressions, seen.periods)
    known = np.bincount(seen.period, seen.impressions * (within[seen.item] > 1), seen.periods)
    return np.asarray(np.divide(known, shown, out=np.zeros(seen.periods), where=shown > 0))


def _sum(code: NDArray[np.integer], amounts: NDArray[Any], size: int) -> Floats:
    return np.asarray(np.bincount(code, amounts, size), np.float64)
