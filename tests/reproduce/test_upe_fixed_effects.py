"""The fixed-effect fit in memory is that of `elute fit`, and finds the truth whatever the policy was."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.checking.check import check
from elute.estimate.models.pbm import PBM
from elute.log import read_log
from elute.repair.merge_plan import plan_merges
from elute_reproduce.upe.experiment.fixed_effects import fixed_effects, merge_positions

TRUTH = np.array([0.68, 0.48, 0.28, 0.11, 0.06])


def _log(impressions: np.ndarray, clicks: np.ndarray):
    item, position = np.nonzero(impressions)
    columns = {"item": item, "position": position + 1, "shown": impressions[item, position]}
    return read_log(
        pa.table(columns | {"click": clicks[item, position]}), item="item", bias="position", impressions="shown"
    )


def test_it_is_the_fit_of_elute():
    rng = np.random.default_rng(3)
    impressions = rng.integers(0, 60, (80, 5)) * (rng.random((80, 5)) < 0.5)
    clicks = rng.binomial(impressions, np.outer(rng.uniform(0.1, 1, 80), TRUTH))
    found = fixed_effects(impressions, clicks)
    with _log(impressions, clicks) as log:
        model = PBM(relevance_prior="beta", tolerance=1e-8).fit(log)
        order = np.argsort(model.factors_["position"].to_numpy())
        expected = np.log(model.propensity_[order])
        reference = int(model.propensity_[order].argmax())
    assert found.merges == 0
    np.testing.assert_allclose(found.log_ratio, expected - expected[-1], atol=1e-6)
    # elute gives errors against the largest propensity: the last position's is the same ratio seen from its other end.
    assert found.log_se[reference] == pytest.approx(model.propensity_log_se_[order][-1], rel=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_without_noise_it_finds_the_truth_whatever_was_ranked_where(seed):
    rng = np.random.default_rng(seed)
    relevance = np.sort(rng.uniform(0.05, 1, 30))[::-1]
    # The better a document, the higher it tends to stand: two neighbouring positions each, the chain unbroken.
    first = np.minimum(np.arange(30) // 7, 3)
    impressions = np.zeros((30, 5))
    impressions[np.arange(30), first] = rng.integers(1, 50, 30)
    impressions[np.arange(30), first + 1] = rng.integers(1, 50, 30)
    found = fixed_effects(impressions, impressions * np.outer(relevance, TRUTH))
    np.testing.assert_allclose(found.log_ratio, np.log(TRUTH / TRUTH[-1]), atol=1e-6)
    assert found.merges == 0


def test_what_no_item_ties_is_merged_as_elute_merges_it():
    clicks = np.array([[5, 3, 0, 0, 0], [0, 0, 4, 2, 0], [0, 0, 0, 3, 1.0]])
    assert merge_positions(clicks).tolist() == [0, 1, 1, 2, 3]
    with _log(clicks.astype(int) * 2, clicks.astype(int)) as log:
        (pair,) = plan_merges(check(log)).pairs
    assert {pair.a["position"], pair.b["position"]} == {2, 3}
    found = fixed_effects(clicks * 2, clicks)
    assert found.merges == 1
    assert found.log_ratio[1] == found.log_ratio[2]


def test_one_list_an_item_says_nothing():
    clicks = np.diag([9.0, 5, 3, 1])
    found = fixed_effects(clicks * 10, clicks)
    assert found.merges == 3
    assert found.log_ratio.tolist() == [0, 0, 0, 0]
