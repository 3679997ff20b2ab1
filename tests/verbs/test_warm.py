"""`elute fit --warm`: from yesterday's folder to today's window, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from conftest import call_elute
from elute.errors import EluteError


def write_day(path: Path, seed: int, positions: int = 6, devices: int = 0, rows: int = 3_000) -> Path:
    """Most items are shown once; a part of them again and again, at a place or two."""
    rng = np.random.default_rng(seed)
    doc = np.where(rng.random(rows) < 0.5, rng.integers(10**9, size=rows), rng.integers(200, size=rows))
    position = np.clip(1 + doc % positions + rng.integers(-1, 2, size=rows), 1, positions)
    click = (rng.random(rows) < 0.4 / position).astype(np.int8)
    columns = {"query_id": doc // 9, "doc_id": doc, "position": position, "click": click}
    if devices:
        columns["device"] = rng.integers(devices, size=rows)
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of counts; the last of four days has two positions that there were not before."""
    place = tmp_path_factory.mktemp("days")
    for day in range(4):
        log = write_day(place / f"{day}.parquet", day, positions=8 if day == 3 else 6)
        elute.count(log, place / "counts", append=True, key=f"day={day}")
    elute.fit(place / "counts", last=2, drop="day > 1").save(place / "first")
    elute.fit(place / "counts", last=2, drop="day > 2").save(place / "yesterday")
    return place


def compare(warm: elute.Fit, exact: elute.Fit) -> None:
    assert warm.propensities is not None and exact.propensities is not None
    for one, other, name in (
        (warm.propensities, exact.propensities, "propensity"),
        (warm.relevance, exact.relevance, "relevance"),
    ):
        np.testing.assert_allclose(one[name].to_numpy(), other[name].to_numpy(), rtol=1e-6)


def test_the_next_day_from_the_last(days: Path) -> None:
    window: dict[str, Any] = {"last": 2, "drop": "day > 2"}
    warm = elute.fit(days / "counts", warm=days / "first", **window)
    cold = elute.fit(days / "counts", **window)
    compare(warm, elute.fit(days / "counts", tolerance=1e-10, **window))
    assert warm.summary["iterations"] <= cold.summary["iterations"]
    assert warm.summary["warm"] == {"factors": 6, "new": 0}
    assert "warm" not in cold.summary
    assert warm.provenance.options["warm"] == str(days / "first")


def test_positions_that_are_new_start_from_the_others(days: Path) -> None:
    warm = elute.fit(days / "counts", last=2, warm=elute.Fit.load(days / "yesterday"))
    compare(warm, elute.fit(days / "counts", last=2, tolerance=1e-10))
    assert warm.summary["warm"] == {"factors": 6, "new": 2}
    back = elute.fit(days / "counts", last=2, drop="day > 1", warm=warm)
    compare(back, elute.fit(days / "counts", last=2, drop="day > 1", tolerance=1e-10))
    assert back.summary["warm"] == {"factors": 6, "new": 0}


def test_the_command_line(days: Path, tmp_path: Path) -> None:
    words = ("fit", days / "counts", "--last", 2, "--warm", days / "yesterday")
    done = call_elute(*words, "--out", tmp_path / "today", "--json")
    assert done.code == 0, done.err
    assert done.json["warm"] == {"factors": 6, "new": 2}
    saved = json.loads((tmp_path / "today" / "fit.json").read_text())
    assert saved["warm"] == done.json["warm"] and saved["provenance"]["options"]["warm"] == str(days / "yesterday")
    assert elute.Fit.load(tmp_path / "today").summary["warm"] == done.json["warm"]
    over = call_elute(*words, "--out", days / "yesterday")
    assert over.code == 1 and "yesterday" in over.err
    compare(elute.Fit.load(tmp_path / "today"), elute.fit(days / "counts", last=2, tolerance=1e-10))


def test_with_little_memory_a_plan_a_bootstrap_and_a_part_held_out(days: Path, tmp_path: Path) -> None:
    log, warm = days / "2.parquet", days / "yesterday"
    spilled: dict[str, Any] = {"memory": 2**30, "spill": tmp_path}
    compare(elute.fit(log, warm=warm, **spilled), elute.fit(log, tolerance=1e-10, **spilled))
    one, other = (elute.fit(log, bootstrap=5, **given) for given in ({"warm": warm}, {"tolerance": 1e-10}))
    np.testing.assert_allclose(one.propensity_errors, other.propensity_errors, rtol=1e-3)
    held = elute.fit(log, holdout=0.2, by="query", warm=warm)
    assert held.summary["warm"]["factors"] == 6 and held.provenance.options["warm"] == str(warm)


def test_a_formula(tmp_path: Path) -> None:
    bias = "position + device"
    logs = [write_day(tmp_path / f"{day}.parquet", day, devices=2) for day in range(2)]
    elute.fit(logs[0], bias=bias).save(tmp_path / "before")
    compare(elute.fit(logs[1], bias=bias, warm=tmp_path / "before"), elute.fit(logs[1], bias=bias, tolerance=1e-10))
    with pytest.raises(EluteError, match="no formula"):
        elute.fit(logs[1], bias="position,device", warm=tmp_path / "before")
    with pytest.raises(EluteError, match="was fitted with `bias='position,device'`"):
        elute.fit(logs[1], warm=tmp_path / "before")
    with pytest.raises(EluteError, match="a smooth prior has no `warm=`"):
        elute.fit(logs[1], bias="smooth(position) + device", warm=tmp_path / "before")


def test_what_has_no_warm_start(days: Path, tmp_path: Path) -> None:
    log, warm = days / "2.parquet", days / "yesterday"
    for model in ("em", "dla", "naive", "ubm"):
        with pytest.raises(EluteError, match=f"model '{model}' has no `warm=`; pbm has"):
            elute.fit(log, model, warm=warm)
    with pytest.raises(EluteError, match="a smooth prior has no `warm=`"):
        elute.fit(log, prior="smooth", warm=warm)
    elute.fit(log, "naive").save(tmp_path / "naive")
    with pytest.raises(EluteError, match="is a fit of naive; give one of pbm"):
        elute.fit(log, warm=tmp_path / "naive")
    with pytest.raises(EluteError, match="is not a fit"):
        elute.fit(log, warm=tmp_path)
    other = pq.read_table(log)
    places = pa.array([f"p{place}" for place in other["position"].to_pylist()])
    with pytest.raises(EluteError, match="a propensity for none of this log's factors"):
        elute.fit(other.set_column(other.column_names.index("position"), "position", places), warm=warm)
