"""`elute fit` with session click models, and `elute audit` of what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from conftest import call_elute, run_elute
from elute import clicks
from elute.cli.verbs.fit import MODELS, SESSION_MODELS

LETOR = Path(__file__).parents[2] / "docs" / "data" / "letor.txt"
KEY = ["query_id", "doc_id"]
SESSION = ("--session", "session_id")

pytestmark = pytest.mark.usefixtures("quick_compiling")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short pages, the same as Parquet and, in another order, as CSV; fitted with dctr and, in a process, with ubm."""
    folder = tmp_path_factory.mktemp("sessions")
    log = folder / "log.parquet"
    simulated = call_elute("simulate", "--data", LETOR, "--width", 4, "--sessions", 2_000, "--out", log)
    assert simulated.code == 0
    pd.read_parquet(log).sample(frac=1, random_state=1).to_csv(folder / "log.csv", index=False)
    for model, run in (("dctr", call_elute), ("ubm", run_elute)):
        done = run("fit", log, "--model", model, *SESSION, "--out", folder / model)
        assert done.code == 0, done.err
        assert f"{model}: converged" in done.out
    return folder


def perplexity(p: pd.Series, rows: pd.DataFrame) -> float:
    bits = pd.Series(-np.log2(np.where(rows.click == 1, p, 1 - p)), rows.index)
    return float(np.exp2(bits.groupby(rows.position).mean()).mean())


def test_the_command_line_knows_every_model() -> None:
    assert {*SESSION_MODELS, "pbm"} == set(clicks.MODELS)
    assert not set(SESSION_MODELS) & set(MODELS)


def test_files_and_fields(world: Path) -> None:
    fields = json.loads((world / "ubm" / "fit.json").read_text())
    assert {"model", "iterations", "converged", "log_likelihood", "seconds"} <= set(fields)
    assert (fields["model"], fields["converged"], fields["ranks"], fields["sessions"]) == ("ubm", True, 4, 2_000)
    assert fields["provenance"]["session"] == "session_id"
    table = pq.read_table(world / "ubm" / "relevance.parquet")
    assert table.column_names == [*KEY, "component", "relevance", "log_se", "impressions", "clicks"]
    assert table["log_se"].null_count == table.num_rows
    rows = pd.read_parquet(world / "log.parquet").groupby(KEY).click.agg(["size", "sum"])
    found = table.to_pandas().set_index(KEY).loc[rows.index]
    assert (found.impressions == rows["size"]).all()
    assert (found.clicks == rows["sum"]).all()


def test_dctr_is_the_shrunk_click_rate_that_counts_give(world: Path, tmp_path: Path) -> None:
    """Two programs, one model: `ctr` fits the same Beta prior to the same counts."""
    assert call_elute("fit", world / "log.parquet", "--model", "ctr", "--out", tmp_path, "--json").code == 0
    pages, counts = (
        pd.read_parquet(path / "relevance.parquet").set_index(KEY).relevance for path in (world / "dctr", tmp_path)
    )
    np.testing.assert_allclose(pages, counts.loc[pages.index], rtol=1e-4)


def test_likelihood_and_perplexity_are_those_of_the_rows(world: Path) -> None:
    """A click rate is the click probability of dctr, wherever the document stands."""
    rows = pd.read_parquet(world / "log.parquet").merge(pd.read_parquet(world / "dctr" / "relevance.parquet"), on=KEY)
    p = rows.relevance
    fields = json.loads((world / "dctr" / "fit.json").read_text())
    assert fields["log_likelihood"] == pytest.approx(np.log(np.where(rows.click == 1, p, 1 - p)).sum(), rel=1e-5)
    done = call_elute("audit", world / "dctr", "--log", world / "log.parquet", "--json")
    assert done.json["models"][0]["perplexity"] == pytest.approx(perplexity(p, rows), rel=1e-5)


def test_items_that_the_fit_does_not_know_are_typical_ones(world: Path, tmp_path: Path) -> None:
    """Half the queries renamed: dctr predicts for them the mean of its prior, Beta(a, b). That is worked out here from
    what the prior did to the documents it knows: relevance·(n + a + b) = c + a."""
    rows = pd.read_parquet(world / "log.parquet")
    renamed = rows.query_id.astype(int) % 2 == 0
    rows.loc[renamed, "query_id"] = "new-" + rows.query_id[renamed]
    rows.to_parquet(tmp_path / "log.parquet")
    model = call_elute("audit", world / "dctr", "--log", tmp_path / "log.parquet", "--json").json["models"][0]
    share = next(note for note in model["notes"] if "does not know" in note).split("%")[0]
    assert float(share) == pytest.approx(100 * renamed.mean(), abs=0.01)
    known = rows.merge(pd.read_parquet(world / "dctr" / "relevance.parquet"), how="left", on=KEY)
    items = pd.read_parquet(world / "dctr" / "relevance.parquet")
    r = items.relevance.to_numpy()
    (a, b), *_ = np.linalg.lstsq(np.stack((1 - r, -r), axis=1), r * items.impressions - items.clicks, rcond=None)
    expected = perplexity(known.relevance.fillna(a / (a + b)), known)
    assert model["perplexity"] == pytest.approx(expected, rel=1e-4)


