"""Faults that are no matter of chance: what is missing, what is new, what was left out.

Each compares a period with its baseline by a rule wide enough that quiet periods do not meet it: a share of at least
1%, and thrice what three quarters of the baseline's periods have. So these take nothing of the level of the tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.text import format_share
from elute.cells.factors import describe_some, to_rows
from elute.watching.alarms import Alarm
from elute.watching.observed import Floats, Observed, share_known

SHARE, TIMES, MOST = 0.01, 3.0, 0.75
"""Of the period; as often as in this share of the baseline."""
SHOWN = 100
"""Impressions a period from which a factor would be missed."""
_LISTED = 20


class RowShares(NamedTuple):
    """By period: impressions by factor; the shares of rows that were left out, of rows that repeat an item on a page,
    and of impressions of items that other periods have; parts."""

    shown: Floats
    dropped: Floats
    repeated: Floats
    known: Floats
    parts: NDArray[np.int64]


def measure_shares(seen: Observed, told: Sequence[dict[str, Any]], parts: Sequence[int]) -> RowShares:
    """`told`: of each period, what was counted beside its cells."""
    rows = np.array([max(about["rows"], 1) for about in told], np.float64)
    dropped = rows - np.array([about["usable"] for about in told])
    repeated = np.array([about["repeats_on_page"] for about in told])
    return RowShares(
        seen.tabulate(seen.impressions), dropped / rows, repeated / rows, share_known(seen), np.array(parts)
    )


def find_faults(
    seen: Observed,
    factors: pa.Table,
    shares: RowShares,
    name: str,
    missing: int,
    at: int,
    baseline: NDArray[np.int64],
) -> Iterator[Alarm]:
    """Of the period `at`, called `name`, before which so many are `missing`."""
    yield from _find_missing(shares, name, missing, at, baseline)
    yield from _find_unlike(seen, factors, shares.shown, name, at, baseline)
    for code, share, what in (
        ("dropped_rows", shares.dropped, "of the rows have no id or no impression"),
        ("repeated_rows", shares.repeated, "of the rows repeat an item on one page"),
    ):
        limit = _find_limit(share[baseline])
        if share[at] > limit:
            usual = format_share(float(_usual(share[baseline])))
            message = f"{format_share(share[at])} {what}; in three of four periods before, at most {usual}"
            yield Alarm(name, code, message, observed=float(share[at]), expected=float(np.median(share[baseline])))
    least = float(_usual(shares.known[baseline], 1 - MOST))
    if least >= 0.1 and shares.known[at] < least / TIMES:
        message = f"only {format_share(shares.known[at])} of the impressions are of items that other parts have"
        said = f"{message}; in three of four periods before, at least {format_share(least)}"
        yield Alarm(name, "new_items", said, observed=float(shares.known[at]), expected=least)


def _find_missing(shares: RowShares, name: str, missing: int, at: int, baseline: NDArray[np.int64]) -> Iterator[Alarm]:
    if missing:
        said = "1 period is" if missing == 1 else f"{missing:,} periods are"
        yield Alarm(name, "missing_parts", f"{said} missing just before {name}", observed=0.0, expected=float(missing))
    usual = int(_usual(shares.parts[baseline], 1 - MOST))
    if shares.parts[at] < usual:
        message = f"{shares.parts[at]} parts, where three of four periods before have {usual} or more"
        yield Alarm(name, "missing_parts", message, observed=float(shares.parts[at]), expected=float(usual))


def _find_unlike(
    seen: Observed, factors: pa.Table, shown: Floats, name: str, at: int, baseline: NDArray[np.int64]
) -> Iterator[Alarm]:
    """Factors that only the baseline has, or only the period."""
    before, now = shown[baseline], shown[at]
    usual = _usual(before, 1 - MOST)
    gone = np.flatnonzero((now == 0) & (usual >= SHOWN))
    if len(gone):
        rows = to_rows(factors, gone[:_LISTED])
        message = f"{_name(rows, len(gone))} had {usual[gone].sum():,.0f} impressions or more, and now none"
        yield Alarm(name, "vanished_factors", message, tuple(rows), 0.0, float(np.median(before[:, gone].sum(1))))
    window = np.append(baseline, at)
    alone = (shown[window] > 0).sum(0) == 1
    share = (shown[window] * alone).sum(1) / np.maximum(shown[window].sum(1), 1)
    fresh = np.flatnonzero(alone & (now > 0))
    if len(fresh) and now[fresh].sum() >= SHOWN and share[-1] > _find_limit(share[:-1]):
        rows = to_rows(factors, fresh[np.argsort(-now[fresh], kind="stable")][:_LISTED])
        tied = _count_tying(seen, fresh, window)
        links = "no item links them to the others" if tied == 0 else f"{tied:,} items link them to the others"
        message = f"{_name(rows, len(fresh))}: new, with {format_share(share[-1])} of the impressions; {links}"
        yield Alarm(name, "new_factors", message, tuple(rows), float(share[-1]), float(np.median(share[:-1])))


def _count_tying(seen: Observed, fresh: NDArray[np.int64], window: NDArray[np.int64]) -> int:
    """Items that were shown under new factors and under others."""
    inside, new = np.isin(seen.period, window), np.isin(seen.factor, fresh)
    return len(np.intersect1d(seen.item[inside & new], seen.item[inside & ~new]))


def _find_limit(share: Floats) -> float:
    return max(SHARE, TIMES * float(_usual(share)))


def _usual(values: Floats | NDArray[np.int64], share: float = MOST) -> Floats:
    """What so many of the periods do not exceed."""
    return np.asarray(np.sort(values, axis=0)[round(share * (len(values) - 1))], np.float64)


def _name(rows: list[dict[str, Any]], many: int) -> str:
    columns = list(rows[0])
    keys = [[row[column] for column in columns] for row in rows]
    return describe_some(columns, [*keys, *([keys[0]] * (many - len(keys)))])
