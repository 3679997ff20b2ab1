"""Fits of one log with the same part held out are judged on that part."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import elute
from elute.simulation import toy


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("held") / "log.parquet"
    pq.write_table(toy.simulate(3_000, 40, False, 1), path)
    return str(path)


def test_the_part_that_no_fit_has_seen(log: str, tmp_path: Path) -> None:
    fits = [elute.fit(log, model, session="session_id", holdout=0.25, seed=3) for model in ("pbm", "dctr")]
    fits[1].save(tmp_path / "dctr")
    found = elute.audit([fits[0], tmp_path / "dctr"], log, session="session_id").to_dict()
    for fit, model in zip(fits, found["models"], strict=True):
        assert not model["in_sample"]
        assert any("held out by session" in note for note in model["notes"])
        assert model["perplexity"] == pytest.approx(fit.summary["holdout"]["perplexity"]["estimate"], rel=5e-3)


def test_other_splits_are_in_sample(log: str) -> None:
    one = elute.fit(log, session="session_id", holdout=0.25)
    other = elute.fit(log, "ctr", session="session_id", holdout=0.25, seed=1)
    whole = elute.fit(log, "ctr")
    for fits in ([one, other], [one, whole]):
        models = elute.audit(fits, log, session="session_id").to_dict()["models"]
        assert all(model["in_sample"] for model in models)
