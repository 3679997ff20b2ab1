"""Rankers as ONNX: onnxruntime gives the scores of `elute.rank`, and what cannot be exported is refused in a line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import elute
from conftest import call_elute
from elute.io.features import read_features
from elute.ranking.network import numpy_scores
from elute.training.onnx_file import write_onnx
from elute.training.tree_file import read_trees

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
lightgbm = pytest.importorskip("lightgbm")
pytest.importorskip("jax")

LETOR = Path(__file__).parents[2] / "docs" / "data" / "letor.txt"
EXTREMES = (0.0, -0.0, 1e-45, -1e-38, 1e-35, 1e-7, -1.0, 7.0, 1e9, -3.4e38, 3.4e38)


def run(path: Path, features: NDArray[np.float32]) -> NDArray[np.float32]:
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = runtime.InferenceSession(path)
    assert [one.name for one in session.get_inputs()] == ["features"]
    (scores,) = session.run(["scores"], {"features": features})
    return np.asarray(scores)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("log") / "log.parquet"
    elute.simulate(LETOR, out, sessions=400, seed=5)
    return out


@pytest.fixture(scope="module")
def ranker(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rankers") / "trees"
    elute.train(log, LETOR, folder, learner="naive", model="lightgbm", steps=20)
    return folder


@pytest.mark.parametrize(
    "asked",
    [
        {"learner": "naive", "model": "linear", "steps": 5},
        {"learner": "naive", "model": "mlp", "hidden": [7, 3], "dropout": 0.5, "steps": 5},
        {"learner": "dla", "model": "mlp", "hidden": 5, "steps": 5},
        {"learner": "vectorization", "model": "mlp", "hidden": [6, 4], "steps": 5},
        {"learner": "naive", "model": "lightgbm", "steps": 40, "rate": 0.3},
    ],
)
def test_what_train_makes_scores_as_rank_does(log: Path, tmp_path: Path, asked: dict[str, Any]) -> None:
    ranker = elute.train(log, LETOR, tmp_path / "ranker", **asked)
    made = elute.export(ranker, tmp_path / "ranker" / "ranker.onnx")
    features = read_features([str(LETOR)], ("query_id", "doc_id")).values
    expected = elute.rank(ranker, LETOR).table
    assert expected is not None
    np.testing.assert_allclose(run(Path(made.onnx), features), expected["score"].to_numpy(), rtol=1e-5, atol=1e-5)
    held = {entry.key: json.loads(entry.value) for entry in onnx.load(made.onnx).metadata_props}
    assert held["features"] == made.features == ranker.features
    assert held["key"] == ["query_id", "doc_id"]
    assert made.bytes == Path(made.onnx).stat().st_size


def test_features_without_most_of_their_numbers(ranker: Path, tmp_path: Path) -> None:
    """LETOR writes no zeros: what a line leaves out is 0, to the runtime as to `rank`."""
    sparse = tmp_path / "sparse.txt"
    sparse.write_text("0 qid:1 2:3.5 # docid = a\n1 qid:1 1:-2 # docid = b\n0 qid:1 4:0 # docid = c\n")
    elute.export(ranker, tmp_path / "ranker.onnx")
    expected = elute.rank(ranker, sparse).table
    assert expected is not None
    rows = np.array([[0, 3.5, 0, 0], [-2, 0, 0, 0], [0, 0, 0, 0]], np.float32)
    np.testing.assert_allclose(run(tmp_path / "ranker.onnx", rows), expected["score"].to_numpy(), atol=1e-5)


@pytest.mark.parametrize("hidden", [(), (3,), (9, 5, 4)])
@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_networks_of_any_shape(tmp_path: Path, hidden: tuple[int, ...], base: bool, scaled: bool) -> None:
    chance = np.random.default_rng(3)
    sizes = (len(EXTREMES), *hidden, 4 if base else 1)
    network: dict[str, NDArray[Any]] = {}
    for number, shape in enumerate(pairwise(sizes)):
        network[f"weight_{number}"] = chance.normal(size=shape).astype(np.float32)
        network[f"bias_{number}"] = chance.normal(size=shape[1]).astype(np.float32)
    if base:
        network["base"] = chance.normal(size=4).astype(np.float32)
    if scaled:
        network |= {"mean": chance.normal(size=sizes[0]), "sd": chance.uniform(0.1, 3.0, sizes[0])}
    write_onnx(tmp_path / "net.onnx", network, {"features": [f"f{n}" for n in range(sizes[0])]})
    features = chance.normal(size=(70, sizes[0])).astype(np.float32) * 10
    if scaled:
        features[0] = EXTREMES
    expected = numpy_scores(network, features)
    np.testing.assert_allclose(run(tmp_path / "net.onnx", features), expected, rtol=1e-5, atol=1e-5)


def grow(features: NDArray[np.float64], target: NDArray[np.float64], path: Path, trees: int = 30) -> None:
    told = {"objective": "custom", "num_leaves": 15, "min_data_in_leaf": 3, "verbosity": -1, "max_bin": 1000}
    model = lightgbm.Booster(told, lightgbm.Dataset(features))
    for _ in range(trees):
        model.update(fobj=lambda now, _: (now - target, np.ones(len(target))))
    model.save_model(path)


def test_every_number_falls_on_the_side_that_lightgbm_puts_it_on(tmp_path: Path) -> None:
    """Thresholds are float64, features float32: those beside a threshold are tried one by one."""
    chance = np.random.default_rng(4)
    features = chance.normal(size=(400, 3)) * 10.0 ** chance.integers(-6, 7, size=(400, 1))
    grow(features, features[:, 0] / (1 + np.abs(features[:, 1])), tmp_path / "ranker.txt")
    written = read_trees(tmp_path / "ranker.txt", 3)
    edges = [float(word) for line in written.split("\n") if line.startswith("threshold=") for word in line[10:].split()]
    near = np.unique(np.array(edges, np.float32))
    beside = np.concatenate([near, *(np.nextafter(near, np.float32(end)) for end in (np.inf, -np.inf)), EXTREMES])
    rows = np.stack([np.tile(beside, 3)] * 3, axis=1).astype(np.float32)
    for number in range(3):
        rows[:, number] = np.roll(rows[:, number], number * 7)
    write_onnx(tmp_path / "trees.onnx", written, {"features": ["a", "b", "c"]})
    expected = lightgbm.Booster(model_str=written).predict(rows)
    found = run(tmp_path / "trees.onnx", rows)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("gaps", [False, True])
def test_nan_goes_where_lightgbm_sends_it(tmp_path: Path, gaps: bool) -> None:
    """With gaps in what trees grew from, they have a side of their own; without, they count as 0."""
    chance = np.random.default_rng(5)
    features = chance.normal(size=(500, 3)) + 0.3
    target = features[:, 0] + features[:, 1] * features[:, 2]
    if gaps:
        features[chance.random(features.shape) < 0.1] = np.nan
    grow(features, target, tmp_path / "ranker.txt")
    written = read_trees(tmp_path / "ranker.txt", 3)
    kinds = {word for line in written.split("\n") if line.startswith("decision_type=") for word in line[14:].split()}
    assert kinds == ({"8", "10"} if gaps else {"2"})
    rows = chance.normal(size=(300, 3)).astype(np.float32)
    rows[chance.random(rows.shape) < 0.4] = np.nan
    write_onnx(tmp_path / "trees.onnx", written, {"features": ["a", "b", "c"]})
    expected = lightgbm.Booster(model_str=written).predict(rows)
    np.testing.assert_allclose(run(tmp_path / "trees.onnx", rows), expected, rtol=1e-5, atol=1e-5)


def test_a_tree_that_is_one_leaf(tmp_path: Path) -> None:
    grow(np.random.default_rng(6).normal(size=(60, 2)), np.arange(60.0), tmp_path / "ranker.txt", trees=2)
    text = (tmp_path / "ranker.txt").read_text()
    first = text.index("Tree=1\n")
    leaf = "Tree=1\nnum_leaves=1\nnum_cat=0\nleaf_value=0.25\nis_linear=0\nshrinkage=1\n\n\n"
    old = text[first : text.index("end of trees")]
    sizes = next(line for line in text.split("\n") if line.startswith("tree_sizes="))
    text = text.replace(old, leaf).replace(sizes, f"{sizes.split(' ')[0]} {len(leaf)}")
    (tmp_path / "ranker.txt").write_text(text)
    written = read_trees(tmp_path / "ranker.txt", 2)
    write_onnx(tmp_path / "trees.onnx", written, {"features": ["a", "b"]})
    rows = np.random.default_rng(7).normal(size=(40, 2)).astype(np.float32)
    expected = lightgbm.Booster(model_str=written).predict(rows)
    np.testing.assert_allclose(run(tmp_path / "trees.onnx", rows), expected, rtol=1e-5, atol=1e-5)


def test_the_python_of_the_page(ranker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (LETOR.parents[1] / "how-to" / "serve-a-ranker.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    elute.export(ranker, tmp_path / "ranker.onnx")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(block, "serve-a-ranker.md", "exec"), names)  # noqa: S102 (our own page)
    np.testing.assert_array_equal(names["scores"], run(tmp_path / "ranker.onnx", names["features"]))
    assert names["features"].tolist()[1] == [0.0, 1.0, 0.0, 0.0]


def test_it_says_what_it_wrote(ranker: Path, tmp_path: Path) -> None:
    out = tmp_path / "ranker.onnx"
    done = call_elute("export", ranker, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"naive (lightgbm), 4 features: written to {out} ({out.stat().st_size:,} bytes)\n"


def refuse(*words: object, says: str) -> None:
    done = call_elute("export", *words)
    assert (done.code, len(done.err.splitlines())) == (1, 1), done.err
    assert says in done.err


def test_what_is_no_ranker(ranker: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "ranker.onnx")
    refuse(tmp_path, *out, says="has no train.json; train a ranker into it with 'elute train'")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for name in ("train.json", "ranker.txt"):
        (damaged / name).write_bytes((ranker / name).read_bytes())
    (damaged / "ranker.txt").write_bytes((ranker / "ranker.txt").read_bytes()[:400])
    refuse(damaged, *out, says="ranker.txt")
    (damaged / "train.json").write_text('{"learner": "naive"}')
    refuse(damaged, *out, says="train.json")
    absent = call_elute("export", tmp_path / "nowhere", *out)
    assert (absent.code, absent.err.splitlines()[-1].startswith("Error: ")) == (2, True)
    assert not (tmp_path / "ranker.onnx").exists()


def test_trees_that_take_zeros_for_gaps(ranker: Path, tmp_path: Path) -> None:
    written = read_trees(ranker / "ranker.txt", 4).replace("decision_type=2", "decision_type=6")
    with pytest.raises(elute.EluteError, match=r"take zeros for gaps.*train again"):
        write_onnx(tmp_path / "trees.onnx", written, {"features": list("abcd")})


@pytest.mark.parametrize("name", ["train.json", "ranker.txt"])
def test_nothing_is_written_over_the_ranker(ranker: Path, name: str) -> None:
    before = (ranker / name).read_bytes()
    refuse(ranker, "--out", ranker / name, says="would be written over; write to another place")
    with pytest.raises(elute.EluteError, match="`out=`"):
        elute.export(ranker, ranker / name)
    assert (ranker / name).read_bytes() == before


def test_a_summary_alone_is_no_ranker(ranker: Path, tmp_path: Path) -> None:
    elute.Trained.load(ranker).save(tmp_path / "saved.json")
    with pytest.raises(elute.EluteError, match="only the summary of a ranker; load it from its folder"):
        elute.export(elute.Trained.load(tmp_path / "saved.json"), tmp_path / "ranker.onnx")


def test_the_package_that_is_missing(ranker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(elute.EluteError, match=r'`elute\.export` needs onnx; run: pip install "elute\[onnx\]"'):
        elute.export(ranker, tmp_path / "ranker.onnx")
    assert not (tmp_path / "ranker.onnx").exists()


def test_neither_jax_nor_lightgbm_is_needed(ranker: Path, tmp_path: Path) -> None:
    script = (
        "import sys\nfor name in ('jax', 'optax', 'lightgbm'): sys.modules[name] = None\n"
        f"import elute; elute.export({str(ranker)!r}, {str(tmp_path / 'ranker.onnx')!r})"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    rows = np.zeros((2, 4), np.float32)
    table = pa.table({"query_id": [1, 1], "doc_id": [1, 2], **{f"feature_{n + 1}": rows[:, n] for n in range(4)}})
    pq.write_table(table, tmp_path / "zeros.parquet")
    expected = elute.rank(ranker, tmp_path / "zeros.parquet").table
    assert expected is not None
    np.testing.assert_allclose(run(tmp_path / "ranker.onnx", rows), expected["score"].to_numpy(), atol=1e-5)
