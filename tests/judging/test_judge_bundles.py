"""Bundles of clicks: read and trained on by LightGBM and XGBoost themselves, against plain loops over the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import xgboost
from hypothesis import given
from hypothesis import strategies as st
from judge_worlds import Row, World, misleading, write_fit
from numpy.typing import ArrayLike

from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.judging.export import Wanted, export
from elute.judging.groups import find_gapless, group_by_click, group_by_page, select_usable
from elute.training.pages import TrainingPages

QUIET = {"verbose": -1, "num_threads": 1}
FINE = {"min_data_in_leaf": 1, "min_data_in_bin": 1}


def bundled(
    folder: Path, form: str, world: World, log: pa.Table | None = None, features: pa.Table | None = None
) -> dict[str, Any]:
    """Write the world and its bundle, with the true propensities as the fit."""
    propensities = [(k, 0, o) for k, o in enumerate(world.propensity.tolist(), 1)]
    fit = write_fit(folder / "fit", [Row(0, 0)], propensities=propensities)
    pq.write_table(world.log if log is None else log, folder / "log.parquet")
    pq.write_table(world.features if features is None else features, folder / "f.parquet")
    wanted = Wanted(log=(str(folder / "log.parquet"),), features=(str(folder / "f.parquet"),))
    return export(Fit.load(fit), form, folder / "out", wanted)[0]


@pytest.fixture(scope="module")
def world() -> World:
    return misleading(3000, seed=5)


Group = tuple[tuple[tuple[int, float, float], ...], float]
"""Rows of label and features, and the weight."""


def expected(world: World) -> tuple[list[Group], list[Group]]:
    """Groups by click and by page, sorted, from the log's rows one at a time."""
    x = {(f["query_id"], f["doc_id"]): (f["signal"], f["policy"]) for f in world.features.to_pylist()}
    clicks, pages = [], []
    for _, page in groupby(world.log.to_pylist(), key=lambda row: row["session_id"]):
        rows = sorted(page, key=lambda row: row["position"])
        shown = [x[row["query_id"], row["doc_id"]] for row in rows]
        for clicked in (k for k, row in enumerate(rows) if row["click"]):
            one = tuple((int(k == clicked), *features) for k, features in enumerate(shown))
            clicks.append((one, round(float(clicked + 1), 4)))
        if any(row["click"] for row in rows):
            pages.append((tuple((row["click"], *f) for row, f in zip(rows, shown, strict=True)), 1.0))
    return sorted(clicks), sorted(pages)


