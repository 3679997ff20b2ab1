"""The UPE studies around trainings: what is kept, what the tables say of it. Nothing is trained here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from elute.errors import EluteError
from elute.ranking.data import RankingData
from elute_reproduce.page import to_markdown
from elute_reproduce.study import Study
from elute_reproduce.upe import figure3, figure4, figure5, propensities, table1, table2, table3
from elute_reproduce.upe.experiment import grid as upe_grid
from elute_reproduce.upe.experiment import store
from elute_reproduce.upe.experiment.grid import Scale, collect_runs, key_of, measure_queries
from elute_reproduce.upe.experiment.learners import DLA, FITTED, NAIVE, READINGS
from elute_reproduce.upe.experiment.store import METRICS, TrainingRun
from elute_reproduce.upe.experiment.worlds import ONLINE, STRONG, VARIED, WEAK, load_graded_sets, make_synthetic_set
from elute_reproduce.upe.presentation.tables import find_best_baseline, mark_significance

KEPT = Path(__file__).parents[2] / "docs" / "reproductions" / "data"
STUDIES = (figure3, table1, figure4, table2, table3, figure5, propensities)


def _run(graded, paradigm, learner, seed, level=0.5):
    rng = np.random.default_rng(seed)
    curve = [[float(k) for k in range(9, -1, -1)]] * 20
    return TrainingRun(
        key=key_of(graded, paradigm, learner, Scale()),
        paradigm=paradigm,
        learner=learner,
        seed=seed,
        steps=list(range(500, 10_001, 500)),
        log_ratio=curve,
        validation=[0.5] * 20,
        test=[0.5] * 20,
        log_se=[0.01] * 10 if learner == FITTED else [float("nan")] * 10,
        merges=0,
        seconds=1.0,
        device="none",
        metrics={name: (level + 0.05 * rng.normal(size=graded.test.n_queries)).tolist() for name in METRICS},
    )


@pytest.fixture
def trainings(monkeypatch):
    """Trainings that cost nothing, and a list of those asked for."""
    asked = []

    def train_runs(graded, paradigm, learner, seeds, scale):
        asked.append((paradigm, learner, seeds))
        return [_run(graded, paradigm, learner, seed) for seed in range(seeds)]

    monkeypatch.setattr(upe_grid, "train_runs", train_runs)
    return asked


def _letor(folder: Path, *splits: str, documents: int = 12) -> Path:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for split in splits:
        rows = [
            f"{rng.integers(3)} qid:{query} 1:{rng.random():.3f} 2:{rng.random():.3f}"
            for query in range(8)
            for _ in range(documents)
        ]
        (folder / f"{split}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def test_a_training_is_kept_and_made_anew_only_where_something_differs(tmp_path, trainings):
    graded, cells = make_synthetic_set(14), [(WEAK, NAIVE), (WEAK, DLA)]
    study = Study(seeds=2, out=tmp_path)
    first = collect_runs(study, graded, cells)
    assert trainings == [(WEAK, NAIVE, 2), (WEAK, DLA, 2)]
    again = collect_runs(study, graded, cells)
    assert len(trainings) == 2
    assert again[WEAK, DLA][1].metrics["nDCG@10"] == pytest.approx(first[WEAK, DLA][1].metrics["nDCG@10"], abs=1e-6)
    assert len(collect_runs(replace(study, seeds=1), graded, cells)[WEAK, DLA]) == 1
    assert len(trainings) == 2
    collect_runs(replace(study, seeds=9), graded, cells[:1])
    assert trainings[2:] == [(WEAK, NAIVE, upe_grid.SEEDS)]
    collect_runs(study, replace(make_synthetic_set(21), name="synthetic"), cells[:1])
    assert len(trainings) == 4
    collect_runs(Study(seeds=2), graded, cells)
    assert len(trainings) == 6


def test_what_is_kept_comes_back(tmp_path):
    graded = make_synthetic_set(14)
    path = tmp_path / "runs.parquet"
    assert store.load(path) == []
    run = _run(graded, ONLINE, FITTED, 3)
    store.save(path, [run])
    (back,) = store.load(path)
    assert (back.key, back.paradigm, back.learner, back.seed) == (run.key, ONLINE, FITTED, 3)
    np.testing.assert_allclose(back.ratios, np.exp(run.log_ratio), rtol=1e-6)
    assert back.metrics.keys() == run.metrics.keys()
    path.write_text("not a table")
    with pytest.raises(EluteError, match="delete it to train anew"):
        store.load(path)


def test_metrics_by_hand():
    data = RankingData(
        np.zeros((3, 1), np.float32),
        np.array([0, 2, 1], np.int32),
        np.array([0, 3]),
        np.array(["q"]),
        np.array(list("abc")),
    )
    found = measure_queries(data, np.array([3.0, 2.0, 1.0]), 2)
    ideal = 3 + 1 / np.log2(3)
    assert found["nDCG@3"] == pytest.approx([(3 / np.log2(3) + 1 / 2) / ideal])
    # Nobody is satisfied by grade 0; 3/4 are by grade 2, and 1/4 of the others by grade 1.
    assert found["ERR@3"] == pytest.approx([0.75 / 2 + 0.25 * 0.25 / 3])
    assert found["ERR@1"] == [0]


def test_marks_are_those_of_a_randomisation_test():
    graded = make_synthetic_set(70)
    grid = {(WEAK, NAIVE): [_run(graded, WEAK, NAIVE, 0)], (WEAK, DLA): [_run(graded, WEAK, DLA, 1, 0.6)]}
    for name, level in zip((*READINGS, FITTED), (0.9, 0.1, 0.6, 0.6), strict=True):
        grid[WEAK, name] = [_run(graded, WEAK, name, 1, level)]
    assert find_best_baseline(grid, WEAK, "ERR@5") == DLA
    assert [mark_significance(grid, WEAK, name, "ERR@5") for name in (*READINGS, FITTED, DLA)] == ["*", "†", "", "", ""]


@pytest.mark.parametrize("module", STUDIES, ids=lambda module: module.__name__.rsplit(".", 1)[1])
def test_each_study_fits_its_page(tmp_path, trainings, monkeypatch, module):
    monkeypatch.setattr(propensities, "make_synthetic_set", lambda: make_synthetic_set(14))
    result = module.run(Study(_letor(tmp_path / "some", "train", "test"), seeds=2))
    assert result.name == "-".join(module.__name__.split(".")[1:])
    text = to_markdown(result)
    assert "2 seeds" in text
    assert {"ipw-random", "elute"} <= {entry.where["learner"] for entry in result.compared}
    assert all(entry.published is None and np.isfinite(entry.measured).all() for entry in result.compared)
    assert not any("|" in claim.sentence + claim.evidence for claim in result.claims)


def test_published_values_stand_beside_the_papers_sets(tmp_path, trainings):
    study = Study(_letor(tmp_path / "yahoo", "train", "vali", "test"), seeds=1)
    for module, learner, value in (
        (table1, "dla", 0.750),
        (table2, "rem", 0.735),
        (table3, "upe-mrr", 0.762),
    ):
        found = {
            (entry.where["learner"], entry.where["metric"]): entry.published for entry in module.run(study).compared
        }
        assert found[learner, "nDCG@10"].mean == value
        assert found["upe", "ERR@1"] is not None
        assert found["elute", "nDCG@10"] is None


def test_validation_data_are_used_where_there_are_any(tmp_path):
    (without,) = load_graded_sets(_letor(tmp_path / "without", "train", "test"))
    (with_some,) = load_graded_sets(_letor(tmp_path / "with", "train", "test", "vali"))
    assert without.validation is None
    assert with_some.validation is not None
    assert without.digest != with_some.digest


def test_lists_must_fill_ten_positions(tmp_path):
    with pytest.raises(EluteError, match="no training query has 10 documents"):
        load_graded_sets(_letor(tmp_path / "short", "train", "test", documents=6))


def test_the_pages_trainings_are_those_of_this_code(data):
    """So that pages are remade in seconds; after a change of a learner, raise `_VERSION` and train anew."""
    sets = {graded.name: graded for graded in load_graded_sets(data)} | {"synthetic": make_synthetic_set()}
    for name in ("mslr5k", "mq2008", "synthetic"):
        kept = store.load(KEPT / f"upe-{name}.parquet")
        assert {run.key for run in kept} == {key_of(sets[name], run.paradigm, run.learner, Scale()) for run in kept}
        assert {run.paradigm for run in kept} == {WEAK, STRONG, VARIED, ONLINE}
