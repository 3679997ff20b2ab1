"""A fit made again: from its folder, with its plan, and only where its log is still there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

import elute
from elute.auditing.predictions import Subject
from elute.auditing.redrawn.refits import is_in_sample, open_fitted, prepare_refit
from elute.fits.fit import Fit
from elute.simulation import toy


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refits")
    pq.write_table(toy.simulate(3_000, 40, False, 1), folder / "sound.parquet")
    pq.write_table(toy.simulate(1_000, 40, False, 1).slice(500), folder / "later.parquet")
    return folder


def load(logs: Path, model: str, tmp_path: Path, **options: object) -> Fit:
    elute.fit(str(logs / "sound.parquet"), model, **options).save(tmp_path / model)  # type: ignore[arg-type]
    return Fit.load(tmp_path / model)


@pytest.mark.parametrize("model", ["pbm", "naive", "ctr", "dla", "affine", "harvest"])
def test_the_same_clicks_give_the_same_fit(logs: Path, model: str, tmp_path: Path) -> None:
    fit = load(logs, model, tmp_path)
    with elute.read_log(str(logs / "sound.parquet")) as log:
        counts = log.counts()
        refit = prepare_refit(fit, counts)
        found = refit.again(counts.clicks.astype(np.uint64))
    # Those that creep to the maximum agree to what they stop at.
    tolerance = 0.02 if model in ("affine", "dla") else 1e-3
    np.testing.assert_allclose(found, fit.relevance["relevance"].to_numpy(), rtol=tolerance, atol=tolerance)
    assert fit.propensities is not None
    assert refit.law.alpha == pytest.approx(fit.propensities["propensity"].to_numpy())


def test_a_model_of_the_same_likelihood_is_refitted_by_pbm(logs: Path, tmp_path: Path) -> None:
    """Its relevance ends at 1, that of pbm does not: CMIP looks at the order, which is the same but for that."""
    fit = load(logs, "two-tower", tmp_path)
    with elute.read_log(str(logs / "sound.parquet")) as log:
        counts = log.counts()
        found = prepare_refit(fit, counts).again(counts.clicks.astype(np.uint64))
    assert found.max() <= 1.0
    assert spearmanr(found, fit.relevance["relevance"].to_numpy()).statistic > 0.97


def test_propensities_that_were_given_are_kept(logs: Path, tmp_path: Path) -> None:
    pbm = load(logs, "pbm", tmp_path)
    fit = load(logs, "ipw", tmp_path, propensities=pbm)
    with elute.read_log(str(logs / "sound.parquet")) as log:
        found = prepare_refit(fit, log.counts()).again(log.counts().clicks.astype(np.uint64))
    np.testing.assert_allclose(found, fit.relevance["relevance"].to_numpy(), rtol=1e-9)


def test_in_sample_is_told_by_name_or_by_clicks(logs: Path, tmp_path: Path) -> None:
    fit = load(logs, "naive", tmp_path)
    table = pq.read_table(logs / "sound.parquet")
    pq.write_table(table, tmp_path / "copy.parquet")
    cases: list[tuple[object, dict[str, str], bool]] = [
        (str(logs / "sound.parquet"), {}, True),
        (str(tmp_path / "copy.parquet"), {}, True),
        (table, {}, True),
        (table.slice(100), {}, False),
        (str(logs / "later.parquet"), {}, False),
        (str(logs / "sound.parquet"), {"where": "session_id % 2 = 0"}, False),
    ]
    for source, options, expected in cases:
        with elute.read_log(source, **options) as log:  # type: ignore[arg-type]
            assert is_in_sample(Subject.from_fit(fit, log.roles), log) is expected, (source, options)


def test_the_log_of_a_fit_is_found_again_or_said_to_be_gone(logs: Path, tmp_path: Path) -> None:
    named = load(logs, "naive", tmp_path)
    unnamed = elute.fit(pa.table(pq.read_table(logs / "sound.parquet")), "naive")
    with elute.read_log(str(logs / "later.parquet")) as log:
        with open_fitted(Subject.from_fit(named, log.roles), log) as fitted:
            assert fitted is not None
            assert fitted.counts().impressions.sum() == pq.read_metadata(logs / "sound.parquet").num_rows
        with open_fitted(Subject.from_fit(unnamed, log.roles), log) as fitted:
            assert fitted is None
        found = elute.audit([unnamed], log, labels=toy.draw_truth(40, 1)).to_dict()["models"][0]
    assert (found["verdict"], found["in_sample"], found["cmip"]["excess"]) == ("unknown", False, None)
    assert "cannot be read again" in found["sentence"]


def test_a_merge_plan_is_kept(logs: Path, tmp_path: Path) -> None:
    """Positions that a plan merges share one propensity in every refit, though the plan's file is gone."""
    broken = toy.simulate(3_000, 40, True, 1)
    pq.write_table(broken, tmp_path / "broken.parquet")
    check = elute.check(str(tmp_path / "broken.parquet"))
    elute.merge(check).save(tmp_path / "merge.json")
    fit = elute.fit(str(tmp_path / "broken.parquet"), plan=str(tmp_path / "merge.json"))
    fit.save(tmp_path / "merged")
    (tmp_path / "merge.json").unlink()
    again = Fit.load(tmp_path / "merged")
    with elute.read_log(str(tmp_path / "broken.parquet")) as log:
        found = prepare_refit(again, log.counts()).again(log.counts().clicks.astype(np.uint64))
    np.testing.assert_allclose(found, again.relevance["relevance"].to_numpy(), rtol=1e-3, atol=1e-3)
