"""Counts folders that are damaged, mixed or made up: each is refused in one line, and no kernel sees it."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from file_server import serving

import elute
from elute.cells.counts import Cells
from elute.door.fields import Damaged
from elute.engines.counts_folder.cells import Sums, add_sizes, require_sound
from elute.engines.fingerprint import compare, postgres
from elute.engines.remote.http_file import HttpFile
from elute.errors import EluteError
from elute.simulation import toy

WAYS: tuple[dict[str, Any], ...] = ({}, {"memory": 600_000_000})


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counted")
    for number in (1, 2):
        pq.write_table(toy.simulate(600, 20, broken=True, seed=number), folder / f"log{number}.parquet")
        elute.count(folder / f"log{number}.parquet", folder / f"counts{number}")
        elute.count(folder / f"log{number}.parquet", folder / f"pairs{number}", item="doc_id")
    return folder


@pytest.fixture
def counts(counted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(counted / "counts1", tmp_path / "counts"))


def unseal(folder: Path, **changes: object) -> None:
    """As an older version wrote it, or somebody who knows of seals."""
    about = json.loads((folder / "counts.json").read_text())
    about.pop("files")
    (folder / "counts.json").write_text(json.dumps({**about, **changes}))


def edit(folder: Path, name: str, column: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Another column of the same type where that is possible, in the same row groups."""
    table = pq.read_table(folder / f"{name}.parquet")
    values = pa.array(change(table[column].to_numpy().copy()))
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, column, values), folder / f"{name}.parquet")


def put(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(values: np.ndarray) -> np.ndarray:
        values[len(values) // 2] = value
        return values

    return change


CASES: tuple[tuple[str, str, Callable[[np.ndarray], np.ndarray], str], ...] = (
    ("cells", "factor", put(10**9), "a cell is of factor 1,000,000,000, but there are 10"),
    ("cells", "factor", put(-1), "a cell is of factor -1"),
    ("cells", "factor", lambda old: old[::-1].copy(), "not in the order of their factors"),
    ("cells", "factor", lambda old: old.astype(np.int64), "holds int64, not int32"),
    ("cells", "impressions", put(0), "clicks of 0 impressions"),
    ("cells", "clicks", put(10**9), "a cell has 1,000,000,000 clicks of"),
    ("cells", "impressions", put(10**9), "impressions, the factors"),
    ("cells", "impressions", lambda old: old.astype(np.float64), "holds double"),
    ("items", "elute_cells", put(-5), "an item has -5"),
    ("items", "elute_cells", put(10**9), "an item has 1,000,000,000"),
    ("items", "elute_cells", put(0), "its items have"),
    ("items", "elute_query", put(10**9), "has 1,000,000,000, not"),
    ("items", "elute_query", put(-1), "has -1, not 0 or more"),
    ("factors", "elute_impressions", put(-3), "has -3, not 0 or more"),
    ("factors", "elute_clicks", put(10**9), "more clicks than impressions"),
    ("factors", "position", put(1), "it has a factor twice"),
)


@pytest.mark.parametrize("way", WAYS, ids=["at once", "in parts"])
@pytest.mark.parametrize(("name", "column", "change", "said"), CASES)
def test_numbers_that_cannot_be(
    counts: Path, name: str, column: str, change: Callable[[np.ndarray], np.ndarray], said: str, way: dict[str, Any]
) -> None:
    edit(counts, name, column, change)
    with pytest.raises(EluteError, match=r"not the file that counts.json was written with|has [\d,]+ bytes, but"):
        elute.check(counts, **way)
    unseal(counts)
    with pytest.raises(EluteError, match=said):
        elute.check(counts, **way)


@pytest.mark.parametrize("way", WAYS, ids=["at once", "in parts"])
@pytest.mark.parametrize(
    ("column", "value"), [("query", 10**6), ("query", -1), ("item", 10**9), ("item", -1), ("impressions", 0)]
)
def test_pairs_that_cannot_be(counted: Path, tmp_path: Path, column: str, value: int, way: dict[str, Any]) -> None:
    folder = Path(shutil.copytree(counted / "pairs1", tmp_path / "pairs"))
    assert elute.check(folder, **way).to_dict() == elute.check(counted / "log1.parquet", item="doc_id").to_dict()
    edit(folder, "pairs", column, put(value))
    unseal(folder)
    with pytest.raises(EluteError, match=r"pairs.parquet is not as elute wrote it"):
        elute.check(folder, **way)


@pytest.mark.parametrize("mixed", ["factors", "items", "cells", "pairs"])
def test_a_folder_of_two_counts(counted: Path, tmp_path: Path, mixed: str) -> None:
    """What two writers to one place leave behind."""
    kind = "pairs" if mixed == "pairs" else "counts"
    folder = Path(shutil.copytree(counted / f"{kind}1", tmp_path / "mixed"))
    shutil.copy(counted / f"{kind}2" / f"{mixed}.parquet", folder)
    for way in WAYS:
        with pytest.raises(EluteError, match=r"another run|not the file"):
            elute.check(folder, **way)
    unseal(folder)
    for way in WAYS:
        with pytest.raises(EluteError, match=f"{mixed}.parquet|cells.parquet"):
            elute.check(folder, **way)


def test_a_folder_of_an_older_version_is_read(counted: Path, counts: Path) -> None:
    unseal(counts)
    assert elute.check(counts).to_dict() == elute.check(counted / "log1.parquet").to_dict()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"items": -1}, "'items' is -1"),
        ({"items": 3}, "but counts.json says 3"),
        ({"queries": None}, "contradicts itself"),
        ({"queries": 2**31}, "'queries' is"),
        ({"source": [{}]}, "names no file, table or url"),
        ({"source": [{"file": 3}]}, "names no file, table or url"),
        ({"source": [{"file": "a\0b"}]}, "names no file, table or url"),
        ({"roles": {}}, "'roles.item' is missing"),
        ({"collision_bound": float("nan")}, "'collision_bound' is nan"),
        ({"log": None}, "'log' is null, not text"),
        ({"filters": {"max_position": "x"}}, "give a whole number"),
        ({"format": 3}, "another version"),
    ],
)
def test_what_counts_json_must_say(counts: Path, changes: dict[str, object], said: str) -> None:
    unseal(counts, **changes)
    with pytest.raises(EluteError, match=said):
        elute.check(counts)


