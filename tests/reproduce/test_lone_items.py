"""Updates that visit only items shown under several factors: the same numbers as the plain ones."""

from __future__ import annotations

import numpy as np
import pytest

from elute.cells.counts import Counts
from elute.estimate.models.dla import DLA
from elute.estimate.models.em import RegressionEM
from elute.log import read_log
from elute_reproduce.identifiability.public_em import PublicEM
from elute_reproduce.identifiability.quick_dla import QuickDLA


def draw_counts(seed: int, lone: float) -> Counts:
    """Items of which a share `lone` is shown at one position; some of these are clicked more than a start allows."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    shown = np.where(rng.random(300) < lone, 1, rng.integers(2, 4, 300))
    item = np.repeat(np.arange(300), shown)
    position = np.concatenate([rng.choice(5, count, replace=False) for count in shown])
    n = rng.integers(1, 200, len(item))
    rate = rng.random(300)[item] * np.array([1, 0.8, 0.5, 0.3, 0.1])[position]
    table = pa.table({"item": item, "position": position, "click": rng.binomial(n, rate), "n": n})
    with read_log(table, item="item", impressions="n") as log:
        return log.counts()


@pytest.mark.parametrize("lone", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("steps", [1, 2, 500])
def test_it_takes_the_plain_steps(lone, steps):
    counts = draw_counts(steps, lone)
    plain = RegressionEM(seed=3, max_iter=steps, tolerance=0.0, variant="public").fit(counts, allow_unidentified=True)
    fast = PublicEM(seed=3, max_iter=steps).fit(counts, allow_unidentified=True)
    assert (plain.solution_.relevance == 1).any() or steps > 2
    np.testing.assert_allclose(fast.solution_.propensity, plain.solution_.propensity, rtol=1e-9)
    np.testing.assert_allclose(fast.solution_.relevance, plain.solution_.relevance, rtol=1e-9)
    assert fast.iterations_ == steps


@pytest.mark.parametrize("lone", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("steps", [1, 2, 30])
def test_dual_learning_takes_the_plain_steps(lone, steps):
    counts = draw_counts(steps, lone)
    settings = {"seed": 3, "max_iter": steps, "tolerance": 0.0}
    plain, quick = (model(**settings).fit(counts, allow_unidentified=True) for model in (DLA, QuickDLA))
    assert quick.iterations_ == plain.iterations_ == steps
    np.testing.assert_allclose(quick.solution_.propensity, plain.solution_.propensity, rtol=1e-9)
    np.testing.assert_allclose(quick.solution_.relevance, plain.solution_.relevance, rtol=1e-9)


def test_dual_learning_stops_where_it_has_come_to_rest():
    counts = draw_counts(1, 0.3)
    plain, quick = (model(seed=1).fit(counts, allow_unidentified=True) for model in (DLA, QuickDLA))
    assert quick.converged_ and plain.converged_
    assert abs(plain.iterations_ - quick.iterations_) < 5
    np.testing.assert_allclose(quick.solution_.propensity, plain.solution_.propensity, atol=1e-5)
    assert not QuickDLA(seed=1, max_iter=3).fit(counts, allow_unidentified=True).converged_


def test_it_says_whether_it_had_come_to_rest():
    counts = draw_counts(0, 0.2)
    assert not PublicEM(max_iter=20).fit(counts, allow_unidentified=True).converged_
    assert PublicEM(max_iter=50_000).fit(counts, allow_unidentified=True).converged_
