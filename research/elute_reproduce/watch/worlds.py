"""Days of counts, quiet or with something planted from one day on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.watching.alarms import Alarm
from elute.watching.faults import RowShares, measure_shares
from elute.watching.findings import Findings, judge_periods
from elute.watching.observed import Observed
from elute.watching.periods import choose_groups, fit_reference

POSITIONS, BASELINE = 6, 28
WARM = BASELINE + 7
"""Days before the first that is judged."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WatchWorld:
    """Days of `size` impressions on `items`. What days differ by: standard deviations of the logarithms of traffic, of
    the level of clicks and of each position's propensity; `weekly`: by how much these follow the day of the week.
    `alike`: the correlation of a day with the next. `fresh`: share of impressions that are of items shown this once.
    `users`: standard deviation of the logarithm of how readily one of 2,000 users clicks, 0 where all are alike."""

    size: int = 3_000
    items: int = 40
    traffic: float = 0.0
    level: float = 0.0
    curve: float = 0.0
    weekly: float = 0.0
    alike: float = 0.0
    fresh: float = 0.0
    users: float = 0.0


WORLDS = {
    "as assumed": WatchWorld(),
    "large": WatchWorld(size=30_000),
    "sparse": WatchWorld(size=2_000, items=3_000, fresh=0.3, traffic=0.02),
    "days differ": WatchWorld(traffic=0.08, level=0.05, curve=0.05),
    "large, days differ": WatchWorld(size=30_000, traffic=0.08, level=0.05, curve=0.05),
    "a weekly rhythm": WatchWorld(size=10_000, traffic=0.03, level=0.02, curve=0.02, weekly=0.2),
    "the same users": WatchWorld(users=1.0),
    "days hang together": WatchWorld(size=10_000, traffic=0.05, level=0.05, curve=0.03, alike=0.7),
}
"""The last breaks what is assumed: that days, beside the calendar, are independent."""

PLANTS = {
    "redesign": "positions 3 to 6 are seen 1.3 times as often",
    "tracking bug": "clicks at position 3 are lost",
    "half the clicks": "half the clicks at position 3 are lost",
    "doubled rows": "all rows are loaded twice",
    "split": "every item stays at one position",
    "missing hour": "one row in 24 is lost",
}


def simulate(rng: np.random.Generator, world: WatchWorld, days: int, plant: str = "", at: int = 0) -> Observed:
    """`plant`: what happens from the day `at` on."""
    weekday = np.arange(days) % 7
    wave, other = np.sin(2 * np.pi * weekday / 7), np.cos(2 * np.pi * weekday / 7)
    late = np.arange(days) >= at if plant else np.zeros(days, np.bool_)
    traffic = np.exp(world.weekly * wave + world.traffic * _draw_days(rng, world, days))
    level = 0.5 * world.weekly * other + world.level * _draw_days(rng, world, days)
    tilt = np.linspace(-1, 1, POSITIONS)
    curve = 0.5 * world.weekly * wave[:, None] * tilt
    curve = curve + world.curve * np.stack([_draw_days(rng, world, days) for _ in range(POSITIONS)], axis=1)
    if plant == "redesign":
        curve = curve + np.log(1.3) * late[:, None] * (np.arange(POSITIONS) >= 2)
    if plant == "tracking bug":
        curve = np.where(late[:, None] & (np.arange(POSITIONS) == 2), -np.inf, curve)
    if plant == "half the clicks":
        curve = curve + np.log(0.5) * late[:, None] * (np.arange(POSITIONS) == 2)
    shown = world.size * traffic * np.where(late & (plant == "missing hour"), 23 / 24, 1.0)
    place = rng.dirichlet(np.ones(POSITIONS), world.items)
    places = np.stack([place, np.eye(POSITIONS)[place.argmax(1)]])[(late & (plant == "split")).astype(int)]
    weight, relevance = rng.dirichlet(np.full(world.items, 0.5)), rng.beta(2, 6, world.items)
    chance = np.exp(level[:, None] + curve) / (1 + np.arange(POSITIONS))
    times = np.where(late & (plant == "doubled rows"), 2, 1)
    if world.users or world.fresh:
        return _draw_rows(rng, world, shown, place, weight, relevance, chance)
    n = rng.poisson(shown[:, None, None] * weight[:, None] * places)
    clicks = rng.binomial(n, np.minimum(1.0, relevance[:, None] * chance[:, None, :]))
    day, item, position = np.nonzero(n)
    at_cells = (day, item, position)
    return _observe(day, item, position, n[at_cells] * times[day], clicks[at_cells] * times[day], days)


