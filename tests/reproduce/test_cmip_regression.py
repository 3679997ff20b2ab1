"""The regression tree and its cross-validation against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeRegressor

from elute_reproduce.cmip import regression


@pytest.mark.parametrize("seed", range(5))
def test_the_tree_of_one_metric_is_scikit_learns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen, held = rng.normal(size=(2, 35, 1))
    target = rng.normal(size=35) + np.round(seen[:, 0])
    assert np.array_equal(regression.predict(seen, target, seen, 0), target)
    theirs = DecisionTreeRegressor().fit(seen, target).predict(held)
    assert np.allclose(regression.predict(seen, target, held, 0), theirs)


@pytest.mark.parametrize("metrics", [2, 3])
def test_trees_of_several_metrics_err_as_scikit_learns_do(metrics: int) -> None:
    """Both draw among metrics that do equally well, so trees differ; over many sets their errors must not.

    The first metric alone is of use: a tree that took the first of equals would err less than it should.
    """
    rng = np.random.default_rng(metrics)
    difference, first = [], []
    for number in range(300):
        seen, held = rng.normal(size=(2, 35, metrics))
        target, wanted = (x[:, 0] + 0.1 * rng.normal(size=35) for x in (seen, held))
        theirs = DecisionTreeRegressor(random_state=number).fit(seen, target).predict(held)
        ours, favoured = (regression.predict(seen, target, held, s) for s in (int(rng.integers(1 << 30)), 0))
        difference.append(np.mean((wanted - ours) ** 2) - np.mean((wanted - theirs) ** 2))
        first.append(np.mean((ours - favoured) ** 2))
    assert max(first) > 0
    assert abs(np.mean(difference)) < 4 * np.std(difference) / np.sqrt(300)


def test_the_first_split_of_several_metrics_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        seen, target = rng.normal(size=(20, 3)), rng.normal(size=20)
        stump = DecisionTreeRegressor(max_depth=1).fit(seen, target).tree_
        feature, threshold = regression._split(seen, target, np.arange(20), int(rng.integers(100)))
        assert feature == stump.feature[0]
        assert threshold == pytest.approx(stump.threshold[0])


def test_equal_rows_share_the_mean_of_their_targets() -> None:
    seen = np.array([[1.0], [1.0], [2.0]])
    found = regression.predict(seen, np.array([0.0, 1.0, 5.0]), np.array([[0.0], [1.4], [1.6], [9.0]]), 0)
    assert found.tolist() == [0.5, 0.5, 5.0, 5.0]


@given(st.integers(0, 10_000), st.integers(4, 20), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_predictions_are_those_of_the_training_set(seed: int, rows: int, metrics: int) -> None:
    """Whatever the metrics, ties among them included: a prediction lies between the least and the largest target."""
    rng = np.random.default_rng(seed)
    seen, wanted = (rng.integers(0, 4, (rows, metrics)).astype(float) for _ in range(2))
    target = rng.normal(size=rows)
    found = regression.predict(seen, target, wanted, seed)
    assert target.min() - 1e-12 <= found.min() <= found.max() <= target.max() + 1e-12


def test_adjusted_r_squared_of_both_halves() -> None:
    rng = np.random.default_rng(1)
    features, target = rng.normal(size=(71, 1)), rng.normal(size=71)
    order = np.random.default_rng(2).permutation(71)
    expected = []
    for held, seen in ((order[:35], order[35:]), (order[35:], order[:35])):
        plain = r2_score(target[held], regression.predict(features[seen], target[seen], features[held], 0))
        expected.append(1 - (1 - plain) * (len(held) - 1) / (len(held) - 2))
    found = regression.cross_validate(features, target, 1, np.random.default_rng(2))
    assert found == pytest.approx(expected)


def test_cross_validation_uses_every_row_once_and_its_seed_only() -> None:
    features = np.arange(10.0)[:, None]
    target = (features[:, 0] > 4.5).astype(float)
    one, again = (regression.cross_validate(features, target, 20, np.random.default_rng(3)) for _ in range(2))
    assert one.shape == (40,)
    assert np.array_equal(one, again)
    assert one.max() == 1


def test_a_metric_that_only_names_the_group_says_nothing_of_another_group() -> None:
    """Within groups the target is constant: seen groups are predicted exactly, unseen ones not at all."""
    group = np.repeat(np.arange(7), 10)
    target = np.array([3.0, 0.0, 5.0, 1.0, 6.0, 2.0, 4.0])[group]
    features = group[:, None].astype(float)
    assert regression.cross_validate(features, target, 50, np.random.default_rng(0)).mean() > 0.9
    assert regression.leave_groups_out(features, target, group) < 0.2
