"""Features of documents: LETOR and Parquet agree, and what cannot be used is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elute.errors import EluteError
from elute.io.features import read_features, read_judged
from elute.io.ranking import read_ranking

KEY = ("query_id", "doc_id")
LINES = ["2 qid:b 1:0.5 3:-2 # docid = x\n", "0 qid:b 2:1 # docid = y\n", "1 qid:a 1:3 # docid = x\n"]
TABLE: dict[str, Any] = {
    "doc_id": ["x", "x", "y"],
    "feature_2": [0, 0, 1],
    "query_id": ["b", "a", "b"],
    "feature_1": [0.5, 3.0, 0.0],
    "grade": [2, 1, 0],
    "feature_3": [-2.0, 0.0, 0.0],
}
"""The same documents, rows and columns in another order."""
NAMES = ("feature_1", "feature_2", "feature_3")


@pytest.fixture
def letor(tmp_path: Path) -> str:
    (tmp_path / "letor.txt").write_text("".join(LINES))
    return str(tmp_path / "letor.txt")


def parquet(folder: Path, **changes: Any) -> str:
    columns = {name: values for name, values in {**TABLE, **changes}.items() if values is not None}
    pq.write_table(pa.table(columns), folder / "table.parquet")
    return str(folder / "table.parquet")


def test_both_formats_give_the_same_documents(tmp_path: Path, letor: str) -> None:
    found = []
    for path in (letor, parquet(tmp_path)):
        features = read_features([path], KEY, NAMES)
        keys = [tuple(row[column] for column in KEY) for row in features.key.to_pylist()]
        found.append(dict(zip(keys, features.values.tolist(), strict=True)))
    assert found[0] == found[1]
    assert found[0]["b", "x"] == [0.5, 0.0, -2.0]


def test_judged_documents_are_brought_together_by_query(tmp_path: Path, letor: str) -> None:
    wanted = read_ranking(letor)
    for path in (letor, parquet(tmp_path)):
        found = read_judged([path], KEY, NAMES)
        for name in ("features", "grades", "offsets", "queries", "documents"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_what_letor_leaves_out_at_the_end_is_0(letor: str) -> None:
    wide = tuple(f"feature_{i}" for i in range(1, 6))
    values = read_features([letor], KEY, wide).values
    assert values.shape == (3, 5)
    np.testing.assert_array_equal(values[:, :3], read_features([letor], KEY).values)
    assert not values[:, 3:].any()
    with pytest.raises(EluteError, match="has 3 numbered features, but the ranker has 2"):
        read_features([letor], KEY, NAMES[:2])


def test_a_ranker_takes_its_features_by_name_and_no_other(tmp_path: Path) -> None:
    path = parquet(tmp_path, title=["t", "u", "v"])
    np.testing.assert_array_equal(read_features([path], KEY, ("feature_3",)).values[:, 0], [-2, 0, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"doc_id": None}, "has no column 'doc_id' to identify documents by"),
        ({"doc_id": ["x", None, "y"]}, "'doc_id' is null in 1 rows"),
        ({"query_id": ["b", "b", "b"]}, "has 1 documents more than once"),
        ({"query_id": None, "doc_id": ["x", "x", "y"]}, r"more than once \(doc_id x\)"),
        ({"feature_2": [None, 1, float("inf")]}, r"2 documents have .*\('feature_2' in 2\)"),
        ({"feature_1": [1e300, 0.0, 0.0]}, r"1 documents have .*\('feature_1' in 1\)"),
        ({"feature_2": ["1", "2", "3"]}, "feature_2 are not numbers"),
        ({"grade": [1, -1, 0]}, "'grade' must be a whole number from 0"),
        ({"feature_1": None, "feature_2": None, "feature_3": None}, "lacks features"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EluteError, match=message):
        read_features([parquet(tmp_path, **changes)], KEY)


@pytest.mark.parametrize("lacks", ["grade", "query_id"])
def test_validation_needs_grades_and_queries(tmp_path: Path, lacks: str) -> None:
    path = parquet(tmp_path, **{lacks: None}, doc_id=["x", "z", "y"])
    with pytest.raises(EluteError, match=f"has no column '{lacks}'; validation needs query_id, doc_id, grade"):
        read_judged([path], KEY, NAMES)


@pytest.mark.parametrize("column", KEY)
def test_ids_of_judged_documents_are_text(tmp_path: Path, column: str) -> None:
    path = parquet(tmp_path, **{column: [b"\xff\xfe", b"x", b"y"]})
    with pytest.raises(EluteError, match=f"column '{column}' holds bytes that are no text"):
        read_judged([path], KEY, NAMES)
