"""The tests of a watch: their level where nothing happens, and what they find."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from elute.watching.changes import TESTS, JudgedPeriods, _judge_jointly, choose_baselines, find_level, name_changed
from elute.watching.prediction import Prediction
from elute_reproduce.watch.worlds import PLANTS, WARM, WORLDS, WatchWorld, simulate, watch_days


def test_the_level_is_split() -> None:
    assert find_level(2.0) * 365 * len(TESTS) == pytest.approx(2.0)


def test_baselines_are_what_comes_before() -> None:
    found = choose_baselines(np.array([2, 5]), 4)
    assert found.tolist() == [[-1, -1, 0, 1], [1, 2, 3, 4]]


def outcome_of(t: np.ndarray, residual: np.ndarray, freedom: int = 20) -> JudgedPeriods:
    """Of one period with known t of its groups."""
    shape = t.shape
    parts = Prediction(np.zeros(shape), np.ones(shape), t, np.full(shape, float(freedom)), residual, residual != 0)
    p = parts.p()
    return JudgedPeriods(np.minimum(1, p.min(1) * shape[1]), np.ones(shape[0], np.bool_), parts, 0)


def test_the_joint_chance_of_independent_groups_is_that_of_a_sum_of_squares() -> None:
    """Residuals without any correlation: all degrees of freedom count. Each group moves a little, none by itself."""
    residual = np.linalg.qr(np.random.default_rng(0).normal(size=(28, 6)))[0].T[None] * 5
    t = np.full((1, 6), 2.5)
    found = _judge_jointly(outcome_of(t, residual))
    score = stats.norm.isf(stats.t.sf(2.5, 20))
    assert found.p[0] == pytest.approx(2 * stats.chi2.sf(6 * score**2, 6), rel=1e-6)
    assert found.p[0] < 6 * 2 * stats.t.sf(2.5, 20)


def test_groups_that_move_as_one_count_as_one() -> None:
    residual = np.broadcast_to(np.random.default_rng(1).normal(size=28), (1, 6, 28)).copy()
    found = _judge_jointly(outcome_of(np.full((1, 6), 2.5), residual))
    score = stats.norm.isf(stats.t.sf(2.5, 20))
    assert found.p[0] == pytest.approx(2 * stats.chi2.sf(score**2, 1), rel=1e-6)


def test_chances_of_the_joint_test() -> None:
    """Of 4,000 periods with correlated groups, at most as many as the level says have so small a chance."""
    rng = np.random.default_rng(2)
    mix = np.linalg.cholesky(0.5 + 0.5 * np.eye(5))
    drawn = rng.normal(size=(4_000, 29, 5)) @ mix.T
    scale = np.sqrt((drawn[:, :28] ** 2).sum(1) / 28)
    t = drawn[:, 28] / scale
    found = _judge_jointly(outcome_of(t, drawn[:, :28].swapaxes(1, 2), 28))
    for level in (0.05, 0.01):
        assert (found.p <= level).mean() <= level * 1.2 + 0.002


def test_groups_that_stand_out_are_named_the_most_surprising_first() -> None:
    residual = np.random.default_rng(3).normal(size=(1, 4, 28))
    found = outcome_of(np.array([[0.1, 9.0, -0.3, -12.0]]), residual)
    assert name_changed(found, 0) == [3, 1]
    assert name_changed(outcome_of(np.array([[0.1, 1.0, -0.3, 0.4]]), residual), 0) == [1]


@pytest.mark.parametrize("world", ["as assumed", "sparse", "days differ", "a weekly rhythm"])
def test_quiet_worlds_are_quiet(world: str) -> None:
    """Half a year each: by chance of tests, 0.5 alarms at most are to be expected."""
    found, alarms = watch_days(simulate(np.random.default_rng(11), WORLDS[world], WARM + 180))
    assert sum(bool(some) for some in alarms) <= 3
    for name in TESTS:
        p = found.tests[name].p[WARM:]
        assert (p <= 0.05).mean() <= 0.09, name


@pytest.mark.parametrize("plant", [plant for plant in PLANTS if plant != "missing hour"])
def test_planted_changes_are_found(plant: str) -> None:
    around = WatchWorld(size=20_000, traffic=0.03, level=0.02, curve=0.02, weekly=0.1)
    alarms = watch_days(simulate(np.random.default_rng(12), around, WARM + 7, plant, WARM))[1]
    assert not any(alarms[:WARM])
    codes = {alarm.code for some in alarms[WARM:] for alarm in some}
    wanted = {"redesign": "curve", "tracking bug": "no_clicks", "half the clicks": "curve", "split": "links"}
    assert wanted.get(plant, "doubled") in codes


def test_another_mix_of_items_is_no_alarm() -> None:
    """From a day on only the better half of the items is shown: click rates rise by half, and nothing is said."""
    seen = simulate(np.random.default_rng(13), WatchWorld(size=20_000), WARM + 7)
    rate = np.bincount(seen.item, seen.clicks) / np.bincount(seen.item, seen.impressions)
    kept = (seen.period < WARM) | (rate[seen.item] >= np.median(rate))
    starts = np.searchsorted(seen.period[kept], np.arange(seen.periods + 1))
    left = seen._replace(
        starts=starts, **{n: getattr(seen, n)[kept] for n in ("item", "factor", "impressions", "clicks")}
    )
    crude = np.bincount(left.period, left.clicks) / np.bincount(left.period, left.impressions)
    assert crude[WARM:].mean() > 1.2 * crude[:WARM].mean()
    codes = {alarm.code for some in watch_days(left)[1] for alarm in some}
    assert not codes & {"click_rate", "curve", "no_clicks"}