def test_sound_cells_against_plain_python() -> None:
    """On random cells, some of which cannot be."""
    chance = np.random.default_rng(3)
    refused = 0
    for _ in range(400):
        sizes = chance.integers(0, 4, chance.integers(1, 6))
        n, n_factors = int(sizes.sum()), int(chance.integers(1, 8))
        rows = [np.sort(chance.choice(8, size, replace=bool(chance.random() < 0.2))) for size in sizes]
        factor = np.concatenate(rows).astype(np.int32)
        impressions = chance.integers(0 if chance.random() < 0.1 else 1, 9, n).astype(np.uint32)
        clicks = np.minimum(chance.integers(0, 9, n), impressions + (chance.random() < 0.1)).astype(np.uint32)
        sound = (
            all((np.diff(row) > 0).all() for row in rows)
            and bool((factor < n_factors).all())
            and bool((impressions > 0).all())
            and bool((clicks <= impressions).all())
        )
        cells = Cells(add_sizes(sizes.astype(np.int64), n), factor, impressions, clicks)
        if sound:
            assert require_sound(cells, n_factors) == Sums(int(impressions.sum()), int(clicks.sum()))
        else:
            refused += 1
            with pytest.raises(Damaged):
                require_sound(cells, n_factors)
    assert 50 < refused < 390


def test_items_of_many_blocks() -> None:
    """Where an item begins its factors may fall, wherever blocks are cut; nowhere else."""
    n = 300_000
    offsets = add_sizes(np.full(n, 5, np.int64), 5 * n)
    factor = np.tile(np.arange(5, dtype=np.int32), n)
    ones = np.ones(5 * n, np.uint32)
    assert require_sound(Cells(offsets, factor, ones, ones), 5) == Sums(5 * n, 5 * n)
    factor[5 * 123_456 + 3] = 0
    with pytest.raises(Damaged, match="order"):
        require_sound(Cells(offsets, factor, ones, ones), 5)


def test_filters_still_find_the_same(counted: Path, counts: Path) -> None:
    kept = elute.check(counts, max_position=3).to_dict()
    log = pq.read_table(counted / "log1.parquet")
    some = elute.check(log.filter(pc.less_equal(log["position"], 3))).to_dict()
    assert {name: kept[name] for name in ("impressions", "clicks", "items", "cells")} == {
        name: some[name] for name in ("impressions", "clicks", "items", "cells")
    }


def test_a_strangers_slow_server_is_not_waited_for(counts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked, and never answers: the folder opens all the same."""
    monkeypatch.setattr(compare, "SECONDS", 1.5)
    with serving() as served:
        served.files["/log.parquet"] = b"x" * 1000
        served.stalls_before = 10**6
        source = [{"url": f"{served.url}/log.parquet", "bytes": 1, "tag": None, "modified": None}] * 2
        unseal(counts, source=source)
        began = time.monotonic()
        assert compare.find_changed_source(source) is None
        assert time.monotonic() - began < 4.5  # the client itself gives up after 5
        assert elute.check(counts).components == 2
        assert served.stalled.is_set()


def test_an_address_cannot_ask_for_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two values of a parameter, libpq takes the last."""
    seen: list[str] = []
    monkeypatch.setattr(postgres, "table_state", seen.append)
    assert postgres.current_table_state("postgres://u@h/db?connect_timeout=3000#s.t") is None
    assert seen == ["postgres://u@h/db?connect_timeout=3000&require_auth=!password,!md5&connect_timeout=5#s.t"]


def test_a_server_that_sends_more_than_was_asked_for() -> None:
    """The rest is not read."""
    with serving() as served:
        served.files["/log.parquet"] = bytes(10**6)
        file = HttpFile(f"{served.url}/log.parquet")
        with pytest.raises(OSError, match="more than it was asked for"):
            file._fetch("bytes=0-999", 10)
