"""A plan beside standard experiments: what each takes, what users lose, and what is known after it.

Every experiment runs on the same share of the pages until the largest standard error is what the plan brings it to, but
no longer than `LONGEST` times as long as the log took.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.checking.check import Check
from elute.repair.swapping.designs import NAMES, TOP, Design, draw_up
from elute.repair.swapping.expected import Outlook
from elute.repair.swapping.forecast import Errors, Forecast
from elute.repair.swapping.traffic import Traffic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST = 10.0

_NOTHING = 1e-6

_SHORTEST, _HALVINGS = 1e-3, 9


def describe_forecast(
    before: Errors, after: Errors, impressions: float, users_lose: float, lengths: float, log_days: float | None
) -> dict[str, Any]:
    """The figures that plans and experiments are compared by."""
    return {
        "impressions": int(np.ceil(impressions)),
        "users_lose": float(f"{users_lose:.6g}") if users_lose > _NOTHING else 0.0,
        "log_lengths": float(f"{lengths:.6g}"),
        "days": None if log_days is None else float(f"{lengths * log_days:.6g}"),
        "largest_log_se_before": before.largest if before.parts == 1 else None,
        "largest_log_se": after.largest if after.parts == 1 else None,
        "median_log_se": after.median if after.parts == 1 else None,
    }


def compare_designs(
    check: Check,
    expected: Outlook,
    traffic: Traffic,
    kind: Ints,
    position: Floats | None,
    target_se: float,
    share: float,
    log_days: float | None,
    top: int = TOP,
) -> tuple[dict[str, Any], ...]:
    """Every standard experiment with its figures; none where the bias columns have no position."""
    if position is None:
        return ()
    most = min(top, len(np.unique(position)))
    designs = [draw_up(name, traffic, expected, kind, position, most) for name in NAMES]
    return tuple(_measure(check, expected, design, target_se, share, log_days) for design in designs)


def _measure(
    check: Check, expected: Outlook, design: Design, target_se: float, share: float, log_days: float | None
) -> dict[str, Any]:
    forecast = Forecast(check, expected, design.shown)
    lengths, errors = _find_length(forecast, target_se, share)
    figures = describe_forecast(
        forecast.measure(0.0),
        errors,
        lengths * share * design.moved,
        lengths * share * design.users_lose,
        lengths,
        log_days,
    )
    reaches = errors.parts == 1 and errors.largest is not None and errors.largest <= target_se
    return {"name": design.name, **figures, "parts_after": errors.parts, "reaches_target": reaches}


def _find_length(forecast: Forecast, target_se: float, share: float) -> tuple[float, Errors]:
    """The time, as a multiple of the log's, after which the target is reached, and the errors then."""
    longest = forecast.measure(LONGEST * share)
    if longest.parts > 1 or longest.largest is None or longest.largest > target_se:
        return LONGEST, longest
    low, high, errors = _SHORTEST, LONGEST, longest
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        found = forecast.measure(middle * share)
        if found.parts == 1 and found.largest is not None and found.largest <= target_se:
            high, errors = middle, found
        else:
            low = middle
    return high, errors
