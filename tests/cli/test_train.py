"""`elute train` and `elute rank` end to end: a world whose logging policy misleads, and what users get wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from train_worlds import DOCUMENTS, MISLEADING, QUERIES, RELEVANT, documents, elute, refused, write_world
from train_worlds import compiled_with_little_optimisation as compiled_with_little_optimisation

from elute._util.npz import write_npz
from elute.auditing.ranking_metrics import err, ndcg
from elute.neural import learners
from elute.neural.networks import LINEAR
from elute.options.learners import SETTINGS
from elute.training.networks import as_learner
from elute.training.weights import WEIGHTED


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write_world(folder)
    return folder


def train(
    world: Path, out: Path, *options: object, steps: int = 300, model: str = "linear", batch: int = 128
) -> dict[str, Any]:
    given = ("--features", world / "features.parquet", "--model", model, "--steps", steps, "--batch", batch)
    done = elute("train", world / "log.parquet", *given, *options, "--out", out, "--json")
    assert done.code == 0, done.err
    assert done.json == json.loads((out / "train.json").read_text())
    return done.json


def scores(world: Path, folder: Path, features: str = "features.parquet") -> np.ndarray:
    done = elute("rank", folder, "--features", world / features, "--out", folder / "scores.parquet", "--json")
    assert (done.code, done.json["documents"]) == (0, QUERIES * DOCUMENTS), done.err
    table = pq.read_table(folder / "scores.parquet")
    assert table.column_names == ["query_id", "doc_id", "score"]
    assert table["doc_id"].to_pylist() == [f"d{row}" for row in range(QUERIES * DOCUMENTS)]
    return table["score"].to_numpy()


def quality(found: np.ndarray) -> float:
    return ndcg(documents()[1], found, np.arange(QUERIES + 1) * DOCUMENTS, 5).mean


@pytest.fixture(scope="module")
def trained(world: Path) -> dict[str, dict[str, Any]]:
    """The learners that know their propensities, each in a folder of its name."""
    assert elute("fit", world / "log.parquet", "--out", world / "fit").code == 0
    given = {
        "naive": (),
        "ipw": ("--propensities", world / "fit"),
        "ipw-random": ("--randomised", world / "random.parquet"),
        "score-adjusted": (),
        "elute": ("--validation", world / "judged.parquet", "--test", world / "letor.txt"),
    }
    return {name: train(world, world / name, "--learner", name, *options) for name, options in given.items()}


def test_the_command_line_knows_every_learner() -> None:
    assert ("elute", "score-adjusted", *learners.LEARNERS) == tuple(SETTINGS)
    assert set(WEIGHTED) <= set(SETTINGS)
    for name in SETTINGS:
        assert as_learner(name, LINEAR, 0.1).network is LINEAR


def test_weights_undo_what_the_policy_suggests(world: Path, trained: dict[str, Any]) -> None:
    """The misleading feature decides ranks and nothing else: clicks go with it, weighted clicks do not."""
    pull = {}
    for name in trained:
        with np.load(world / name / "ranker.npz") as saved:
            weight = saved["weight_0"][:, 0]
        pull[name] = weight[MISLEADING] / weight[RELEVANT]
    assert pull["naive"] > 0.4
    for name in ("ipw", "ipw-random", "elute", "score-adjusted"):
        assert abs(pull[name]) < 0.5 * pull["naive"], pull
    reached = {name: quality(scores(world, world / name)) for name in trained}
    chance = quality(np.zeros(QUERIES * DOCUMENTS))
    assert chance + 0.05 < reached["naive"] < min(reached["ipw"], reached["ipw-random"], reached["elute"]), reached


def test_propensities_come_with_their_errors_and_cover_the_truth(trained: dict[str, Any]) -> None:
    """Seven log ratios within 4 standard errors, and not all within half of one."""
    rows = trained["elute"]["propensities"]
    assert [row["position"] for row in rows] == list(range(1, DOCUMENTS + 1))
    assert trained["elute"]["note"] is None
    off = np.array([np.log(row["propensity"] * row["position"]) / row["log_se"] for row in rows[1:]])
    assert 0.5 < np.abs(off).max() < 4
    assert [row["propensity"] for row in trained["ipw"]["propensities"]] == pytest.approx(
        [row["propensity"] for row in rows]
    )
    assert {row["propensity"] for row in trained["naive"]["propensities"]} == {1.0}


def test_the_summary_says_what_was_trained(trained: dict[str, Any]) -> None:
    fields = trained["elute"]
    assert {"learner", "steps", "loss", "ndcg", "propensities", "seconds", "provenance"} <= set(fields)
    assert (fields["learner"], fields["steps"], fields["pages"]) == ("elute", 300, 6_000)
    assert fields["features"] == [f"feature_{i}" for i in range(1, 5)]
    assert 0.5 < fields["ndcg"] <= 1
    assert trained["naive"]["ndcg"] is None
    assert trained["naive"]["metrics"] == {}
    assert fields["provenance"]["bias"] == ["position"]


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)


def test_metrics_are_those_of_the_ranker_that_was_kept(world: Path, trained: dict[str, Any]) -> None:
    found, grades = trained["elute"]["metrics"], documents()[1]
    offsets, ranked = np.arange(QUERIES + 1) * DOCUMENTS, scores(world, world / "elute")
    assert list(found) == ["validation", "test"]
    for values in found.values():
        for k in (1, 3, 5, 10):
            assert values[f"ndcg@{k}"] == pytest.approx(ndcg(grades, ranked, offsets, k).mean, abs=1e-6)
            assert values[f"err@{k}"] == pytest.approx(err(grades, ranked, offsets, k).mean, abs=1e-6)
    assert found["validation"]["ndcg@10"] == pytest.approx(trained["elute"]["ndcg"], abs=1e-4)


def test_resumed_training_is_uninterrupted_training(world: Path, tmp_path: Path) -> None:
    """Of the paper's network, with its dropout; and the network is what the paper says."""
    deep: dict[str, Any] = {"model": "mlp", "batch": 8}
    train(world, tmp_path / "once", "--learner", "dla", steps=4, **deep)
    train(world, tmp_path / "twice", "--learner", "dla", steps=2, **deep)
    train(world, tmp_path / "twice", "--learner", "dla", "--resume", steps=4, **deep)
    with np.load(tmp_path / "once" / "ranker.npz") as once, np.load(tmp_path / "twice" / "ranker.npz") as twice:
        assert once.files == twice.files
        for name in once.files:
            np.testing.assert_array_equal(once[name], twice[name])
        layers = [(once[f"weight_{i}"], once[f"bias_{i}"]) for i in range(4)]
    assert [weight.shape for weight, _ in layers] == [(4, 512), (512, 256), (256, 128), (128, 1)]
    x = scaled_documents()
    for weight, bias in layers[:-1]:
        x = elu(x @ weight + bias)
    wanted = (x @ layers[-1][0] + layers[-1][1])[:, 0]
    np.testing.assert_allclose(scores(world, tmp_path / "twice"), wanted, rtol=1e-3, atol=1e-4)


