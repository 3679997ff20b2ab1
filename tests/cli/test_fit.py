"""`elute fit` keeps its contract: files, fields, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from conftest import call_elute, run_elute
from elute.auditing.assumptions import brief
from elute.cli.verbs.fit import MODELS
from elute.errors import NotRecoverable
from elute.estimate.models import registry
from elute.simulation.grades import PROPENSITIES

AFFINE = ("affine", "affine-ipw")
"""Clicks are not r·o: an item has no posterior."""

UNMEASURED = (*registry.GIVEN, "naive", "ctr")
"""Propensities are not estimated, so neither is how far clicks that depend on each other move them."""


def test_the_command_line_knows_every_model() -> None:
    assert tuple(registry.MODELS) == MODELS


@pytest.fixture(scope="module")
def known(demo_logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fit whose propensities others take for known; the affine one has offsets too."""
    folder = tmp_path_factory.mktemp("known")
    assert call_elute("fit", demo_logs / "sound.parquet", "--model", "affine", "--out", folder).code == 0
    return folder


@pytest.mark.parametrize("model", [model for model in MODELS if model != "score-adjusted"])  # the log has no scores
def test_files_and_fields(model: str, demo_logs: Path, known: Path, tmp_path: Path) -> None:
    own = ("--propensities", known) if model in registry.GIVEN else ("--max-iter", 300)
    outcome = call_elute("fit", demo_logs / "sound.parquet", "--model", model, *own, "--out", tmp_path, "--json")
    assert outcome.code == 0
    fields = outcome.json
    assert {"model", "iterations", "converged", "log_likelihood", "seconds"} <= set(fields)
    assert fields["model"] == model
    assert fields["converged"] or fields["reason"]
    propensities, relevance = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("propensities", "relevance"))
    assert [name for name in propensities.column_names if name != "offset"] == [
        "position", "component", "propensity", "log_se",
        *(["log_se_clusters"] if model not in UNMEASURED else []), "impressions", "clicks"
    ]  # fmt: skip
    assert ("offset" in propensities.column_names) == (model in AFFINE)
    posterior = ["shape", "rate", "evidence"] if model not in AFFINE else []
    assert relevance.column_names == [
        "query_id", "doc_id", "component", "relevance", "log_se", "impressions", "clicks", *posterior
    ]  # fmt: skip
    if model not in UNMEASURED:
        plain, clustered = (propensities[name].to_numpy() for name in ("log_se", "log_se_clusters"))
        assert (np.isnan(plain) == np.isnan(clustered)).all()
        assert (np.nan_to_num(clustered) >= np.nan_to_num(plain)).all()
    for name in posterior:
        values = relevance[name].to_numpy()
        assert (values > 0).all()
        assert name != "evidence" or (values < 1).all()
    assert (propensities.num_rows, relevance.num_rows) == (10, 1044)
    assert propensities["propensity"].to_numpy().max() == 1
    saved = json.loads((tmp_path / "fit.json").read_text())
    assert {**fields, "seconds": 0} == {
        key: value for key, value in {**saved, "seconds": 0}.items() if key not in ("provenance", "files")
    }
    assert saved["provenance"]["bias"] == ["position"]


def test_the_truth_is_within_the_error_bars(demo_logs: Path, tmp_path: Path) -> None:
    """Nine independent log ratios; all within 4 standard errors, and not all within half of one."""
    call_elute("fit", demo_logs / "sound.parquet", "--out", tmp_path)
    table = pq.read_table(tmp_path / "propensities.parquet")
    truth = np.array(PROPENSITIES) / PROPENSITIES[0]
    off = np.log(table["propensity"].to_numpy()[1:] / truth[1:]) / table["log_se"].to_numpy()[1:]
    assert np.abs(off).max() < 4
    assert np.abs(off).max() > 0.5


def test_a_log_that_is_not_recoverable_is_refused_with_the_next_command(demo_logs: Path, tmp_path: Path) -> None:
    log = demo_logs / "broken.parquet"
    refused = run_elute("fit", log, "--out", tmp_path / "fit", "--json")  # the exit code of a process
    assert refused.code == 3
    assert not (tmp_path / "fit").exists()
    command = refused.err.split("Repair the log first: elute ")[1].split()
    assert call_elute(*command, cwd=tmp_path).code == 0
    repaired = call_elute("fit", log, "--plan", tmp_path / "plan.json", "--out", tmp_path / "fit", "--json")
    assert (repaired.code, repaired.json["components"]) == (0, 1)
    propensity = pq.read_table(tmp_path / "fit" / "propensities.parquet")["propensity"].to_pylist()
    assert propensity[3] == propensity[4]  # positions 4 and 5 share one


