"""Bias features against vectors written by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from elute.errors import EluteError
from elute.repair.features import MAX_VALUES, bias_features

FACTORS = pa.table({"position": [1, 2, 2], "device": ["phone", "phone", "desk"], "zoom": [0.5, 0.5, 1.5]})


def distance(features: np.ndarray, a: int, b: int) -> float:
    return float(np.linalg.norm(features[a] - features[b]))


def test_positions_alone_count_as_they_are() -> None:
    assert bias_features(FACTORS, ["position"]).tolist() == [[1], [2], [2]]


def test_positions_weigh_ten_beside_other_features() -> None:
    features = bias_features(FACTORS)
    assert distance(features, 0, 1) == pytest.approx(10)
    assert distance(features, 1, 2) == pytest.approx(np.sqrt(1 + 1))  # another device, 1 apart, and 1 of zoom


def test_weights_are_settable() -> None:
    features = bias_features(FACTORS, weights={"position": 1, "device": 3, "zoom": 0})
    assert distance(features, 0, 1) == pytest.approx(1)
    assert distance(features, 1, 2) == pytest.approx(3)


def test_vectors_from_a_table_keyed_by_one_bias_column() -> None:
    vectors = pa.table({"device": ["desk", "phone", "watch"], "x": [3.0, 0.0, 9.0], "y": [4, 0, 9]})
    features = bias_features(FACTORS, ["position", "device"], vectors)
    assert features.shape == (3, 3)
    assert distance(features, 1, 2) == pytest.approx(5)
    assert distance(features, 0, 1) == pytest.approx(10)


def test_factors_without_a_vector_are_listed() -> None:
    vectors = pa.table({"device": ["desk"], "x": [3.0]})
    with pytest.raises(EluteError, match="1 factors have no bias features: device phone"):
        bias_features(FACTORS, None, vectors)


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        ({"device": ["desk", "desk"], "x": [1.0, 2.0]}, "two rows for device desk"),
        ({"device": ["desk", "phone"], "x": ["a", "b"]}, "not numeric"),
        ({"model": ["desk"], "x": [1.0]}, "needs a bias column as key"),
        ({"device": ["desk", "phone"], "x": [1.0, float("nan")]}, "not finite"),
    ],
)
def test_tables_that_cannot_be_used(vectors: dict[str, list[object]], words: str) -> None:
    with pytest.raises(EluteError, match=words):
        bias_features(FACTORS, None, pa.table(vectors))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(EluteError, match="'colour' is not"):
        bias_features(FACTORS, ["colour"])
    with pytest.raises(EluteError, match="weight is given for 'colour'"):
        bias_features(FACTORS, weights={"colour": 2})


def test_too_many_values_ask_for_vectors() -> None:
    many = pa.table({"page": [f"p{i}" for i in range(MAX_VALUES + 1)]})
    with pytest.raises(EluteError, match=r"65 values.*table of vectors"):
        bias_features(many)
