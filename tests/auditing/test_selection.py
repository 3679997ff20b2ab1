"""Table 2's strategies: an example by hand, and what must hold whatever the models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elute.auditing.selection import STRATEGIES, regret, select
from elute.errors import EluteError

PPL = [1.30, 1.31, 1.32, 1.33, 1.34, 1.35, 1.36]
NDCG = [0.70, 0.71, 0.72, 0.73, 0.90, 0.80, 0.85]
CMIP = [0.50, 0.40, 0.30, 0.09, 0.10, 0.20, 0.05]


def test_the_nine_strategies_by_hand():
    # Top four: PPL {0 1 2 3}, nDCG {4 6 5 3}, CMIP {6 3 4 5}.
    assert select(PPL, NDCG, CMIP) == {
        "PPL": 0,
        "nDCG": 4,
        "top-4 nDCG: PPL": 3,
        "top-4 PPL: nDCG": 3,
        "CMIP": 6,
        "top-4 CMIP: PPL": 3,
        "top-4 CMIP: nDCG": 4,
        "top-4 CMIP, top-4 nDCG: PPL": 3,
        "top-4 CMIP, top-4 PPL: nDCG": 3,
    }


def test_an_empty_intersection_falls_back_to_all_models():
    perplexity = [1, 2, 3, 4, 5, 6, 7, 8]
    ndcg = [0.9, 0.1, 0.1, 0.1, 0.8, 0.7, 0.2, 0.3]
    cmip = [8, 7, 6, 5, 4, 3, 2, 1]
    assert select(perplexity, ndcg, cmip)["top-4 CMIP, top-4 PPL: nDCG"] == 0


metric = st.lists(st.floats(0, 10), min_size=3, max_size=9)


@given(metric, st.randoms(use_true_random=False))
def test_with_at_most_four_models_only_the_last_metric_counts(values, random):
    chosen = [random.sample(values, len(values)) for _ in range(3)]
    found = select(*chosen)
    first = {"perplexity": found["PPL"], "ndcg": found["nDCG"], "cmip": found["CMIP"]}
    if len(values) <= 4:
        assert found == {name: first[strategy.best] for name, strategy in STRATEGIES.items()}
    assert regret(chosen[0], found["PPL"]) == 0
    assert all(regret(chosen[0], model) >= 0 for model in found.values())


def test_regret_is_what_was_lost():
    assert regret([1.5, 1.25, 2.0], 2) == 0.75


@pytest.mark.parametrize("metrics", [([1], [1, 2], [1, 2]), ([], [], []), ([1, np.nan], [1, 2], [1, 2])])
def test_incomplete_metrics_are_refused(metrics):
    with pytest.raises(EluteError):
        select(*metrics)
