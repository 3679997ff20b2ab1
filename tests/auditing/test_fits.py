"""What a fit predicts where it has not been, cell by cell and by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from elute.auditing.predictions import Predicted, Queries, Subject, compute_rank_losses, predict_cells, ranks_of
from elute.fits.fit import Fit


def written(folder: Path, offset: list[float] | None = None) -> Path:
    """Items a and b, positions 1 and 2; b never had a click."""
    factors = {"position": [1, 2], "component": [0, 0], "propensity": [1.0, 0.5], "log_se": [0.0, 0.1]} | (
        {} if offset is None else {"offset": offset}
    )
    items = {"query_id": [1, 1], "doc_id": ["a", "b"], "relevance": [0.8, 0.0], "impressions": [30, 10]}
    items |= {"component": [0, 0], "log_se": [0.1, None], "clicks": [20, 0]}
    pq.write_table(pa.table(factors), folder / "propensities.parquet")
    pq.write_table(pa.table(items), folder / "relevance.parquet")
    made = {"log": "log", "item": ["query_id", "doc_id"], "bias": ["position"]}
    (folder / "fit.json").write_text(json.dumps({"model": "pbm", "provenance": made}))
    return folder


def predict(folder: Path, doc: str, position: int, click: int) -> tuple[float, Predicted]:
    """The probability of what happened in one impression, and the rest."""
    rows = {"query_id": ["1"], "doc_id": [doc], "position": [position], "click": [click]}
    with elute.read_log(pa.table(rows)) as log:
        queries = Queries.of(log.counts(), "query_id")
        found = predict_cells(Subject.from_fit(Fit.load(folder), log.roles), log.counts(), queries)
    assert found.by_query.tolist() == pytest.approx([-found.losses.bits[0] * np.log(2)])
    assert found.losses.impressions.tolist() == [1]
    return float(np.exp2(-found.losses.bits[0])), found


@pytest.mark.parametrize(
    ("doc", "position", "click", "probability", "rule"),
    [
        ("a", 2, 1, 0.8 * 0.5, None),
        ("a", 2, 0, 1 - 0.8 * 0.5, None),
        ("b", 1, 1, 0.5 / 11, "certain"),
        ("b", 1, 0, 1 - 0.5 / 11, "certain"),
        ("new", 2, 1, 0.6 * 0.5, "unseen_items"),
        ("a", 9, 1, 0.8 * 0.75, "unseen_factors"),
    ],
)
def test_known_unknown_and_certain(
    tmp_path: Path, doc: str, position: int, click: int, probability: float, rule: str | None
) -> None:
    """The typical relevance is (30·0.8 + 10·0)/40 = 0.6, the typical propensity (1 + 0.5)/2."""
    found, shares = predict(written(tmp_path), doc, position, click)
    assert found == pytest.approx(probability, rel=1e-12)
    for name in ("unseen_items", "unseen_factors", "certain"):
        assert getattr(shares, name) == (1.0 if name == rule else 0.0)


def test_trust_bias_adds_its_offset(tmp_path: Path) -> None:
    assert predict(written(tmp_path, [0.3, 0.1]), "a", 2, 1)[0] == pytest.approx(0.8 * 0.5 + 0.1)
    above, shares = predict(written(tmp_path, [0.3, 0.1]), "a", 1, 0)
    assert above == pytest.approx(0.5 / 31)  # 0.8 + 0.3 is beyond 1
    assert shares.certain == 1


def test_ranks_are_positions_in_rising_order() -> None:
    ranks, positions = ranks_of(pa.table({"device": ["x", "y", "x"], "position": [30, 10, 20]}))
    assert (ranks.tolist(), positions) == ([3, 1, 2], [10, 20, 30])
    ranks, positions = ranks_of(pa.table({"device": ["x", "y"]}))
    assert (ranks.tolist(), positions) == ([1, 1], None)


def test_the_rate_by_rank_knows_nothing_of_items() -> None:
    rows = {"query_id": ["1"] * 4, "doc_id": list("abcd"), "position": [1, 1, 1, 2], "click": [1, 0, 0, 0]}
    with elute.read_log(pa.table(rows)) as log:
        found = compute_rank_losses(log.counts())
    np.testing.assert_allclose(found.bits, [-np.log2(1.5 / 4) - 2 * np.log2(2.5 / 4), -np.log2(0.75)])
    assert found.impressions.tolist() == [3, 1]