def test_going_on_unidentified_is_marked(demo_logs: Path, tmp_path: Path) -> None:
    outcome = call_elute("fit", demo_logs / "broken.parquet", "--allow-unidentified", "--out", tmp_path)
    assert outcome.code == 0
    assert "2 components, each at its own scale" in outcome.out
    table = pq.read_table(tmp_path / "propensities.parquet").to_pylist()
    largest = {row["component"]: 0.0 for row in table}
    for row in table:
        largest[row["component"]] = max(largest[row["component"]], row["propensity"])
    assert largest == {0: 1.0, 1: 1.0}


def test_a_swap_plan_is_no_merge_plan(demo_logs: Path, tmp_path: Path) -> None:
    call_elute("repair", demo_logs / "broken.parquet", "--method", "swap", "--out", tmp_path / "swap.json")
    outcome = call_elute("fit", demo_logs / "broken.parquet", "--plan", tmp_path / "swap.json")
    assert outcome.code == 1
    assert "is a swap plan" in outcome.err


def test_weights_from_a_fit_that_was_not_finished(demo_logs: Path, known: Path, tmp_path: Path) -> None:
    shutil.copytree(known, tmp_path / "known")
    (tmp_path / "known" / "fit.json").unlink()
    refused = call_elute(
        "fit",
        demo_logs / "sound.parquet",
        "--model",
        "ipw",
        "--propensities",
        tmp_path / "known",
        "--out",
        tmp_path / "f",
    )
    assert refused.code == 1
    assert "is an unfinished fit" in refused.err
    assert not (tmp_path / "f").exists()


