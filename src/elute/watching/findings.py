"""From tests to alarms, and to what is shown of every period: figures beside the limits within which there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import stdtrit

from elute._util.text import to_one_line
from elute.watching.alarms import Alarm, join_rows
from elute.watching.calendar import count_missing, read_times
from elute.watching.changes import LEAST, WEEK, JudgedPeriods, find_level, judge, name_changed
from elute.watching.faults import RowShares, find_faults
from elute.watching.figures import Figures, PeriodFigure, measure_figures, to_ratio
from elute.watching.observed import Floats, Observed
from elute.watching.periods import FactorGroups

_NAMED = 3
"""FactorGroups that a message names."""


class Findings(NamedTuple):
    """Tests of the periods `judged`, each in its row."""

    figures: Figures
    groups: FactorGroups
    judged: list[int]
    tests: dict[str, JudgedPeriods]
    level: float
    shown: Floats
    """Impressions by period."""


def judge_periods(
    seen: Observed,
    factors: pa.Table,
    reference: Floats,
    groups: FactorGroups,
    shares: RowShares,
    names: Sequence[str],
    baseline: int,
    false_alarms: float,
) -> tuple[Findings, list[list[Alarm]]]:
    """Every period that has a baseline, and the alarms of each, faults first."""
    figures = measure_figures(seen, reference, groups.of, len(groups.names))
    times, judged = read_times(names), list(range(LEAST, seen.periods))
    tests, missing = judge(figures, times, judged, baseline), count_missing(times, seen.periods)
    found = Findings(figures, groups, judged, tests, find_level(false_alarms), shares.shown.sum(1))
    alarms: list[list[Alarm]] = [[] for _ in names]
    for row, at in enumerate(judged):
        before = np.arange(max(0, at - baseline), at)
        alarms[at] += find_faults(seen, factors, shares, names[at], missing[at], at, before)
        alarms[at] += raise_alarms(found, row, names[at])
        alarms[at].sort(key=lambda alarm: alarm.kind != "fault")  # which may be what made the changes
    join_rows(alarms, WEEK)
    return found, alarms


def raise_alarms(found: Findings, row: int, period: str) -> list[Alarm]:
    """Of the tests of one period. What a period and a week say alike is said once."""
    out: list[Alarm] = []
    for test, judged in found.tests.items():
        if judged.p[row] > found.level:
            continue
        alarm = _describe(found, test, judged, row, period)
        if alarm.code not in {raised.code for raised in out}:
            out.append(alarm)
    return out


def _describe(found: Findings, test: str, judged: JudgedPeriods, row: int, period: str) -> Alarm:
    at, p, code = found.judged[row], float(judged.p[row]), test.removesuffix("_week")
    late = "" if code == test else f", over the last {WEEK} periods"
    if code == "traffic":
        expected = found.shown[at] * np.exp(judged.parts.expected[row, 0] - found.figures.traffic.y[at])
        message = f"{found.shown[at]:,.0f} impressions, where {expected:,.0f} were to be expected"
        return Alarm(period, code, message, (), float(found.shown[at]), float(expected), p)
    if code == "click_rate":
        ratio = _compare(judged, row, 0)
        message = f"items were clicked {ratio:.2f} times as often as in the baseline, at the same positions{late}"
        return Alarm(period, code, message, (), ratio, 1.0, p)
    if code == "doubled":
        ratio = _compare(judged, row, 0)
        message = f"{ratio:,.1f} times as many cells as in the baseline have even impressions and even clicks"
        return Alarm(period, code, message, (), ratio, 1.0, p)
    changed = name_changed(judged, row)
    silent = [g for g in changed if found.figures.observed[at, g] == 0 and found.figures.expected[at, g] > 0]
    if code == "curve" and silent:
        expected = found.figures.expected[at]
        parts = [f"{_name(found, group)}: {expected[group]:,.0f} were to be expected" for group in silent]
        where = tuple(found.groups.values[group] for group in silent)
        message = f"not one click ({_join(parts)})"
        return Alarm(period, "no_clicks", message, where, 0.0, float(expected[silent].sum()), p)
    ratios = [_compare(judged, row, group) for group in changed]
    parts = [f"{_name(found, group)}: {ratio:.2f} times" for group, ratio in zip(changed, ratios, strict=True)]
    said = "fewer items link places than in the baseline" if code == "links" else "propensities have changed"
    where = tuple(found.groups.values[group] for group in changed)
    return Alarm(period, code, f"{said} ({_join(parts)}){late}", where, ratios[0], 1.0, p)


def _name(found: Findings, group: int) -> str:
    return to_one_line(found.groups.names[group], 60)


def _join(parts: list[str]) -> str:
    more = f", and {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
    return ", ".join(parts[:_NAMED]) + more


def _compare(judged: JudgedPeriods, row: int, group: int) -> float:
    """How many times what was expected."""
    expected, t, deviation = (part[row, group] for part in (judged.parts[0], judged.parts.t, judged.parts.deviation))
    return float(to_ratio(expected + t * deviation)) / max(float(to_ratio(expected)), 1e-12)


def show_figures(found: Findings, at: int) -> dict[str, Any]:
    """Of a period: each figure beside what all periods have, and, where it was judged, the limits and the chance."""
    row = found.judged.index(at) if at in found.judged else None
    out: dict[str, Any] = {"traffic": _show(found, "traffic", found.figures.traffic, at, row, 0)}
    out["traffic"] |= {
        name: None if out["traffic"][name] is None else out["traffic"][name] * found.shown[at] / _of(found, at)
        for name in ("ratio", "low", "high")
    }
    out["traffic"]["impressions"] = out["traffic"].pop("ratio")
    out["click_rate"] = _show(found, "click_rate", found.figures.level, at, row, 0)
    out["doubled"] = _show(found, "doubled", found.figures.even, at, row, 0)
    for test, figure in (("curve", found.figures.curve), ("links", found.figures.links)):
        out[test] = [
            {"group": name, **_show(found, test, figure, at, row, group)}
            for group, name in enumerate(found.groups.names)
        ]
    return out


def _of(found: Findings, at: int) -> float:
    return float(np.exp(found.figures.traffic.y[at]))


def _show(found: Findings, test: str, figure: PeriodFigure, at: int, row: int | None, group: int) -> dict[str, Any]:
    """`ratio` is None where too little tells it; `low` and `high` where it was not tested."""
    y, variance = (part.reshape(len(part), -1)[at, group] for part in (figure.y, figure.variance))
    back = np.exp if test == "traffic" else to_ratio
    shown: dict[str, Any] = {
        "ratio": float(back(y)) if variance <= 1.0 else None,
        "log_se": float(np.sqrt(variance)) if variance <= 1.0 else None,
        "low": None,
        "high": None,
        "p": None,
    }
    if row is None or not np.isfinite(found.tests[test].parts.t[row, group]):
        return shown
    judged = found.tests[test]
    tried = int(np.isfinite(judged.parts.t[row]).sum())
    level = found.level / max(tried, 1) / (2 if test == "curve" else 1)
    far = float(stdtrit(judged.parts.freedom[row, group], 1 - (level if judged.side else level / 2)))
    middle, deviation = judged.parts.expected[row, group], judged.parts.deviation[row, group]
    if judged.side <= 0:
        shown["low"] = float(back(middle - far * deviation))
    if judged.side >= 0:
        shown["high"] = float(back(middle + far * deviation))
    shown["p"] = float(judged.parts.p(judged.side)[row, group])
    return shown


def list_untested(found: Findings, row: int) -> list[dict[str, str]]:
    """What of a period could not be tested, and why."""
    why = {
        "traffic": "the baseline has too few periods",
        "click_rate": "too few clicks are of items that are in other periods too: a change of the click rate cannot be "
        "told from one of the items",
        "curve": "too few clicks are of items that were shown under several factors, or in several periods",
        "links": "too few items were shown twice or more within a period, or none in more than one place",
        "doubled": "the baseline has too few periods",
    }
    return [{"test": test, "why": why[test]} for test in why if not found.tests[test].tested[row]]