def cut(label: Any, values: Any, sizes: Any, weight: Any) -> list[Group]:
    """Groups, sorted, from arrays; weights by group."""
    rows = [(int(y), float(a), float(b)) for y, (a, b) in zip(label, values, strict=True)]
    ends = np.cumsum(sizes)
    parts = [tuple(rows[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
    return sorted((part, round(float(w), 4)) for part, w in zip(parts, weight, strict=True))


def test_lightgbm_reads_what_the_log_says(tmp_path: Path, world: World) -> None:
    fields = bundled(tmp_path, "lightgbm", world)
    clicks, pages = expected(world)
    assert fields["weighted"]["groups"] == fields["clicks"] == len(clicks) and fields["pages"] == len(pages)
    assert fields["left_out"] == {"pages_without_click": 3000 - len(pages)}
    assert fields["weighted"]["largest_weight"] == pytest.approx(6)
    for name, groups in (("weighted", clicks), ("positions", pages)):
        path = tmp_path / "out" / f"{name}.tsv"
        data = lightgbm.Dataset(str(path), params=QUIET | FINE).construct()
        values = np.loadtxt(path, delimiter="\t")[:, 1:]
        weight, position = data.get_weight(), data.get_position()
        assert data.num_feature() == 2
        assert (weight is None, position is None) == ((False, True) if name == "weighted" else (True, False))
        sizes = np.asarray(data.get_group())
        if weight is not None:
            first = np.asarray(weight)[np.cumsum(sizes) - sizes]
            assert (np.asarray(weight) == np.repeat(first, sizes)).all()
            assert cut(data.get_label(), values, sizes, first) == groups
        else:
            assert cut(data.get_label(), values, sizes, np.ones(len(sizes))) == groups
            assert (np.asarray(position) == np.tile(np.arange(6), len(sizes))).all()


def dmatrix(table: pa.Table, weight: Any = None) -> xgboost.DMatrix:
    return xgboost.DMatrix(
        table.drop_columns(["label", "qid"]), label=table["label"], qid=table["qid"], weight=weight, nthread=1
    )


def test_xgboost_reads_what_the_log_says(tmp_path: Path, world: World) -> None:
    fields = bundled(tmp_path, "xgboost", world)
    assert fields["files"] == ["weighted.parquet", "weighted.groups.parquet", "positions.parquet", "bundle.json"]
    clicks, pages = expected(world)
    weight = pq.read_table(tmp_path / "out" / "weighted.groups.parquet")["weight"]
    for name, groups, given_weight in (("weighted", clicks, weight), ("positions", pages, None)):
        data = dmatrix(pq.read_table(tmp_path / "out" / f"{name}.parquet"), given_weight)
        assert data.feature_names == ["signal", "policy"]
        sizes = np.diff(data.get_uint_info("group_ptr"))
        weights = np.ones(len(sizes)) if given_weight is None else data.get_weight()
        assert cut(data.get_label(), data.get_data().toarray(), sizes, weights) == groups


GRID = np.array([[signal, policy] for signal in range(5) for policy in range(5)], np.float64)


def misled(scores: ArrayLike) -> float:
    """How much the score follows what pages were ranked by, against how much it follows relevance."""
    square = np.asarray(scores).reshape(5, 5)
    return float(np.polyfit(range(5), square.mean(axis=0), 1)[0] / np.polyfit(range(5), square.mean(axis=1), 1)[0])


def test_the_weighted_rows_debias_a_ranker_and_weights_by_row_do_not(tmp_path: Path) -> None:
    world = misleading(8000, seed=1)
    bundled(tmp_path, "lightgbm", world)
    how = QUIET | FINE | {"objective": "lambdarank", "lambdarank_norm": False, "num_leaves": 15, "seed": 0}

    def ranker(data: lightgbm.Dataset) -> float:
        return misled(lightgbm.train(how, data, 30).predict(GRID))

    weighted = ranker(lightgbm.Dataset(str(tmp_path / "out" / "weighted.tsv")))
    rows = np.loadtxt(tmp_path / "out" / "positions.tsv")
    group, position = (
        np.loadtxt(tmp_path / "out" / f"positions.tsv.{name}", dtype=int) for name in ("query", "position")
    )
    naive, by_row = (
        ranker(lightgbm.Dataset(rows[:, 1:], rows[:, 0], group=group, weight=weight)) for weight in (None, position)
    )
    assert abs(weighted) < 0.1
    assert naive > 0.4 and by_row > 0.3

    bundled(tmp_path, "xgboost", world)
    tables = {name: pq.read_table(tmp_path / "out" / f"{name}.parquet") for name in ("weighted", "positions")}
    weight = pq.read_table(tmp_path / "out" / "weighted.groups.parquet")["weight"]
    plain = {"lambdarank_normalization": False, "lambdarank_score_normalization": False}
    settings = {"objective": "rank:ndcg", "nthread": 1, **plain}
    grid = xgboost.DMatrix(GRID, feature_names=["signal", "policy"])
    found = {
        name: misled(xgboost.train(settings, dmatrix(table, weight if name == "weighted" else None), 20).predict(grid))
        for name, table in tables.items()
    }
    assert abs(found["weighted"]) < 0.1 < 0.4 < found["positions"]


def test_both_libraries_learn_positions_by_themselves(tmp_path: Path, world: World) -> None:
    """LightGBM takes the positions up and uses them; XGBoost finds ratios for its places."""
    bundled(tmp_path, "lightgbm", world)
    path = tmp_path / "out" / "positions.tsv"
    how = QUIET | FINE | {"objective": "lambdarank", "num_leaves": 15}
    own = lightgbm.train(how, lightgbm.Dataset(str(path)), 20).predict(GRID)
    path.with_name("positions.tsv.position").unlink()
    assert abs(misled(own)) < 0.5 * misled(lightgbm.train(how, lightgbm.Dataset(str(path)), 20).predict(GRID))
    bundled(tmp_path, "xgboost", world)
    table = pq.read_table(tmp_path / "out" / "positions.parquet")
    settings = {"objective": "rank:ndcg", "lambdarank_unbiased": True, "lambdarank_pair_method": "topk", "nthread": 1}
    state = json.loads(xgboost.train(settings, dmatrix(table), 20).save_config())
    ratios = np.array(state["learner"]["objective"]["ti+"], float)
    assert ratios[0] == 1 and (np.diff(ratios[:6]) < 0).all()


pages = st.integers(1, 4).flatmap(
    lambda places: st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 2)), min_size=1, max_size=places),
        min_size=1,
        max_size=6,
    )
)


