"""Names of items that come along while rows are counted: those of a pass of their own, and those of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elute
from elute._util.threads import use_threads
from elute.engines.duckdb import engine, item_names, keyed_rows, ranges
from elute.engines.id_keys import HashedIds, IdHash
from elute.errors import EluteError
from elute.kernels.met import Keys, grow_met, make_met, meet

Rows = Counter[tuple[Any, ...]]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Many ranges, and many batches of each."""
    monkeypatch.setattr(ranges, "ROWS_A_RANGE", 100)
    monkeypatch.setattr(keyed_rows, "BATCH_ROWS", 2048)
    monkeypatch.setattr(item_names, "BATCH_ROWS", 2048)
    yield
    use_threads(None)


def make_log(rows: int = 20_000) -> pa.Table:
    """Most items once, some again and again; some ids are missing, and some documents are shown for many queries."""
    rng = np.random.default_rng(1)
    doc = np.where(rng.random(rows) < 0.7, np.arange(rows), rng.integers(0, 60, rows))
    return pa.table(
        {
            "query_id": pa.array([f"q{one}" if one else None for one in (doc % 300).tolist()]),
            "doc_id": doc,
            "at": pa.array(doc * 1_000_000, pa.timestamp("us")),
            "weight": np.where(doc % 2 == 0, 0.0, -0.0) + doc // 4,
            "text": pa.array([f"a document with a long name, number {one}" for one in doc.tolist()]),
            "position": rng.integers(1, 6, rows),
            "click": (rng.random(rows) < 0.3).astype(np.int64),
        }
    )


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("names") / "log.parquet"
    pq.write_table(make_log(), path, row_group_size=1_700)
    return path


def sum_rows(columns: tuple[str, ...], where: str | None) -> tuple[Rows, Rows]:
    """Impressions and clicks by item and position, from the rows themselves."""
    shown: Rows = Counter()
    clicked: Rows = Counter()
    for row in make_log().to_pylist():
        item = tuple(row[column] for column in columns)
        if None in item or row["query_id"] is None or (where and row["doc_id"] >= 9_000):
            continue
        shown[(*item, row["position"])] += 1
        clicked[(*item, row["position"])] += row["click"]
    return shown, clicked


def sum_counts(counts: elute.Counts, columns: tuple[str, ...]) -> tuple[Rows, Rows]:
    names = counts.items.to_pylist()
    shown: Rows = Counter()
    clicked: Rows = Counter()
    for item in range(counts.n_items):
        for cell in range(counts.offsets[item], counts.offsets[item + 1]):
            position = counts.factors["position"][int(counts.factor[cell])].as_py()
            key = (*(names[item][column] for column in columns), position)
            shown[key] += int(counts.impressions[cell])
            clicked[key] += int(counts.clicks[cell])
    return shown, clicked


ITEMS = [("query_id", "doc_id"), ("doc_id",), ("text",), ("at", "weight"), ("query_id", "text", "weight")]


@pytest.mark.parametrize("item", ITEMS, ids="-".join)
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_names_are_those_of_the_rows(log: Path, threads: int, item: tuple[str, ...]) -> None:
    where = "doc_id < 9000" if threads == 3 else None
    with elute.read_log(log, item=list(item), where=where, threads=threads) as opened:
        along = opened.counts(names=True)
        found = sum_counts(along, item)
        again = opened.engine.count(opened.roles, opened.survey, lambda *_: None)
        assert again.items.equals(along.items)
    assert found == sum_rows(item, where)


def test_the_log_is_read_once(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "read_names", lambda *_: pytest.fail("a pass for names"))
    elute.count(log, tmp_path / "counts")
    elute.fit(log, allow_unidentified=True).save(tmp_path / "fit")
    names = pq.read_table(tmp_path / "fit" / "relevance.parquet")
    assert names.num_rows == elute.read_log(tmp_path / "counts").counts().n_items > 10_000


def test_a_table_that_was_too_small_grows(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = elute.read_log(log).counts(names=True).items
    grown: list[int] = []

    def grow(met: Keys, expected: int) -> Keys:
        grown.append(expected)
        return grow_met(met, expected)

    monkeypatch.setattr(item_names, "ROWS_AN_ITEM", 1 << 40)
    monkeypatch.setattr(item_names, "grow_met", grow)
    with elute.read_log(log, threads=3) as opened:
        assert opened.counts(names=True).items.equals(wide)
    assert grown


def test_what_is_met_again_changes_nothing(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all that threads write to the table were lost."""
    wide = elute.read_log(log).counts(names=True).items
    monkeypatch.setattr(
        item_names, "meet", lambda met, keys, checks, rows: meet(make_met(len(keys)), keys, checks, rows)
    )
    with elute.read_log(log, threads=3) as opened:
        assert opened.counts(names=True).items.equals(wide)


@pytest.mark.parametrize("along", [True, False])
def test_two_items_with_one_key_are_noticed(log: Path, along: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = IdHash._hash

    def weaken(self: IdHash, *given: Any) -> HashedIds:
        found = whole(self, *given)
        return found._replace(keys=found.keys & np.uint64(0xFFFF))

    monkeypatch.setattr(IdHash, "_hash", weaken)
    with (
        elute.read_log(log, item=["text"]) as opened,
        pytest.raises(EluteError, match="two items share a 64-bit hash"),
    ):
        _ = opened.counts(names=along).items


keys = st.lists(st.integers(2, 30), max_size=200)  # nothing at all, which marks a free slot, is taken for 1
checks = st.lists(st.integers(0, 30), max_size=200)


@given(st.lists(st.tuples(keys, checks), max_size=4))
def test_rows_are_new_where_they_are_first(batches: list[tuple[list[int], list[int]]]) -> None:
    met, seen, used = make_met(0), set(), 0
    for keys, checks in batches:
        pairs = list(zip(keys, checks, strict=False))
        rows = np.empty(len(pairs), np.int64)
        columns = np.array(pairs, np.uint64).reshape(-1, 2)
        n, _ = meet(met, columns[:, 0].copy(), columns[:, 1].copy(), rows)
        new = [at for at, pair in enumerate(pairs) if pair not in seen and pair not in pairs[:at]]
        assert rows[:n].tolist() == new
        seen.update(pairs)
        used += n
        met = grow_met(met, used)
    assert used == len(seen) == np.count_nonzero(met)