def _draw_rows(
    rng: np.random.Generator,
    world: WatchWorld,
    shown: Floats,
    place: Floats,
    weight: Floats,
    relevance: Floats,
    chance: Floats,
) -> Observed:
    """Impression by impression, where these have a user or an item of their own."""
    day = np.repeat(np.arange(len(shown)), rng.poisson(shown))
    item = np.searchsorted(np.cumsum(weight)[:-1], rng.random(len(day)))
    position = (np.cumsum(place, axis=1)[item] < rng.random(len(day))[:, None]).sum(1).clip(max=POSITIONS - 1)
    readily = np.exp(rng.normal(-(world.users**2) / 2, world.users, 2_000))
    user = (2_000 * rng.random(len(day)) ** 2).astype(np.int64)  # some come far more often than others
    click = rng.random(len(day)) < relevance[item] * chance[day, position] * readily[user]
    item = np.where(rng.random(len(day)) < world.fresh, world.items + np.arange(len(day)), item)
    width = int(item.max()) + 1
    cell, code = np.unique((day * width + item) * POSITIONS + position, return_inverse=True)
    of = cell // POSITIONS
    clicks = np.bincount(code, click).astype(np.int64)
    return _observe(of // width, of % width, cell % POSITIONS, np.bincount(code), clicks, len(shown))


def _draw_days(rng: np.random.Generator, world: WatchWorld, days: int) -> Floats:
    """Standard normal, each correlated with the one before."""
    drawn = rng.standard_normal(days)
    if world.alike:
        for at in range(1, days):
            drawn[at] = world.alike * drawn[at - 1] + np.sqrt(1 - world.alike**2) * drawn[at]
    return drawn


def _observe(
    day: NDArray[np.int64],
    item: NDArray[np.int64],
    position: NDArray[np.int64],
    shown: NDArray[np.int64],
    clicks: NDArray[np.int64],
    days: int,
) -> Observed:
    kept, code = np.unique(item, return_inverse=True)
    starts = np.searchsorted(day, np.arange(days + 1))
    return Observed(starts, code.astype(np.int32), position.astype(np.int32), shown, clicks, len(kept), POSITIONS)


def watch_days(seen: Observed) -> tuple[Findings, list[list[Alarm]]]:
    """As `elute watch` does, with all days read and judged."""
    factors = pa.table({"position": np.arange(1, POSITIONS + 1)})
    rows = np.bincount(seen.period, seen.impressions, seen.periods)
    told = [{"rows": int(n), "usable": int(n), "repeats_on_page": 0} for n in rows]
    shares: RowShares = measure_shares(seen, told, [1] * seen.periods)
    groups = choose_groups(factors, seen.tabulate(seen.clicks).sum(0), seen.periods)
    names = [str(date(2024, 1, 1) + timedelta(days=day)) for day in range(seen.periods)]
    reference = fit_reference(add_up(seen, factors))
    return judge_periods(seen, factors, reference, groups, shares, names, BASELINE, 1.0)


def add_up(seen: Observed, factors: pa.Table) -> Counts:
    """All days as one log."""
    cell, code = np.unique(seen.item.astype(np.int64) * seen.factors + seen.factor, return_inverse=True)
    shown, clicks = (np.bincount(code, part).astype(np.uint32) for part in (seen.impressions, seen.clicks))
    offsets = np.searchsorted(cell // seen.factors, np.arange(seen.items + 1)).astype(np.int64)
    items = pa.table({"item": np.arange(seen.items)})
    return Counts(offsets, (cell % seen.factors).astype(np.int32), shown, clicks, factors, None, 0.0, lambda: items)
