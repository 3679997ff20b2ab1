"""Policies that learn: the Ranking SVM against explicit pairs, both rankers against chance on real data."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from elute.errors import EluteError
from elute.io import letor
from elute.ranking.data import RankingData
from elute.ranking.normalise import LogStandard
from elute.simulation.policies import LambdaMART, Policy, RankingSVM
from elute.simulation.policies.ranking_svm import solve


def world(
    queries: int, seed: int, features: int = 4, weights: tuple[float, ...] = (1.0, -0.5, 0.0, 0.2)
) -> RankingData:
    """Grades that follow a linear score with noise."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 12, queries)
    n = int(sizes.sum())
    x = rng.normal(size=(n, features)).astype(np.float32)
    grades = np.clip(np.round(x @ np.array(weights) + 0.5 * rng.normal(size=n) + 1), 0, 4).astype(np.int32)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    return RankingData(x, grades, offsets, np.arange(queries).astype(np.str_), np.arange(n).astype(np.str_))


def pairs_of(data: RankingData) -> np.ndarray:
    """x_i − x_j for every pair of a query with grade_i > grade_j."""
    out = [
        data.features[i].astype(float) - data.features[j]
        for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True)
        for i in range(start, end)
        for j in range(start, end)
        if data.grades[i] > data.grades[j]
    ]
    return np.array(out)


def ndcg(data: RankingData, scores: np.ndarray, k: int = 10) -> float:
    """Mean nDCG@k over queries with a relevant document, by a plain loop."""
    values = []
    for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        gain = 2.0 ** data.grades[start:end] - 1
        discount = 1 / np.log2(np.arange(2, 2 + min(k, end - start)))
        if gain.any():
            shown = gain[np.argsort(-scores[start:end], kind="stable")][:k]
            values.append(shown @ discount / (np.sort(gain)[::-1][:k] @ discount))
    return float(np.mean(values))


@pytest.mark.parametrize("c", [0.5, 100.0])
def test_the_svm_is_that_of_explicit_pairs(c: float) -> None:
    svm = pytest.importorskip("sklearn.svm")
    data = world(30, seed=1)
    pairs = pairs_of(data)
    both = np.concatenate((pairs, -pairs))  # a classifier wants two classes; each pair counts half
    labels = np.repeat([1, -1], len(pairs))
    model = svm.LinearSVC(
        C=c / len(pairs), loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-10, max_iter=100_000
    )
    model.fit(both, labels)
    np.testing.assert_allclose(solve(data, 2 * c), model.coef_[0], rtol=1e-5, atol=1e-6)


def test_the_slope_of_the_objective_vanishes_at_the_minimum() -> None:
    data = world(20, seed=2)
    pairs, c = pairs_of(data), 10.0
    w = solve(data, c)
    short = np.maximum(0.0, 1.0 - pairs @ w)
    np.testing.assert_allclose(w - 2 * c / len(pairs) * (pairs.T @ short), 0.0, atol=1e-6)


def test_the_share_and_the_seed_choose_the_queries() -> None:
    train = world(400, seed=3)
    first, again, other = (RankingSVM(share=0.05, seed=s).fit(train) for s in (1, 1, 2))
    assert first.scores(train).tolist() == again.scores(train).tolist()
    assert first.weights_.tolist() != other.weights_.tolist()
    assert RankingSVM(share=1.0, seed=1).fit(train).weights_.tolist() == pytest.approx(
        RankingSVM(share=1.0, seed=2).fit(train).weights_.tolist(), abs=1e-9
    )


def test_a_feature_that_does_not_vary_among_the_queries_drawn_is_not_blown_up_in_the_others() -> None:
    """It has hardly any weight, and the scale of all queries: so scores stay of one size."""
    train = world(200, seed=5)
    drawn = np.random.default_rng(1).choice(200, 2, replace=False)
    features = train.features.copy()
    features[:, 0] *= 1e3
    features[np.isin(train.query_of, drawn), 0] *= 1e-9
    flat = RankingData(features, train.grades, train.offsets, train.queries, train.documents)
    fitted = RankingSVM(share=0.01, seed=1).fit(flat)
    whole = LogStandard.fit(flat)
    np.testing.assert_allclose(fitted.scale_.sd, whole.sd)
    scores = fitted.scores(flat)
    assert scores.std() < 5 * scores[np.isin(flat.query_of, drawn)].std()


def test_queries_without_pairs_are_named() -> None:
    train = world(50, seed=4)
    flat = RankingData(train.features, np.ones_like(train.grades), train.offsets, train.queries, train.documents)
    with pytest.raises(EluteError, match="in the 1 queries drawn no two documents of a query differ"):
        RankingSVM().fit(flat)
    with pytest.raises(EluteError, match=r"'share' is 0\.0; give a number above 0 and up to 1"):
        RankingSVM(share=0.0).fit(train)


@pytest.mark.parametrize("policy", [RankingSVM(), LambdaMART()])
def test_a_ranker_must_be_trained(policy: Policy) -> None:
    with pytest.raises(EluteError, match=r"call fit\(train\) first"):
        policy.scores(world(2, seed=5))


def test_other_features_are_refused() -> None:
    pytest.importorskip("lightgbm")
    train, test = world(50, seed=6), world(5, seed=7, features=5, weights=(1, 0, 0, 0, 0))
    for policy in (RankingSVM(share=1.0).fit(train), LambdaMART(trees=2).fit(train)):
        with pytest.raises(EluteError, match="the data have 5 features"):
            policy.scores(test)


def test_without_lightgbm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(EluteError, match=r'pip install "elute\[trees\]"'):
        LambdaMART().fit(world(3, seed=0))


def test_lambdamart_learns_and_repeats_itself() -> None:
    pytest.importorskip("lightgbm")
    train, test = world(300, seed=8), world(100, seed=9)
    policy = LambdaMART(trees=30, leaves=7).fit(train)
    chance = np.mean([ndcg(test, np.random.default_rng(s).random(test.n_documents)) for s in range(20)])
    assert ndcg(test, policy.scores(test)) > chance + 0.1
    assert policy.scores(test).tolist() == LambdaMART(trees=30, leaves=7).fit(train).scores(test).tolist()


@pytest.mark.parametrize("name", ["mq2008", "mslr5k"])
def test_rankers_beat_chance_on_real_queries(data: Path, name: str) -> None:
    """A tenth of the queries makes a weak ranker; all of them, a better one; trees learn from all of them."""
    pytest.importorskip("lightgbm")
    train = letor.read(data / name / "train.txt.gz")
    test = letor.read(data / name / "test.txt.gz", n_features=train.features.shape[1])
    chance = [ndcg(test, np.random.default_rng(s).random(test.n_documents)) for s in range(20)]
    bar = np.mean(chance) + 4 * np.std(chance)
    weak = np.mean([ndcg(test, RankingSVM(share=0.1, seed=s).fit(train).scores(test)) for s in range(3)])
    assert weak > bar
    assert ndcg(test, RankingSVM(share=1.0).fit(train).scores(test)) > bar
    assert ndcg(test, LambdaMART(trees=20).fit(train).scores(test)) > bar
