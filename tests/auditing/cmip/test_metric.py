"""What must hold of CMIP whatever the scores: invariance, notes, errors."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.auditing.cmip import cmip
from elute.errors import EluteError


def example(n=300, seed=0):
    rng = np.random.default_rng(seed)
    grade = rng.integers(0, 3, n)
    policy = grade + rng.standard_normal(n)
    return policy + rng.standard_normal(n), policy, grade


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([np.exp, np.cbrt, lambda s: 3 * s - 7, lambda s: s**3]),
    st.sampled_from(["knn", "ksg", "copula"]),
    st.integers(0, 50),
    st.booleans(),
)
def test_only_the_order_of_scores_counts(transform, estimator, seed, rounded):
    scores, policy, grade = example(seed=seed)
    if rounded:
        scores = np.round(2 * scores) / 2
    found = cmip(scores, policy, grade, estimator, permutations=19)
    assert cmip(transform(scores), policy, grade, estimator, permutations=19) == found
    assert cmip(scores, transform(policy), 10 * grade - 3, estimator, permutations=19) == found
    assert found.low <= found.estimate <= found.high
    assert 0 < found.p_value <= 1
    assert np.isfinite(found.estimate)


def test_the_seed_decides_and_nothing_else():
    scores, policy, grade = example()
    assert cmip(scores, policy, grade, seed=1) == cmip(scores, policy, grade, seed=1)
    assert cmip(scores, policy, grade, seed=1) != cmip(scores, policy, grade, seed=2)


@pytest.mark.parametrize("estimator", ["knn", "ksg", "copula", "dv"])
def test_a_constant_score_tells_nothing(estimator):
    scores, policy, grade = example()
    for x, y in ((np.ones(300), policy), (scores, np.ones(300)), (np.ones(300), np.ones(300))):
        found = cmip(x, y, grade, estimator)
        assert (found.estimate, found.low, found.high, found.p_value) == (0, 0, 0, 1)
        assert "constant" in found.notes[0]


def test_a_constant_within_one_grade_counts_nothing_there():
    scores, policy, grade = example(3_000)
    scores = np.where(grade == 0, 0.0, scores)
    found = cmip(scores, policy, grade)
    rest = cmip(scores[grade > 0], policy[grade > 0], grade[grade > 0])
    assert found.estimate == pytest.approx(rest.estimate * np.mean(grade > 0), abs=0.02)
    assert found.notes == ("a score is constant, which tells nothing and counts 0, within grade 0",)


def test_a_score_that_copies_the_policy_is_noted():
    _, policy, grade = example()
    for estimator in ("knn", "ksg", "copula"):
        found = cmip(-policy, policy, grade, estimator)
        assert found.estimate > 2
        assert found.p_value == 0.001
        assert "no finite value" in found.notes[0]


def test_small_grades_are_left_out_and_named():
    scores, policy, grade = example()
    grade[:7] = 9
    found = cmip(scores, policy, grade)
    assert found.n == 293
    assert found.notes == ("grades with fewer than 20 documents left out: 9 (7 documents)",)


def test_continuous_grades_are_cut_by_quantile():
    rng = np.random.default_rng(0)
    relevance = rng.random(20_000)
    scores, policy = relevance + 0.3 * rng.standard_normal((2, 20_000))
    found = cmip(scores, policy, relevance)
    assert found.n == 20_000
    assert "20,000 distinct grades: cut into 20 parts by quantile" in found.notes[0]
    assert found.estimate < 0.02


def test_it_says_so_in_words_and_as_json():
    biased, clean = cmip(*example(3_000)), cmip(np.random.default_rng(5).random(3_000), *example(3_000)[1:])
    assert biased.sentence.startswith("Not debiased")
    assert clean.sentence.startswith("No sign of the policy")
    fields = json.loads(json.dumps(biased.to_dict()))
    assert {"estimate", "low", "high", "p_value", "estimator", "n", "notes", "verdict"} == set(fields)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1], [1, 2]), "equally long"),
        (([1, np.nan], [1, 2], [1, 2]), "1 of scores are NaN"),
        (([1, 2], [1, 2], [1, np.nan]), "1 of grades are NaN"),
        (([1, 2], [1, 2], [1, 2]), "no grade has 20 documents"),
        ((*example(), "magic"), "`estimator=` is 'magic'; give knn, ksg, copula or dv"),
        ((*example(), "knn", 0, 0), "at least 1 permutation"),
    ],
)
def test_what_cannot_be_measured_is_named(arguments, message):
    with pytest.raises(EluteError, match=message):
        cmip(*arguments)
