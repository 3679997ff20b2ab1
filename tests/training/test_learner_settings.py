"""Settings of a training: rates to choose from, hidden layers, dropout, the least propensity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import elute
from elute.errors import Diverged, EluteError
from elute.progress import silent
from elute.training.rates import Trial, search_rates
from elute.training.weights import Weighing

LETOR = "docs/data/letor.txt"


pytestmark = pytest.mark.usefixtures("quick_compiling")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "clicks.parquet"
    elute.simulate(LETOR, path, sessions=300, seed=4)
    return path


def make_trial(*values: float, name: str = "ndcg") -> Trial:
    rows = [{"step": i, "loss": 1.0, "ndcg": None} | {name: value} for i, value in enumerate(values, 1)]
    return Trial({"history": rows}, lambda: None)


def test_the_rate_that_validates_best_is_kept() -> None:
    """By the best moment of each, the first of equals; one that runs away has lost."""
    trials = {0.1: make_trial(0.2, 0.7, 0.1), 0.2: make_trial(0.6, 0.7), 0.4: make_trial(0.5)}
    stages = []

    def run(rate: float, progress: Any) -> Trial:
        progress("training", 0, 1)
        if rate not in trials:
            raise Diverged("the loss ran away")
        return trials[rate]

    found = search_rates([9.0, 0.4, 0.1, 0.2], run, lambda stage, done, total: stages.append(stage))
    assert (found.fields["rate"], found.fields["history"]) == (0.1, trials[0.1].fields["history"])
    tried = [(one["rate"], one["validation"]) for one in found.fields["rates"]]
    assert tried == [(9.0, None), (0.4, 0.5), (0.1, 0.7), (0.2, 0.7)]
    assert stages[0] == "rate 9, training"
    assert search_rates([0.4], run, silent) is trials[0.4]
    with pytest.raises(Diverged):
        search_rates([8.0, 9.0], run, silent)
    assert make_trial(0.3, 0.4, name="click_dcg").value == 0.4


@pytest.mark.parametrize("by", [{"validation": LETOR}, {"holdout": 0.3}])
def test_a_search_leaves_what_training_with_its_rate_leaves(log: Path, tmp_path: Path, by: dict[str, Any]) -> None:
    pytest.importorskip("lightgbm")
    how: dict[str, Any] = {"learner": "naive", "model": "lightgbm", "steps": 4, "test": LETOR, **by}
    alone = {rate: elute.train(log, LETOR, tmp_path / f"{rate}", **how, rate=rate) for rate in (0.02, 0.5)}
    found = elute.train(log, LETOR, tmp_path / "both", **how, rate=[0.02, 0.5])
    name = "ndcg" if "validation" in by else "click_dcg"
    values = {rate: max(row[name] for row in one.history) for rate, one in alone.items()}
    assert {one["rate"]: one["validation"] for one in found.rates} == values
    assert found.rate == max(values, key=lambda rate: values[rate])
    assert (tmp_path / "both" / "ranker.txt").read_text() == (tmp_path / f"{found.rate}" / "ranker.txt").read_text()
    assert found.metrics == alone[found.rate].metrics
    assert elute.Trained.load(tmp_path / "both").rates == found.rates


def test_hidden_layers_are_those_asked_for(log: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"learner": "naive", "steps": 2, "batch": 8, "hidden": (3, 2), "dropout": 0.0}
    found = elute.train(log, LETOR, tmp_path / "small", **how)
    with np.load(tmp_path / "small" / "ranker.npz") as saved:
        assert [saved[f"weight_{i}"].shape for i in range(3)] == [(4, 3), (3, 2), (2, 1)]
    assert (found.hidden, found.dropout) == ([3, 2], 0.0)
    with pytest.raises(EluteError, match="made with other hidden"):
        elute.train(log, LETOR, tmp_path / "small", **{**how, "hidden": 3}, resume=True)
    with pytest.raises(EluteError, match="no hidden layers; `dropout=` goes with"):
        elute.train(log, LETOR, tmp_path / "a", model="linear", dropout=0.0)


def test_no_click_weighs_more_than_clipping_lets_it(log: Path, tmp_path: Path) -> None:
    weighing = Weighing(pa.table({"position": [1, 2, 3]}), np.array([1.0, 0.1, 0.0]), None, "")
    assert weighing.weight.tolist() == [1, 10, 0]
    assert weighing._replace(least=0.25).weight.tolist() == [1, 4, 0]
    table = pa.table({"position": range(1, 11), "propensity": [1.0] + [0.01] * 9})
    even = pa.table({"position": range(1, 11), "propensity": [1.0] + [0.5] * 9})
    pytest.importorskip("lightgbm")
    how: dict[str, Any] = {"learner": "ipw", "model": "lightgbm", "steps": 2}
    clipped = elute.train(log, LETOR, tmp_path / "a", **how, propensities=table, clip=0.5)
    plain = elute.train(log, LETOR, tmp_path / "b", **how, propensities=even)
    assert (clipped.loss, clipped.clip) == (plain.loss, 0.5)
    assert [row["propensity"] for row in clipped.propensities] == [1.0] + [0.01] * 9
    for learner in ("naive", "dla"):
        with pytest.raises(EluteError, match="`clip=` has none to clip; ipw, ipw-random, elute, score-adjusted have"):
            elute.train(log, LETOR, tmp_path / "c", learner=learner, clip=0.5)


def test_several_rates_need_something_to_choose_by(log: Path, tmp_path: Path) -> None:
    with pytest.raises(EluteError, match="several rates are chosen from by validation"):
        elute.train(log, LETOR, tmp_path / "a", rate=(0.1, 0.2), test=LETOR)
    with pytest.raises(EluteError, match="no checkpoint of several rates"):
        elute.train(log, LETOR, tmp_path / "a", rate=(0.1, 0.2), holdout=0.2, resume=True)
    wrong: tuple[dict[str, Any], ...] = ({"hidden": [0]}, {"dropout": 1.0}, {"rate": []}, {"clip": 0.0})
    for option in wrong:
        with pytest.raises(EluteError, match=f"`{next(iter(option))}=` is"):
            elute.train(log, LETOR, tmp_path / "a", **option)