def test_a_checkpoint_that_is_not_of_this_training_is_refused(world: Path, tmp_path: Path) -> None:
    train(world, tmp_path / "run", "--learner", "dla", steps=2)
    options = ("--features", world / "features.parquet", "--model", "linear", "--batch", 128, "--steps", 4)
    call = ("train", world / "log.parquet", *options, "--out", tmp_path / "run", "--learner", "dla")
    assert "was made with seed 0, not 1; use" in elute(*call, "--resume", "--seed", 1).err
    (tmp_path / "run" / "train.json").unlink()
    broken_off = elute(*call)
    assert (broken_off.code, "add --resume to continue" in broken_off.err) == (1, True)
    saved = tmp_path / "run" / "checkpoint.npz"
    with np.load(saved) as held:
        longer = {name: np.zeros(DOCUMENTS + 2) if "dual" in name else held[name] for name in held.files}
    write_npz(saved, longer)
    shape = elute(*call, "--resume")
    refused(shape, ", where this learner has (8,); use its settings, or delete it")
    assert re.search(r"has \(10,\) for .*dual", shape.err)
    write_npz(saved, {"['params']": np.zeros(3)})
    other = elute(*call, "--resume")
    refused(other, "is a checkpoint of another learner")


def scaled_documents() -> np.ndarray:
    x = documents()[0]
    logs = np.sign(x) * np.log(1 + np.abs(x))
    return (logs - logs.mean(axis=0)) / logs.std(axis=0)


