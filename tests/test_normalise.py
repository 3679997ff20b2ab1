"""Feature scales: by query and over all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from elute.errors import EluteError
from elute.ranking import normalise
from elute.ranking.data import RankingData

tables = arrays(np.float32, st.tuples(st.integers(1, 30), st.integers(0, 4)), elements=st.floats(-1e6, 1e6, width=32))


def data_of(features: np.ndarray, sizes: list[int] | None = None) -> RankingData:
    n = len(features)
    offsets = np.concatenate(([0], np.cumsum([n] if sizes is None else sizes))).astype(np.int64)
    names = np.arange(n).astype(np.str_)
    table = features.astype(np.float32)
    return RankingData(table, np.zeros(n, np.int32), offsets, np.arange(len(offsets) - 1).astype(np.str_), names)


def test_by_query_runs_from_zero_to_one_within_each_query() -> None:
    data = data_of(np.array([[1, 5], [3, 5], [2, 5], [-4, 0], [4, 8]]), [3, 0, 2])
    assert normalise.scale_by_query(data).features.tolist() == [[0, 0], [1, 0], [0.5, 0], [0, 0], [1, 1]]
    assert data.features[0].tolist() == [1, 5]


@settings(deadline=None)
@given(tables)
def test_log_standard_has_mean_zero_and_sd_one(table: np.ndarray) -> None:
    data = data_of(table)
    scaled = normalise.LogStandard.fit(data)(data)
    logs = np.sign(table.astype(float)) * np.log1p(np.abs(table.astype(float)))
    varies = logs.std(axis=0) > 1e-6
    # float32 keeps 24 bits of the largest standardised value, which n rows bound by √n
    np.testing.assert_allclose(scaled.features.astype(float).mean(axis=0)[varies], 0.0, atol=1e-6)
    np.testing.assert_allclose(scaled.features.astype(float).std(axis=0)[varies], 1.0, rtol=1e-5)


def test_log_standard_is_fitted_on_one_set_and_applied_to_another() -> None:
    train = data_of(np.array([[0.0, 7.0], [np.e - 1, 7.0], [1 - np.e, 7.0], [0.0, 7.0]]))
    scale = normalise.LogStandard.fit(train)
    np.testing.assert_allclose(scale.mean, [0.0, np.log(8.0)], atol=1e-7)
    np.testing.assert_allclose(scale.sd, [np.sqrt(0.5), 1.0], atol=1e-7)
    test = scale(data_of(np.array([[np.e**2 - 1, 0.0]]))).features
    np.testing.assert_allclose(test, [[2 / np.sqrt(0.5), -np.log(8.0)]], rtol=1e-6)


def test_many_rows_are_taken_in_slices() -> None:
    table = np.random.default_rng(0).lognormal(3, 2, size=(150_000, 2)).astype(np.float32)
    logs = np.log1p(table.astype(float))
    scale = normalise.LogStandard.fit(data_of(table))
    np.testing.assert_allclose(scale.mean, logs.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scale.sd, logs.std(axis=0), rtol=1e-12)
    expected = ((logs - logs.mean(axis=0)) / logs.std(axis=0)).astype(np.float32)
    np.testing.assert_allclose(scale(data_of(table)).features, expected, rtol=1e-5, atol=1e-7)


def test_what_cannot_be_scaled_is_named() -> None:
    with pytest.raises(EluteError, match="no document"):
        normalise.LogStandard.fit(data_of(np.zeros((0, 2))))
    with pytest.raises(EluteError, match="have 3 features, but the scale was taken from 2"):
        normalise.LogStandard.fit(data_of(np.ones((2, 2))))(data_of(np.ones((2, 3))))
