"""Periods in time: dates where their names are such, the step between them, and what figures are regressed on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

TREND, WEEKS = 14, 21
"""Periods of a baseline from which it has a trend, and days from which it has days of the week: thrice each."""

_DAY = timedelta(days=1)


def read_times(names: Sequence[str]) -> list[datetime] | None:
    """By ISO 8601, which orders them as their text does; None where a name is no date."""
    try:
        found = [datetime.fromisoformat(name) for name in names]
    except ValueError:
        return None
    return None if any(time.tzinfo != found[0].tzinfo for time in found) else found


def find_step(times: Sequence[datetime] | None) -> timedelta | None:
    """The time from one period to the next, in most cases; None where it cannot be told."""
    if times is None or len(times) < 3:
        return None
    steps = sorted(later - earlier for earlier, later in pairwise(times))
    return steps[len(steps) // 2] if steps[0] > timedelta(0) else None


def count_missing(times: Sequence[datetime] | None, periods: int) -> list[int]:
    """By period: how many should lie between it and the one before."""
    step = find_step(times)
    if times is None or step is None:
        return [0] * periods
    gaps = (later - earlier for earlier, later in pairwise(times))
    return [0, *(max(0, round(gap / step) - 1) for gap in gaps)]


def find_weekdays(times: Sequence[datetime] | None) -> NDArray[np.int64] | None:
    """From Monday, 0; None where periods are not days."""
    if times is None or find_step(times) != _DAY:
        return None
    return np.array([time.weekday() for time in times])


def design(weekday: NDArray[np.int64] | None, keep: Flags, trend: bool) -> Floats:
    """A row for every period: the mean, a trend if there may be one, and days of the week. The last two are zeros where
    the baseline `keep` is too short to tell."""
    n, many = len(keep), int(keep.sum())
    columns = np.zeros((n, 8))
    columns[:, 0] = 1.0
    if trend and many >= TREND:
        columns[:, 1] = np.arange(n) / n - 1
    if weekday is not None and many >= WEEKS and (np.bincount(weekday[keep], minlength=7) > 1).all():
        columns[:, 2:] = (weekday[:, None] == np.arange(1, 7)) - 1 / 7
    return columns
