"""The identifiability paper's K = 2 set: the rows of its Table 1 that do not depend on a seed."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from worlds import Merge

import elute
from elute.estimate.models.dla import DLA
from elute.estimate.models.naive import Naive
from elute.estimate.models.pbm import PBM
from elute.estimate.models.two_tower import TwoTower


@pytest.fixture(scope="module")
def simulate(data):
    """Counts of 10^6 clicks an impression on a set, and the true relevance of every item."""

    def simulated(name):
        folder = data / "identifiability" / "dataset_fully_simulation" / name / "train"
        shown, grades = (
            [[int(word) for word in line.split()[1:]] for line in (folder / f"train.{kind}").read_text().splitlines()]
            for kind in ("init_list", "labels")
        )
        doc, grade = np.concatenate(shown), np.concatenate(grades)
        position = np.concatenate([np.arange(len(row)) for row in shown])
        o = np.array(json.loads((data / "identifiability" / "click_model.json").read_text())["exam_prob"])
        r = 0.1 + 0.9 * (2**grade - 1) / (2**5 - 1)
        clicks = np.random.default_rng(0).binomial(10**6, r * o[position])
        columns = {"doc": doc, "position": position, "click": clicks, "shown": np.full(len(doc), 10**6)}
        with elute.read_log(pa.table(columns), item="doc", impressions="shown") as log:
            counts = log.counts()
            assert counts.items.num_rows == 10_000
        return counts, dict(zip(doc.tolist(), r.tolist(), strict=True)), o

    return simulated


def mcc(counts, truth, model):
    """Section 5.1: the correlation of true and estimated relevance over documents, at the model's own scale."""
    true = [truth[doc] for doc in counts.items["doc"].to_pylist()]
    return np.corrcoef(true, model.solution_.relevance)[0, 1]


def test_no_debias(simulate):
    counts, truth, _ = simulate("K=2")
    assert mcc(counts, truth, Naive().fit(counts, allow_unidentified=True)) == pytest.approx(0.521, abs=5e-4)


@pytest.mark.parametrize(
    "model", [DLA(), PBM(relevance_prior="none"), TwoTower(tolerance=0.05)], ids=["dla", "pbm", "two-tower"]
)
def test_node_merging(simulate, model):
    counts, truth, _ = simulate("K=2")
    codes = {position: code for code, position in enumerate(counts.factors["position"].to_pylist())}
    model.fit(counts, plan=Merge((codes[3], codes[4])))
    assert mcc(counts, truth, model) == pytest.approx(0.975, abs=1e-3)


@pytest.mark.parametrize(
    "model",
    [DLA(), PBM(relevance_prior="none"), TwoTower(seed=3, tolerance=0.01)],
    ids=lambda model: type(model).__name__,
)
def test_node_intervention(simulate, model):
    counts, truth, o = simulate("K=2_node_intervention")
    model.fit(counts)
    assert model.converged_
    assert mcc(counts, truth, model) == pytest.approx(1, abs=1e-3)
    true = o[counts.factors["position"].to_pylist()]
    assert model.propensity_ == pytest.approx(true / true.max(), rel=0.02)


def test_without_repair_it_depends_on_the_seed(simulate):
    counts, truth, _ = simulate("K=2")
    found = [
        mcc(counts, truth, DLA(seed=seed, variant="public").fit(counts, allow_unidentified=True)) for seed in range(10)
    ]
    assert np.mean(found) == pytest.approx(0.637, abs=0.06)
    assert 0.03 < np.std(found) < 0.12