def test_a_network_scores_without_jax(world: Path, tmp_path: Path) -> None:
    """And from a LETOR file as from Parquet; against a few plain lines on the raw features."""
    fields = train(world, tmp_path, "--learner", "vectorization", steps=10)
    assert fields["propensities"][0] == {"position": 1, "propensity": 1.0}
    code = (
        "import sys\nfor name in ('jax', 'optax', 'lightgbm'): sys.modules[name] = None\n"
        f"sys.argv = ['elute', 'rank', {str(tmp_path)!r}, '--features', {str(world / 'letor.txt')!r}, "
        f"'--out', {str(tmp_path / 'plain.parquet')!r}]\nfrom elute.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = pq.read_table(tmp_path / "plain.parquet")["score"].to_numpy()
    with np.load(tmp_path / "ranker.npz") as saved:
        vectors = scaled_documents() @ saved["weight_0"] + saved["bias_0"]
        wanted = np.log(1 + np.exp(vectors)) @ saved["base"]
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    assert np.ptp(found) > 0.01


def test_trees_of_weighted_clicks_rank_better_than_trees_of_clicks(world: Path, tmp_path: Path) -> None:
    reached = {}
    for name in ("naive", "elute"):
        fields = train(world, tmp_path / name, "--learner", name, steps=30, model="lightgbm")
        assert (fields["trees"], fields["history"][0]["loss"] > fields["loss"]) == (30, True)
        reached[name] = quality(scores(world, tmp_path / name))
    assert quality(np.zeros(QUERIES * DOCUMENTS)) + 0.05 < reached["naive"] < reached["elute"]
    held = train(
        world, tmp_path / "held", "--validation", world / "letor.txt", "--patience", 3, steps=200, model="lightgbm"
    )
    best = max(held["history"], key=lambda row: row["ndcg"])
    assert (held["trees"], held["ndcg"]) == (best["step"], best["ndcg"])
    assert held["steps"] == held["trees"] + 3 < 200


def test_a_log_that_is_not_recoverable_is_merged_and_the_page_says_so(world: Path, tmp_path: Path) -> None:
    data = ("--data", world / "letor.txt", "--policy", "scores", "--scores", world / "policy.parquet")
    log = tmp_path / "fixed.parquet"
    assert elute("simulate", *data, "--sessions", 2_000, "--width", 3, "--out", log).code == 0
    options = ("--features", world / "letor.txt", "--model", "lightgbm", "--steps", 5, "--out", tmp_path / "out")
    done = elute("train", log, *options)
    assert done.code == 0
    assert "the log is not recoverable (3 components)" in " ".join(done.out.split())
    merged = json.loads((tmp_path / "out" / "train.json").read_text())
    assert [row["propensity"] for row in merged["propensities"]] == [1.0, 1.0, 1.0]


def _without(folder: Path, name: str, *columns: str) -> Path:
    pq.write_table(pq.read_table(folder / name).drop_columns(list(columns)), folder / "without.parquet")
    return folder / "without.parquet"


def _changed(folder: Path, how: str) -> Path:
    table = pq.read_table(folder / "features.parquet")
    if how == "nan":
        column = pc.if_else(pc.equal(table["doc_id"], "d3"), float("nan"), table["feature_2"])
        table = table.set_column(table.column_names.index("feature_2"), "feature_2", column)
    elif how == "fewer":
        table = table.slice(1)
    elif how == "twice":
        table = pa.concat_tables([table, table.slice(0, 1)])
    else:
        table = table.append_column("title", pa.array(["t"] * table.num_rows))
    pq.write_table(table, folder / f"{how}.parquet")
    return folder / f"{how}.parquet"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("nan", "1 documents have features that are empty, NaN or infinite ('feature_2' in 1); fill them in"),
        ("fewer", "impressions show documents without features in"),
        ("twice", "has 1 documents more than once (query_id q0, doc_id d0); keep one row each"),
        ("text", "title are not numbers; leave these columns out"),
    ],
)
def test_features_that_cannot_be_used(world: Path, tmp_path: Path, how: str, message: str) -> None:
    done = elute("train", world / "log.parquet", "--features", _changed(world, how), "--out", tmp_path / "out")
    refused(done, message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--learner", "ipw"), "learner 'ipw' needs --propensities"),
        (("--learner", "ipw-random"), "learner 'ipw-random' needs --randomised"),
        (("--learner", "dla", "--model", "lightgbm"), "--model lightgbm goes with naive, ipw, ipw-random, elute"),
        (("--learner", "dla", "--score", "score"), "learner 'dla' does not use --score; score-adjusted and upe do"),
        (("--learner", "upe", "--score", "rank"), "use its variants upe-mrr or upe-dcg, which learn from positions"),
        (("--patience", "3"), "--patience counts validations; add --validation"),
        (("--model", "lightgbm", "--resume"), "trees have no checkpoint"),
        (("--model", "lightgbm", "--on-disk"), "trees keep their features in memory"),
        (("--learner", "dla", "--items", "features"), "learner 'dla' does not use --items; elute does"),
        (("--session", "page"), "no column 'page'"),
        (("--impressions", "position"), "has counts in its rows"),
    ],
)
def test_options_that_do_not_go_together(world: Path, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    given = ("--features", world / "features.parquet", "--out", tmp_path / "out")
    done = elute("train", world / "log.parquet", *given, *options)
    refused(done, message)
    assert not (tmp_path / "out").exists()


def test_propensities_for_fewer_positions_than_the_lists_have(world: Path, tmp_path: Path) -> None:
    known = pa.table({"position": [1, 2, 3, 4], "propensity": [1, 0.5, 0.4, 0.3]})
    pq.write_table(known, tmp_path / "short.parquet")
    given = ("--features", world / "features.parquet", "--learner", "ipw", "--propensities", tmp_path / "short.parquet")
    done = elute("train", world / "log.parquet", *given, "--out", tmp_path / "out")
    assert done.code == 1
    assert "has no propensity for 4 factors: position 5; position 6" in done.err


def test_a_log_without_scores_or_sessions(world: Path, tmp_path: Path) -> None:
    given = ("--features", world / "features.parquet", "--out", tmp_path / "out")
    scoreless = _without(world, "log.parquet", "score")
    done = elute("train", scoreless, *given, "--learner", "upe")
    assert "has no column 'score'; upe needs the scores that pages were ranked by (--score)" in done.err
    pageless = elute("train", _without(world, "log.parquet", "session_id"), *given)
    assert "has no column 'session_id'; name the column with the ids of result pages with --session" in pageless.err


def test_ranking_needs_a_ranker_and_its_features(world: Path, trained: dict[str, Any], tmp_path: Path) -> None:
    out = ("--out", tmp_path / "scores.parquet")
    empty = elute("rank", tmp_path, "--features", world / "features.parquet", *out)
    assert (empty.code, "has no train.json" in empty.err) == (1, True)
    fewer = elute("rank", world / "naive", "--features", _without(world, "features.parquet", "feature_2"), *out)
    assert (fewer.code, "lacks the features feature_2" in fewer.err) == (1, True)
