"""Training from disk: the same ranker as in memory, and nothing left behind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from train_worlds import compiled_with_little_optimisation as compiled_with_little_optimisation
from train_worlds import elute, refused, write_world

from conftest import Outcome


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With pages of different lengths, and features in two files of several row groups."""
    folder = tmp_path_factory.mktemp("large")
    write_world(folder, sessions=400)
    log = pq.read_table(folder / "log.parquet")
    number = log["session_id"].to_numpy() % 5
    pq.write_table(log.filter(pa.array(log["position"].to_numpy() <= 8 - number)), folder / "log.parquet")
    features = pq.read_table(folder / "features.parquet")
    pq.write_table(features.slice(0, 100), folder / "features_1.parquet", row_group_size=30)
    pq.write_table(features.slice(100), folder / "features_2.parquet", row_group_size=50)
    return folder


def trained(world: Path, out: Path, *options: object) -> Outcome:
    features = ("--features", world / "features_1.parquet", "--features", world / "features_2.parquet")
    how = ("--model", "linear", "--steps", 20, "--batch", 32, "--out", out)
    return elute("train", world / "log.parquet", *features, *how, *options)


def test_from_disk_the_same_ranker_is_learnt(world: Path, tmp_path: Path) -> None:
    """To rounding: steps are compiled one by one there, and many together here."""
    arrays, fields = {}, {}
    for name, options in (("memory", ()), ("disk", ("--on-disk",))):
        done = trained(world, tmp_path / name, *options)
        assert done.code == 0, done.err
        with np.load(tmp_path / name / "ranker.npz") as saved:
            arrays[name] = {key: saved[key] for key in saved.files}
        fields[name] = json.loads((tmp_path / name / "train.json").read_text())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "memory"]
    assert (fields["memory"]["on_disk"], fields["disk"]["on_disk"]) == (False, True)
    assert fields["disk"]["loss"] == pytest.approx(fields["memory"]["loss"], rel=1e-5)
    assert np.abs(arrays["memory"]["weight_0"]).max() > 0.05
    for key in ("weight_0", "mean", "sd"):
        np.testing.assert_allclose(arrays["disk"][key], arrays["memory"][key], rtol=1e-4, atol=1e-5)


def test_what_is_large_beside_the_memory_stays_on_disk(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """320 documents of 4 features and 2,400 impressions: 4 · 1,280 + 20 · 2,400 bytes."""
    large = 4 * 1_280 + 20 * pq.read_metadata(world / "log.parquet").num_rows
    for room, on_disk in ((4 * large, False), (4 * large - 4, True)):
        monkeypatch.setattr("elute._util.storage.available_memory", lambda room=room: room)
        done = trained(world, tmp_path / "out", "--json")
        assert done.json["on_disk"] is on_disk


def test_documents_are_ranked_from_disk_as_in_memory(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trained(world, tmp_path / "out").code == 0
    found = []
    for room in (1 << 40, 1):
        monkeypatch.setattr("elute._util.storage.available_memory", lambda room=room: room)
        call = ("--features", world / "features.parquet", "--out", tmp_path / "scores.parquet")
        assert elute("rank", tmp_path / "out", *call).code == 0
        found.append(pq.read_table(tmp_path / "scores.parquet"))
    assert found[0].equals(found[1])
    assert found[0].num_rows == 320
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "scores.parquet"]


def test_training_from_disk_goes_on_from_its_checkpoint(world: Path, tmp_path: Path) -> None:
    for steps, options in ((10, ()), (20, ("--resume",))):
        assert trained(world, tmp_path / "twice", "--on-disk", "--steps", steps, *options).code == 0
    assert trained(world, tmp_path / "once", "--on-disk").code == 0
    with np.load(tmp_path / "once" / "ranker.npz") as once, np.load(tmp_path / "twice" / "ranker.npz") as twice:
        for name in once.files:
            np.testing.assert_array_equal(once[name], twice[name])


def test_what_fails_leaves_nothing(world: Path, tmp_path: Path) -> None:
    features = pq.read_table(world / "features_1.parquet")
    features = features.set_column(
        2, "feature_1", pa.array([None, float("inf"), *features["feature_1"].to_pylist()[2:]])
    )
    pq.write_table(features, world / "gaps.parquet")
    call = ("train", world / "log.parquet", "--on-disk", "--out", tmp_path / "out")
    gaps = elute(*call, "--features", world / "gaps.parquet")
    refused(gaps, "2 documents have features that are empty, NaN or infinite ('feature_1' in 2)")
    fewer = elute(*call, "--features", world / "features_1.parquet")
    refused(fewer, "impressions show documents without features")
    twice = elute(*call, *["--features", world / "features_1.parquet"] * 2)
    refused(twice, "has 100 documents more than once (query_id q0, doc_id d0)")
    letor = elute(*call, "--features", world / "letor.txt")
    refused(letor, "letor.txt is not Parquet, the only format that can be read piece by piece; leave --on-disk out")
    assert list(tmp_path.iterdir()) == []
