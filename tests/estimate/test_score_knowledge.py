"""A fit by a score is called known where its own propensities are, and only where the score is believed."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from test_score_adjusted import draw_table, read

import elute
from conftest import call_elute


@pytest.mark.parametrize(
    ("made", "rung", "tone"),
    [
        ({"queries": 600, "pages": 400, "lists": 2}, "known", "good"),
        ({"queries": 60, "pages": 20, "lists": 2}, "loose", "warn"),
        ({"queries": 300, "pages": 60, "lists": 2, "shift": 2.0}, "loose", "bad"),
    ],
    ids=["enough", "few", "contradicted"],
)
def test_its_own_errors_and_its_verdict_decide(made, rung, tone) -> None:
    fit = elute.fit(read(draw_table(5, **made)), "score-adjusted", score="score")
    errors = fit.propensity_errors
    assert fit.summary["rung"] == rung
    assert (fit.summary["score"]["verdict"] == "contradicted") == (tone == "bad")
    assert (errors.max() <= 0.1) == (fit.summary["precision"]["factors_known"] == 10)
    assert fit.summary["precision"]["largest_log_se"] == pytest.approx(errors.max(), rel=1e-5)
    assert fit.card().tone == tone


def test_one_list_a_query_is_not_called_apart(tmp_path) -> None:
    """No item is ever shown elsewhere: what is known comes from the score alone."""
    pq.write_table(draw_table(100, queries=600, pages=40), tmp_path / "log.parquet")
    words = ("--impressions", "shown", "--model", "score-adjusted", "--score", "score")
    said = call_elute("fit", tmp_path / "log.parquet", *words)
    assert "If so, propensities of" in " ".join(said.out.split())
    assert said.out.strip().startswith(("✓ Holds", "≈ Holds"))
