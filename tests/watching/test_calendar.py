"""Names of periods as times, and what figures are regressed on."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest

from elute.watching.calendar import count_missing, design, find_step, find_weekdays, read_times


def days(n: int, *without: int) -> list[str]:
    return [str(date(2026, 10, 5) + timedelta(days=day)) for day in range(n) if day not in without]


def test_dates_hours_and_other_names() -> None:
    assert find_step(read_times(days(5))) == timedelta(days=1)
    assert find_step(read_times([f"2026-11-14T{hour:02}" for hour in range(9)])) == timedelta(hours=1)
    assert read_times(["a", "b"]) is None
    assert read_times(["1", "2", "3"]) is None
    assert find_step(None) is None
    assert find_step(read_times(days(2))) is None


@pytest.mark.parametrize(("without", "missing"), [((), 0), ((4,), 1), ((3, 4), 2)])
def test_missing_periods_are_counted_where_the_next_is(without: tuple[int, ...], missing: int) -> None:
    names = days(9, *without)
    found = count_missing(read_times(names), len(names))
    assert found[names.index(days(9)[5])] == missing
    assert sum(found) == missing
    assert count_missing(None, 3) == [0, 0, 0]


def test_weekdays_are_of_days_alone() -> None:
    weekday = find_weekdays(read_times(days(30)))
    assert weekday is not None
    assert list(weekday[:8]) == [0, 1, 2, 3, 4, 5, 6, 0]
    assert find_weekdays(read_times([f"2026-11-14T{hour:02}" for hour in range(9)])) is None


def test_the_design_is_as_long_as_the_baseline_allows() -> None:
    weekday = np.arange(29) % 7
    for many, trend, columns in ((28, True, 8), (28, False, 7), (14, True, 2), (14, False, 1), (8, True, 1)):
        keep = (np.arange(29) < 28) & (np.arange(29) >= 28 - many)
        x = design(weekday, keep, trend)
        assert (x != 0).any(0).sum() == columns
        assert np.linalg.matrix_rank(x[keep]) == columns
    assert (design(None, np.arange(29) < 28, False) != 0).any(0).sum() == 1
