"""The tables and figures on a grid made up here, and the file that the grid is kept in."""

from __future__ import annotations

import dataclasses
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elute.errors import EluteError
from elute.ranking.data import RankingData
from elute_reproduce.cmip import figure1, figure2, grid, table1, table2
from elute_reproduce.cmip.documents import GradedSet, load
from elute_reproduce.cmip.fits import MODELS, TEMPERATURES, Row, Sizes
from elute_reproduce.cmip.world import LOGGING, POLICIES, READINGS, USERS
from elute_reproduce.page import to_markdown
from elute_reproduce.study import Study

SEEDS = 4


def made_up(seed: int = 0) -> list[Row]:
    """CMIP tells the models apart and in what order they generalise; nDCG and perplexity are noise."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for reading, user, logging, run, (i, model) in product(READINGS, USERS, LOGGING, range(SEEDS), enumerate(MODELS)):
        ndcg, cmip = rng.uniform(0.5, 1), 0.1 * i + rng.uniform(0, 0.02)
        for test, temperature in product(POLICIES, TEMPERATURES):
            ppl = rng.uniform(1.2, 1.3) if test == logging else 1.2 + 0.01 * i + rng.uniform(0, 1e-4)
            rows.append(
                {"reading": reading, "user": user, "logging": logging, "seed": run, "model": model, "ndcg": ndcg}
                | {"cmip": cmip, "cmip_score": cmip, "test": test, "temperature": temperature}
                | {"perplexity": ppl, "conditional": ppl}
            )  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def graded() -> GradedSet:
    """30 queries of 25 to 30 documents, grades 0 to 2, features that know the grades by half."""
    rng = np.random.default_rng(0)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(25, 31, 30))))
    grades = rng.choice(3, offsets[-1], p=(0.6, 0.3, 0.1)).astype(np.int32)
    features = (grades[:, None] + 2 * rng.normal(size=(len(grades), 4))).astype(np.float32)
    ids = np.arange(len(grades)).astype(str)
    return GradedSet("toy", RankingData(features, grades, offsets, ids[:30], ids), few=True)


@pytest.fixture
def study(graded: GradedSet, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setattr(grid, "load", lambda data: graded)
    monkeypatch.setattr(grid, "make", lambda graded, sizes, study: made_up())
    monkeypatch.setattr(table1, "REPETITIONS", 20)
    monkeypatch.setattr(table2, "WAYS", (grid.TEXT, table2.CODE))
    return Study(seeds=SEEDS)


def test_cells_are_the_sixteen_of_table_1_and_hold_the_right_rows(study: Study) -> None:
    cells = grid.load_grid(study).cells()
    assert len({(c.user, c.logging, c.test) for c in cells}) == 16
    assert all(c.logging != c.test for c in cells)
    wanted = {"reading": "text", "user": "DBN", "logging": "LambdaMART", "model": "UBM", "seed": 2, "temperature": 0.1}
    rows = [row for row in made_up() if wanted.items() <= row.items()]
    cell = next(c for c in cells if (c.user, c.logging, c.test) == ("DBN", "LambdaMART", "NoisyOracle"))
    by_test = {row["test"]: row["perplexity"] for row in rows}
    found = cell.inside[3, 2], cell.outside[3, 2], cell.ndcg[3, 2], cell.cmip[3, 2]
    assert found == (by_test["LambdaMART"], by_test["NoisyOracle"], rows[0]["ndcg"], rows[0]["cmip"])


def test_the_metric_that_predicts_is_found(study: Study) -> None:
    found = table1.measure(grid.load_grid(study).cells(), 40)
    mean = dict(zip(table1.SETS, found.mean.mean(axis=0), strict=True))
    assert mean["CMIP"] > 0.9 > 0.2 > max(mean["ind PPL"], mean["nDCG"], mean["ind PPL, nDCG"])
    assert all(marks[2] == "▲" and marks[3] == "" for marks in found.mark)


def test_table_1_says_so(study: Study) -> None:
    result = table1.run(study)
    assert [result.claims[i].holds for i in (0, 4)] == [True, True], result.claims
    assert "(0.276)" in to_markdown(result)


def test_regrets_are_those_of_a_plain_loop(study: Study) -> None:
    """Strategies by CMIP and by perplexity alone, computed again from scratch."""
    cells = grid.load_grid(study).cells()[:3]
    found = table2.compute_regrets(cells)
    for name, metric in (("CMIP", "cmip"), ("PPL", "inside")):
        for i, cell in enumerate(cells):
            for run in range(SEEDS):
                known, outside = getattr(cell, metric)[:, run], cell.outside[:, run]
                lost = [
                    outside[min(some, key=lambda m: known[m])] - min(outside[m] for m in some)
                    for size in (5, 6, 7)
                    for some in combinations(range(7), size)
                ]
                assert found[name][i, run] == pytest.approx(1000 * float(np.mean(lost)))
    assert len(table2.SUBSETS) == 29


def test_table_2_prefers_cmip_where_only_it_knows(study: Study) -> None:
    result = table2.run(study)
    mean = {entry.where["strategy"]: entry.mean for entry in result.compared}
    assert mean["CMIP"] == pytest.approx(0, abs=0.2)
    assert mean["top-4 CMIP: nDCG"] < mean["nDCG"]
    assert result.claims[2].holds


def test_figure_2_has_the_worst_model_and_its_cmip(study: Study) -> None:
    result = figure2.run(study)
    assert "CACM 0.6" in result.claims[1].evidence
    assert not result.claims[1].holds
    assert len(result.figures[0].spec["hconcat"]) == 4


def test_the_grid_is_kept_and_used_again(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = dataclasses.replace(study, out=tmp_path)
    first = grid.load_grid(study)
    monkeypatch.setattr(grid, "make", lambda *given: pytest.fail("made again"))
    again = grid.load_grid(dataclasses.replace(study, seeds=3))
    assert again.table.num_rows == first.table.num_rows * 3 // SEEDS
    assert set(again.table["seed"].to_pylist()) == {0, 1, 2}


def test_the_grid_is_made_again_for_other_settings_or_more_seeds(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = dataclasses.replace(study, out=tmp_path)
    grid.load_grid(study)
    made = []

    def make(*given: object) -> pa.Table:
        made.append(given)
        return made_up()

    monkeypatch.setattr(grid, "make", make)
    monkeypatch.setattr(grid, "SMALL", Sizes(rate=0.5))
    grid.load_grid(study)
    assert len(made) == 1
    pq.write_table(pa.table({"seed": [0]}), tmp_path / grid.FILE)
    grid.load_grid(study)
    assert len(made) == 2


def test_figure_1_shows_the_echo(graded: GradedSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users are position-based: the PBM's relevance has no slope within a grade, the click rate's has."""
    monkeypatch.setattr(figure1, "load", lambda data: graded)
    monkeypatch.setattr(figure1, "SMALL", Sizes(validation=1, test=1))
    result = figure1.run(Study(seeds=1))
    mean = {(e.where["model"], e.where["metric"]): e.mean for e in result.compared}
    assert mean["DCTR", "CMIP"] > 2 * mean["PBM", "CMIP"]
    assert mean["DCTR", "correlation within a grade"] < -0.6 < -0.35 < mean["PBM", "correlation within a grade"] < 0.35
    assert result.claims[0].holds


def test_lists_are_cut_and_cross_fitted(graded: GradedSet) -> None:
    assert {k: d.data.n_documents for k, d in graded.documents.items()} == {10: 300, 25: 750}
    for documents in graded.documents.values():
        assert np.corrcoef(documents.lambdamart, documents.data.grades)[0, 1] < 0.95
        assert (np.diff(documents.data.offsets) == documents.width).all()
    assert not graded.is_papers


def test_without_a_set_the_command_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(EluteError, match="pass `data=`, "):
        load(None)
    with pytest.raises(EluteError, match="no LETOR set in or below"):
        load(tmp_path)