def test_the_order_and_the_format_of_the_rows_do_not_matter(world: Path, tmp_path: Path) -> None:
    log = world / "log.csv"
    assert call_elute("fit", log, "--model", "ubm", *SESSION, "--out", tmp_path).code == 0
    first, second = (
        pd.read_parquet(path / "relevance.parquet").set_index(KEY).relevance for path in (world / "ubm", tmp_path)
    )
    np.testing.assert_allclose(first, second.loc[first.index], rtol=1e-5)
    here = call_elute("audit", world / "ubm", "--log", log, "--json").json["models"][0]
    there = call_elute("audit", tmp_path, "--log", world / "log.parquet", "--json").json["models"][0]
    assert here["perplexity"] == pytest.approx(there["perplexity"], rel=1e-5)


def test_session_and_count_models_in_one_audit(world: Path, tmp_path: Path) -> None:
    assert call_elute("fit", world / "log.parquet", "--allow-unidentified", "--out", tmp_path / "pbm").code == 0
    done = call_elute(
        "audit", "--fit", world / "ubm", world / "dctr", tmp_path / "pbm", "--log", world / "log.parquet",
        "--labels", world / "log.truth.parquet", "--json",
    )  # fmt: skip
    assert [model["model"] for model in done.json["models"]] == ["ubm", "dctr", "pbm"]
    assert all(len(model["perplexity_at"]) == 4 for model in done.json["models"])
    ubm, dctr, pbm = (model["perplexity"] for model in done.json["models"])
    assert ubm < dctr
    assert ubm == pytest.approx(pbm, abs=0.01)


def test_a_trained_model_is_read_back_as_it_was(world: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.parquet"
    pq.write_table(pq.read_table(world / "log.parquet").slice(0, 400), log)
    done = call_elute("fit", log, "--model", "cacm", *SESSION, "--max-iter", 1, "--out", tmp_path / "cacm", "--json")
    assert done.code == 0, done.err
    assert (done.json["iterations"], done.json["converged"]) == (1, False)
    model = call_elute("audit", tmp_path / "cacm", "--log", log, "--json").json["models"][0]
    assert "did not converge" in model["sentence"]
    # At the top of a page nothing differs but the document: P(click) there is what this model calls relevance.
    rows = pd.read_parquet(log).merge(pd.read_parquet(tmp_path / "cacm" / "relevance.parquet"), on=KEY)
    top = rows[rows.position == 1]
    assert model["perplexity_at"][0] == pytest.approx(perplexity(top.relevance, top), rel=1e-5)


def test_what_a_model_holds_impossible_has_no_likelihood(world: Path, tmp_path: Path) -> None:
    done = call_elute("fit", world / "log.parquet", "--model", "cascade", *SESSION, "--out", tmp_path, "--json")
    assert done.json["log_likelihood"] is None
    assert "a second click" in done.json["reason"]


def test_what_cannot_be_used_is_said_in_one_line(world: Path, tmp_path: Path) -> None:
    log = world / "log.parquet"
    rows = pd.read_parquet(log)
    tab, gap, null, longer = (tmp_path / f"{name}.parquet" for name in ("tab", "gap", "null", "longer"))
    rows.assign(doc_id="a\t" + rows.doc_id).to_parquet(tab)
    rows[rows.position != 2].to_parquet(gap)
    rows.assign(doc_id=rows.doc_id.where(rows.index > 0)).to_parquet(null)
    page = rows[rows.session_id == 0]
    pd.concat([page, page.assign(position=page.position + 4)]).to_parquet(longer)
    fit = ("fit", log, "--model", "ubm")
    cases = [
        (fit, "--session"),
        ((*fit, "--session", "visit"), "no column 'visit'"),
        ((*fit, *SESSION, "--plan", "plan.json"), "has no --plan"),
        ((*fit, *SESSION, "--max-iter", 3), "has no --max-iter"),
        ((*fit, *SESSION, "--tolerance", 0.1), "has no --tolerance"),
        ((*fit, *SESSION, "--bias", "position,score"), "position as the only bias column"),
        ((*fit, *SESSION, "--impressions", "position"), "clicked or not; counts are not enough"),
        (("fit", tab, "--model", "dctr", *SESSION, "--out", tmp_path / "out"), "id contains a tab"),
        (("fit", gap, "--model", "dctr", *SESSION), "positions must count from 1"),
        (("fit", null, "--model", "dctr", *SESSION), "'doc_id' is null in 1 rows"),
        (("audit", world / "ubm", "--log", longer), "8 documents, but the model has 4 ranks"),
        (("audit", world / "ubm", "--log", log, "--session", "visit"), "no column 'visit'"),
    ]
    for arguments, says in cases:
        done = call_elute(*arguments, "--json")
        assert (done.code, done.out) == (1, ""), (arguments, done.err, done.out)
        assert says in done.err, (arguments, done.err)
        assert len(done.err.strip().splitlines()) == 1, done.err
    assert not (tmp_path / "out" / "fit.json").exists()
