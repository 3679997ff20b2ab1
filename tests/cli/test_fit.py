"""`elute fit` keeps its contract: files, fields, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from conftest import call_elute, run_elute
from elute.cli.verbs.fit import MODELS
from elute.estimate.models import registry
from elute.simulation.grades import PROPENSITIES


def test_the_command_line_knows_every_model() -> None:
    assert tuple(registry.MODELS) == MODELS


@pytest.fixture(scope="module")
def known(demo_logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fit whose propensities others take for known; the affine one has offsets too."""
    folder = tmp_path_factory.mktemp("known")
    assert call_elute("fit", demo_logs / "sound.parquet", "--model", "affine", "--out", folder).code == 0
    return folder


@pytest.mark.parametrize("model", MODELS)
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
        "position", "component", "propensity", "log_se"
    ]  # fmt: skip
    assert ("offset" in propensities.column_names) == (model in ("affine", "affine-ipw"))
    assert relevance.column_names == [
        "query_id", "doc_id", "component", "relevance", "log_se", "impressions", "clicks"
    ]  # fmt: skip
    assert (propensities.num_rows, relevance.num_rows) == (10, 1044)
    assert propensities["propensity"].to_numpy().max() == 1
    saved = json.loads((tmp_path / "fit.json").read_text())
    assert {**fields, "seconds": 0} == {
        key: value for key, value in {**saved, "seconds": 0}.items() if key != "provenance"
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
        (("--model", "dla", "--bootstrap", "10"), "model 'dla' has no --bootstrap; pbm has"),
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