def arrays(drawn: list[list[tuple[int, bool, int]]]) -> TrainingPages:
    width = max(map(len, drawn))
    padded = np.array([page + [(-1, False, 0)] * (width - len(page)) for page in drawn])
    return TrainingPages(
        padded[..., 0].astype(np.int32), padded[..., 1].astype(np.float32), padded[..., 2].astype(np.int32), None
    )


@given(pages, st.integers(1, 5))
def test_groups_of_any_pages(drawn: list[list[tuple[int, bool, int]]], part: int) -> None:
    found = select_usable(arrays(drawn))
    weight = np.array([1.0, 2.5, 7.0])
    good = [page for page in drawn if any(click for _, click, _ in page) and len(page) > 1]
    assert found.without_click == sum(not any(click for _, click, _ in page) for page in drawn)
    assert found.of_one + found.without_click + len(good) == len(drawn)

    def listed(parts: Any) -> list[tuple[list[int], list[int], list[int], float]]:
        out = []
        for groups in parts:
            ends = np.cumsum(groups.size)
            for end, size, w in zip(ends, groups.size, groups.weight, strict=True):
                rows = slice(end - size, end)
                out.append((*(a[rows].tolist() for a in groups[:3]), float(w)))
        return out

    docs: Callable[[list[tuple[int, bool, int]]], list[int]] = lambda page: [d for d, _, _ in page]  # noqa: E731
    assert listed(group_by_page(found.pages, part)) == [
        (docs(page), [int(click) for _, click, _ in page], [t for _, _, t in page], 1.0) for page in good
    ]
    assert listed(group_by_click(found.pages, weight, part)) == [
        (docs(page), [int(i == k) for i in range(len(page))], [t for _, _, t in page], weight[page[k][2]])
        for page in good
        for k in range(len(page))
        if page[k][1]
    ]


def test_pages_with_gaps_are_no_positions_for_xgboost(tmp_path: Path, world: World) -> None:
    log = world.log.filter(pc.invert(pc.and_(
        pc.less(world.log["session_id"], 100), pc.equal(world.log["position"], 2)
    )))  # fmt: skip
    fields = bundled(tmp_path, "xgboost", world, log)
    gaps = fields["left_out"]["pages_with_gaps"]
    assert 20 < gaps <= 100 and fields["positions"]["groups"] == fields["pages"] - gaps
    assert set(np.diff(dmatrix(pq.read_table(tmp_path / "out/positions.parquet")).get_uint_info("group_ptr"))) == {6}
    fields = bundled(tmp_path, "xgboost", world, world.log.filter(pc.field("position") != 2))
    assert fields["positions"] == {"groups": 0, "rows": 0} and "positions.parquet" not in fields["files"]
    assert not (tmp_path / "out" / "positions.parquet").exists()


@pytest.mark.parametrize("first", [0, 1])
def test_positions_may_count_from_zero(first: int) -> None:
    pages = arrays([[(0, True, 0), (1, False, 1)], [(0, True, 0), (1, False, 2)], [(0, True, 0)]])
    assert find_gapless(pages, np.array([0, 1, 2]) + first).tolist() == [True, False, True]


