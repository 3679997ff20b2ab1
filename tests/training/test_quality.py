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
    assert found["validation"]["err@10"] == pytest.approx(1 / 4)
    assert found["test"]["err@10"] == pytest.approx(3 / 4 / 2 + 1 / 4 * 1 / 4 / 3)
    alone = measure_quality(lambda features: features[:, 0], {"validation": both["validation"]})
    assert alone["validation"]["err@10"] == pytest.approx(1 / 2)
    assert measure_quality(lambda features: features[:, 0], {}) == {}