def test_weights_from_a_fit(demo_logs: Path, known: Path, tmp_path: Path) -> None:
    """Known propensities make any log comparable: the broken one too. Clipping keeps what it says it does."""
    given = ("--model", "ipw", "--propensities", known / "propensities.parquet")
    assert call_elute("fit", demo_logs / "broken.parquet", *given, "--json").json["model"] == "ipw"
    rows = {}
    for name, options in {
        "plain": (),
        "clipped": ("--clip", 0.5),
        "normal": ("--clip", 0.5, "--self-normalised"),
    }.items():
        done = call_elute("fit", demo_logs / "sound.parquet", *given, *options, "--out", tmp_path / name)
        assert done.code == 0, done.err
        rows[name] = pq.read_table(tmp_path / name / "relevance.parquet")["relevance"].to_numpy()
    assert (rows["clipped"] <= rows["plain"] + 1e-12).all()
    assert rows["clipped"].mean() < 0.8 * rows["plain"].mean()
    assert rows["normal"].mean() == pytest.approx(rows["plain"].mean(), rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--clip", "0.1"), "model 'pbm' has no --clip"),
        (("--model", "ipw"), "model 'ipw' needs --propensities"),
        (("--model", "dla", "--prior", "smooth"), "model 'dla' has no --prior"),
        (("--model", "dla", "--bootstrap", "10"), "model 'dla' has no --bootstrap; pbm and score-adjusted have"),
        (("--cluster", "query_id"), "--cluster says what --bootstrap draws"),
        (("--bootstrap", "5", "--cluster", "nothing"), "has no column 'nothing' to cluster by"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(demo_logs: Path, options: tuple[str, ...], message: str) -> None:
    done = call_elute("fit", demo_logs / "sound.parquet", *options)
    assert done.code == 1
    assert message in done.err


def test_priors_are_named_and_can_be_left_out(demo_logs: Path) -> None:
    log = demo_logs / "sound.parquet"
    auto, none = (call_elute("fit", log, *options, "--json").json for options in ((), ("--relevance-prior", "none")))
    assert none["prior"] == {"smooth": None, "relevance": None}
    assert auto["prior"]["relevance"] is None  # these items have clicks enough
    both = call_elute("fit", log, "--prior", "smooth", "--relevance-prior", "beta", "--json").json["prior"]
    assert both["relevance"]["a"] > 0
    assert both["smooth"]


@pytest.mark.parametrize("cluster", ["query_id", "session_id"])
def test_a_bootstrap_widens_or_confirms_the_error_bars(demo_logs: Path, tmp_path: Path, cluster: str) -> None:
    """These clicks are independent, so both kinds of clusters must come near the information's errors."""
    log = demo_logs / "sound.parquet"
    done = call_elute("fit", log, "--bootstrap", 60, "--cluster", cluster, "--out", tmp_path / "drawn", "--json")
    assert done.json["bootstrap"]["replicates"] == 60
    assert done.json["bootstrap"]["cluster"] == cluster
    assert call_elute("fit", log, "--out", tmp_path / "plain").code == 0
    drawn, plain = (pq.read_table(tmp_path / name / "propensities.parquet") for name in ("drawn", "plain"))
    ratio = drawn["log_se"].to_numpy()[1:] / plain["log_se"].to_numpy()[1:]
    assert 0.6 < ratio.min() < ratio.max() < 1.6
    low, high, value = (drawn[column].to_numpy() for column in ("low", "high", "propensity"))
    assert ((low <= value) & (value <= high)).all()


@pytest.mark.parametrize("memory", [(), ("--memory", "1GB")])
def test_click_rates_stand_beside_propensities(demo_logs: Path, tmp_path: Path, memory: tuple[str, ...]) -> None:
    """Also where the cells are in partitions."""
    page = call_elute("fit", demo_logs / "sound.parquet", *memory, "--out", tmp_path / "fit").out
    table = pq.read_table(tmp_path / "fit" / "propensities.parquet")
    shown = (
        pq.read_table(demo_logs / "sound.parquet")
        .group_by("position")
        .aggregate([("click", "count"), ("click", "sum")])
    )
    expected = {row["position"]: (row["click_count"], row["click_sum"]) for row in shown.to_pylist()}
    assert {row["position"]: (row["impressions"], row["clicks"]) for row in table.to_pylist()} == expected
    first, last = (expected[position][1] / expected[position][0] for position in (1, 10))
    line = next(line for line in page.splitlines() if line.strip().startswith("position 10"))
    assert line.split()[-2:] == [f"{last:.1%}", f"{last / first:.3f}"]
    assert elute.Fit.load(tmp_path / "fit").click_rates[0] == pytest.approx(first)


@pytest.mark.parametrize("model", ["naive", "ctr"])
def test_baselines_take_any_log(model: str, demo_logs: Path, tmp_path: Path) -> None:
    log = demo_logs / "broken.parquet"
    done = call_elute("fit", log, "--model", model, "--out", tmp_path)
    assert done.code == 0
    assert "baseline: click rates as they are, nothing debiased" in done.out
    assert "scale" not in done.out
    assert "Assumptions" not in done.out
    saved = json.loads((tmp_path / "fit.json").read_text())
    assert (saved["components"], saved["baseline"], saved["debiases"]) == (2, True, False)
    card = elute.fit(log, model).card()
    assert (card.tone, card.word) == ("calm", "Baseline")
    registry.build(model).fit(log)  # the model itself does not refuse it either
    with pytest.raises(NotRecoverable):
        elute.fit(log)


def test_a_fit_under_a_plan_that_merges_all_says_so(lone_positions: Path, tmp_path: Path) -> None:
    """Also where an older elute wrote the plan."""
    plan = tmp_path / "plan.json"
    call_elute("repair", lone_positions, "--method", "merge", "--out", plan)
    fields = json.loads(plan.read_text())
    for name in ("factors", "propensities_after", "largest_merged_factors", "largest_merged_share", "debiases"):
        del fields[name]
    plan.write_text(json.dumps(fields))
    page = call_elute("fit", lone_positions, "--plan", plan, "--out", tmp_path / "fit").out
    assert "! This plan leaves one propensity for all factors" in page
    assert "✓" not in page
    saved = elute.Fit.load(tmp_path / "fit")
    assert saved.summary["debiases"] is False
    assert (saved.card().tone, saved.card().word) == ("warn", "No debiasing")
    assert "raw click rates, no debiasing" in saved.sentence
    assert saved.summary["assumptions"]["run"] is False


def test_components_of_one_factor_each_have_nothing_to_debias_with(lone_positions: Path) -> None:
    found = elute.fit(lone_positions, allow_unidentified=True)
    assert found.summary["debiases"] is False
    assert "No component has two factors" in found.sentence


def test_rejected_assumptions_are_named_with_the_command(tmp_path: Path) -> None:
    """Clicks that depend on item and position together contradict r·o."""
    rng = np.random.default_rng(1)
    doc, position = (grid.ravel() for grid in np.meshgrid(np.arange(30), np.arange(1, 6)))
    rate = np.where((doc + position) % 2 == 0, 0.5, 0.1)
    log = pa.table({"doc_id": doc, "position": position, "n": np.full(150, 400), "click": rng.binomial(400, rate)})
    pq.write_table(log, tmp_path / "log.parquet")
    options = ("--item", "doc_id", "--impressions", "n")
    done = call_elute("fit", tmp_path / "log.parquet", *options, "--json")
    assert done.json["assumptions"]["run"] is True
    assert "examination" in done.json["assumptions"]["rejected"]
    line = next(
        line for line in call_elute("fit", tmp_path / "log.parquet", *options).out.splitlines() if "Assumptions" in line
    )
    assert line.strip().startswith("! Assumptions: the log rejects examination")
    audit = call_elute(*line.split("# elute ")[1].split())
    assert audit.code == 0
    assert "examination: rejected" in audit.out


def test_assumptions_that_were_not_tested_are_said_to_be_so(demo_logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brief, "CELLS", 100)
    done = call_elute("fit", demo_logs / "sound.parquet")
    assert "Assumptions: not tested, the log has" in done.out
    assert "cells, more than 100" in done.out
    streamed = call_elute("fit", demo_logs / "sound.parquet", "--memory", "1GB", "--json").json
    assert streamed["assumptions"] == {"run": False, "rejected": [], "reason": "the log's cells are not held in memory"}