def test_more_bias_columns_than_the_position(tmp_path: Path, world: World) -> None:
    device = pa.array(np.where(np.arange(world.log.num_rows) // 6 % 2, "phone", "desk"))
    fit = write_fit(tmp_path / "fit", [Row(0, 0)])
    summary = json.loads((fit / "fit.json").read_text())
    summary["provenance"]["bias"] = ["position", "device"]
    (fit / "fit.json").write_text(json.dumps(summary))
    rows = [(k, d, o / k) for k in range(1, 7) for d, o in (("phone", 0.5), ("desk", 1.0))]
    table = dict(zip(("position", "device", "propensity"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table({**table, "component": [0] * 12, "log_se": [0.1] * 12}), fit / "propensities.parquet")
    pq.write_table(world.log.append_column("device", device), tmp_path / "log.parquet")
    pq.write_table(world.features, tmp_path / "f.parquet")
    wanted = Wanted(log=(str(tmp_path / "log.parquet"),), features=(str(tmp_path / "f.parquet"),))
    fields, _ = export(Fit.load(fit), "lightgbm", tmp_path / "out", wanted)
    assert fields["weighted"]["largest_weight"] == pytest.approx(12)
    codes = np.loadtxt(tmp_path / "out" / "positions.tsv.position", dtype=int)[:6]
    assert [fields["position_codes"][code]["position"] for code in codes] == [1, 2, 3, 4, 5, 6]
    assert len({fields["position_codes"][code]["device"] for code in codes}) == 1
    assert export(Fit.load(fit), "xgboost", tmp_path / "out", wanted)[0]["positions"]["groups"] == fields["pages"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "bundle.json", "positions.parquet", "weighted.groups.parquet", "weighted.parquet",
    ]  # fmt: skip


def test_what_no_bundle_can_be_made_of(tmp_path: Path, world: World) -> None:
    bundled(tmp_path, "lightgbm", world)
    wanted = Wanted(log=(str(tmp_path / "log.parquet"),), features=(str(tmp_path / "f.parquet"),))
    table = pq.read_table(tmp_path / "fit" / "propensities.parquet")

    def refused(words: str, form: str = "xgboost") -> None:
        with pytest.raises(EluteError, match=words):
            export(Fit.load(tmp_path / "fit"), form, tmp_path / "never", wanted)
        assert not (tmp_path / "never").exists()

    summary = json.loads((tmp_path / "fit" / "fit.json").read_text())
    unsealed = {name: value for name, value in summary.items() if name != "files"}
    (tmp_path / "fit" / "fit.json").write_text(json.dumps({**unsealed, "components": 2}))
    parts = table.set_column(1, "component", pa.array([0, 0, 0, 1, 1, 1]))
    pq.write_table(parts, tmp_path / "fit" / "propensities.parquet")
    refused(r"2 components, each at its own scale: weights cannot be compared.*`elute.merge`.*`plan=`")
    pq.write_table(table.append_column("offset", pa.array(np.zeros(6))), tmp_path / "fit" / "propensities.parquet")
    refused(
        "offsets, that is clicks that do not come from relevance, which no weight can undo; fit with pbm", "lightgbm"
    )
    (tmp_path / "fit" / "propensities.parquet").unlink()
    refused("propensities.parquet is missing")
    (tmp_path / "fit" / "model.npz").touch()  # as a session click model has it
    refused("has no propensities to weigh clicks by; fit with pbm")
    pq.write_table(table, tmp_path / "fit" / "propensities.parquet")
    pq.write_table(world.features.rename_columns(["query_id", "doc_id", "a[0]", "b"]), tmp_path / "f.parquet")
    refused(r"feature 'a\[0\]' cannot keep its name")
    pq.write_table(world.features, tmp_path / "f.parquet")
    pq.write_table(world.log.drop_columns(["session_id"]), tmp_path / "log.parquet")
    refused("has no column 'session_id'.*`session=`")
    pq.write_table(world.log.filter(pc.field("position") == 1), tmp_path / "log.parquet")
    refused("has no page with a click and a second document")
