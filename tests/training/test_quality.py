"""ERR and nDCG of a ranker on graded sets, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from elute.ranking.data import RankingData
from elute.training.quality import measure_quality


def make_set(grades: list[int]) -> RankingData:
    """One query; the only feature is the score."""
    n = len(grades)
    features = np.arange(n, 0, -1, dtype=np.float32)[:, None]
    names = np.arange(n).astype(np.str_)
    return RankingData(features, np.array(grades, np.int32), np.array([0, n]), names[:1], names)


def test_err_is_by_the_highest_grade_of_the_sets_given():
    """A document of grade 1 of 2 satisfies a quarter, not the sixteenth that it would be of 4."""
    both = {"validation": make_set([1, 0]), "test": make_set([0, 2, 1])}
    found = measure_quality(lambda features: features[:, 0], both)
    assert found.mean["validation"]["err@10"] == pytest.approx(1 / 4)
    assert found.mean["test"]["err@10"] == pytest.approx(3 / 4 / 2 + 1 / 4 * 1 / 4 / 3)
    alone = measure_quality(lambda features: features[:, 0], {"validation": both["validation"]})
    assert alone.mean["validation"]["err@10"] == pytest.approx(1 / 2)
    assert measure_quality(lambda features: features[:, 0], {}) == ({}, {})


def test_errors_are_those_of_a_mean_over_queries():
    """Three queries of two documents: found at once, second, and not at all."""
    features = np.array([2, 1] * 3, np.float32)[:, None]
    names = np.arange(6).astype(np.str_)
    data = RankingData(features, np.array([1, 0, 0, 1, 0, 0], np.int32), np.array([0, 2, 4, 6]), names[:3], names)
    found = measure_quality(lambda features: features[:, 0], {"test": data})
    by_query = np.array([1.0, 1 / np.log2(3), 0.0])
    assert found.mean["test"]["ndcg@10"] == pytest.approx(by_query.mean())
    assert found.standard_error["test"]["ndcg@10"] == pytest.approx(by_query.std(ddof=1) / 3**0.5)
    one = measure_quality(lambda features: features[:, 0], {"test": make_set([1, 0])})
    assert one.standard_error["test"]["ndcg@10"] is None
