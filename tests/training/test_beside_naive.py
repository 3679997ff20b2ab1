"""The naive ranker beside another: trained as a call of its own would, compared query by query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elute
from conftest import call_elute
from elute.auditing.ranking_metrics import ndcg
from elute.io.features import read_judged

pytest.importorskip("lightgbm")

LETOR = "docs/data/letor.txt"
KEY = ("query_id", "doc_id")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "clicks.parquet"
    elute.simulate(LETOR, path, sessions=3_000, seed=4)
    return path


@pytest.fixture(scope="module")
def asked() -> dict[str, Any]:
    return {"model": "lightgbm", "steps": 6, "max_position": 5}


def test_it_is_a_naive_run_with_all_else_the_same(log: Path, asked: dict[str, Any], tmp_path: Path) -> None:
    found = elute.train(log, LETOR, tmp_path / "both", **asked, test=LETOR, naive=True)
    alone = elute.train(log, LETOR, tmp_path / "alone", **asked, test=LETOR, learner="naive")
    without = elute.train(log, LETOR, tmp_path / "without", **asked, test=LETOR)
    assert found.metrics == without.metrics
    for name, other in (("naive/ranker.txt", "alone/ranker.txt"), ("ranker.txt", "without/ranker.txt")):
        assert (tmp_path / "both" / name).read_text() == (tmp_path / other).read_text()
    beside = found.baselines["test"]
    assert beside["naive"] == alone.metrics["test"]
    assert beside["naive_se"] == alone.metrics_se["test"]
    assert {**beside, **without.baselines["test"]} == beside
    judged = read_judged([LETOR], KEY, tuple(found.features))
    values = []
    for ranker in (found, alone):
        table = elute.rank(ranker, LETOR).table
        assert table is not None
        values.append(ndcg(judged.grades, table["score"].to_numpy(), judged.offsets, 10).by_query)
    more = values[0] - values[1]
    assert beside["ranker_less_naive"]["ndcg@10"] == pytest.approx(more.mean(), abs=1e-9)
    error = more.std(ddof=1) / np.sqrt(len(more))
    assert beside["ranker_less_naive_se"]["ndcg@10"] == pytest.approx(error, rel=1e-6)
    assert elute.Trained.load(tmp_path / "both").baselines == found.baselines
    assert elute.rank(tmp_path / "both" / "naive", LETOR).documents == judged.n_documents


def test_the_page_shows_it_with_its_error(log: Path, tmp_path: Path) -> None:
    """Also where the log names no query of the set, so that its own order is not there to compare with."""
    other = tmp_path / "other.txt"
    lines = (f"{row % 3} qid:x{row // 4} 1:0.{row} 2:{row % 5} # docid = n{row}\n" for row in range(12))
    other.write_text("".join(lines))
    words = ("--model", "lightgbm", "--steps", 3, "--max-position", 5, "--test", other, "--naive")
    done = call_elute("train", log, "--features", LETOR, *words, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "as the log shows them" not in done.out
    shown = [line.split() for line in done.out.splitlines()]
    at = next(number for number, line in enumerate(shown) if line[:3] == ["ranker", "less", "naive"])
    assert shown[at - 1][:2] == ["naive", "learner"]
    assert shown[at + 1][:4] == ["±", "2", "se", "over"]
    assert elute.Trained.load(tmp_path / "out").baselines["test"]["queries"] == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"learner": "naive", "test": LETOR}, r"`learner='naive'` is what `naive=True` compares with; leave one of"),
        ({"holdout": 0.2}, r"`naive=True` compares by grades; add `validation=` or `test=`"),
    ],
)
def test_what_it_cannot_be_compared_by(log: Path, tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(elute.EluteError, match=says):
        elute.train(log, LETOR, tmp_path / "out", model="lightgbm", naive=True, **options)
    assert not (tmp_path / "out").exists()


def test_networks_and_held_out_clicks(log: Path, tmp_path: Path) -> None:
    """A learner of propensities validates by them, the naive one by clicks that weigh 1 each, as when alone."""
    pytest.importorskip("jax")
    how: dict[str, Any] = {"model": "linear", "steps": 4, "batch": 8, "holdout": 0.3, "test": LETOR}
    elute.train(log, LETOR, tmp_path / "both", **how, learner="dla", naive=True)
    elute.train(log, LETOR, tmp_path / "alone", **how, learner="naive")
    names = [tmp_path / folder / "ranker.npz" for folder in ("both/naive", "alone")]
    with np.load(names[0]) as one, np.load(names[1]) as two:
        assert all(np.array_equal(one[name], two[name]) for name in one.files)
