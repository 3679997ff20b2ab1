"""Folders of counts in S3 and behind https: the same answers as on disk, and nothing fetched that is not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_server import Served, serving, with_keys

import elute
from conftest import call_elute
from elute.errors import EluteError


@pytest.fixture(params=["s3", "http"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Served, str]]:
    """A server, and the address of its folder `lake`."""
    monkeypatch.delenv("ELUTE_BEARER_TOKEN", raising=False)
    with serving(s3=request.param == "s3") as served:
        if request.param == "s3":
            with_keys(monkeypatch, served)
        yield served, "s3://lake" if request.param == "s3" else f"{served.url}/lake"


def write_day(path: Path, seed: int, rows: int = 1_500) -> Path:
    """Most items are shown once."""
    rng = np.random.default_rng(seed)
    doc = np.where(rng.random(rows) < 0.5, rng.integers(10**9, size=rows), rng.integers(100, size=rows))
    position = np.clip(1 + doc % 6 + rng.integers(-1, 2, size=rows), 1, 6)
    click = (rng.random(rows) < 0.4 / position).astype(np.int8)
    pq.write_table(pa.table({"query_id": doc // 9, "doc_id": doc, "position": position, "click": click}), path)
    return path


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("days")
    for day in range(4):
        elute.count(write_day(place / f"{day}.parquet", day), place / "parts", append=True, key=f"day={day}")
    elute.count(place / "0.parquet", place / "one")
    return place


def upload(served: Served, folder: Path, name: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and "/." not in str(path.relative_to(folder.parent)):
            served.files[f"/lake/{name}/{path.relative_to(folder)}"] = path.read_bytes()


def fields(result: Any) -> dict[str, Any]:
    return {name: value for name, value in result.to_dict().items() if name not in ("seconds", "folder")}


def test_counts_and_parts_are_as_on_disk(store: tuple[Served, str], days: Path, tmp_path: Path) -> None:
    served, lake = store
    upload(served, days / "one", "one")
    upload(served, days / "parts", "parts")
    assert fields(elute.check(f"{lake}/one")) == fields(elute.check(days / "one"))
    assert fields(elute.check(f"{lake}/parts/")) == fields(elute.check(days / "parts"))
    assert fields(elute.fit(f"{lake}/parts", last=2)) == fields(elute.fit(days / "parts", last=2))
    assert fields(elute.check(f"{lake}/parts", memory=2**30)) == fields(elute.check(days / "parts", memory=2**30))
    local, remote = (elute.watch(at, baseline=7) for at in (days / "parts", f"{lake}/parts"))
    assert {**fields(local), "alarms": None, "series": None} == {**fields(remote), "alarms": None, "series": None}
    done = call_elute("check", f"{lake}/parts", "--last", 1, "--json")
    assert done.json == call_elute("check", days / "parts", "--last", 1, "--json").json
    again = elute.count(f"{lake}/one", tmp_path / "copied", append=True, key="day=0")
    assert again.cells == elute.check(days / "one").to_dict()["cells"]


def test_of_a_window_only_its_parts_are_fetched(store: tuple[Served, str], days: Path) -> None:
    served, lake = store
    upload(served, days / "parts", "parts")
    served.seen.clear()
    elute.check(f"{lake}/parts", last=1)
    asked = {path.split("/parts/parts/")[1][:16] for _, path, _ in served.seen if "/parts/parts/" in path}
    assert len(asked) == 1


def test_what_is_not_there_or_damaged(store: tuple[Served, str], days: Path) -> None:
    served, lake = store
    with pytest.raises(EluteError):
        elute.check(f"{lake}/nothing")
    upload(served, days / "one", "one")
    served.files["/lake/one/cells.parquet"] = served.files["/lake/one/cells.parquet"][:-9]
    with pytest.raises(EluteError, match=f"{lake}/one/cells.parquet has .* cut short"):
        elute.check(f"{lake}/one")
    upload(served, days / "parts", "parts")
    with pytest.raises(EluteError, match="has no part that `last=` and `drop=` leave"):
        elute.check(f"{lake}/parts", drop="day >= 0")
    with pytest.raises(EluteError, match=r"which '.*/one' is not"):
        elute.check(f"{lake}/one", last=2)
    for path in [path for path in served.files if "/parts/parts/" in path and path.endswith("cells.parquet")]:
        del served.files[path]
    with pytest.raises(EluteError, match=r"cells\.parquet"):
        elute.check(f"{lake}/parts")
