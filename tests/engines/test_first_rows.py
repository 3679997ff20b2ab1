"""Names of items under a memory limit: of rows in which they are first met, or told apart by DuckDB."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from elute.engines.partitioned import engine
from elute.errors import EluteError
from elute.kernels.keys import KeyTable


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Most items once, some often; ids that are text, numbers that are not, and missing ones."""
    rng = np.random.default_rng(0)
    n = 30_000
    doc = np.where(rng.random(n) < 0.7, np.arange(n), rng.integers(0, 40, n)) / 2
    doc[rng.random(n) < 0.01] = np.nan
    table = {
        "query_id": pa.array([f"query {one}" if one else None for one in rng.integers(0, 300, n)]),
        "doc_id": pa.array(doc),
        "position": pa.array(rng.integers(1, 6, n)),
        "click": pa.array((rng.random(n) < 0.3).astype(int)),
    }
    pq.write_table(pa.table(table), tmp_path / "log.parquet", row_group_size=4_000)
    return tmp_path / "log.parquet"


def read_items(log: Path, partitions: int, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    monkeypatch.setattr(engine.OutOfCoreEngine, "_number_of_partitions", lambda *_: partitions)
    with elute.read_log(log, memory=600 << 20) as opened:
        assert isinstance(opened.engine, engine.OutOfCoreEngine)
        counted = list(opened.engine.stream_chunks(opened.roles, opened.survey, lambda *_: None))
        items = pa.concat_tables([chunk.items() for chunk in counted])
        size = pa.array(np.concatenate([np.diff(chunk.cells.offsets) for chunk in counted]))
        shown = pa.array(np.concatenate([np.add.reduceat(c.cells.impressions, c.cells.offsets[:-1]) for c in counted]))
    order = [(name, "ascending") for name in items.column_names]
    return items.append_column("cells", size).append_column("impressions", shown).sort_by(order)


@pytest.mark.parametrize("partitions", [1, 7])
def test_both_ways_give_the_same(log: Path, partitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    met = read_items(log, partitions, monkeypatch)
    asked: list[bool] = []
    monkeypatch.setattr(engine, "BYTES_AN_ITEM", 1 << 40)
    monkeypatch.setattr(engine, "read_first_rows", lambda *_: asked.append(True))
    grouped = read_items(log, partitions, monkeypatch)
    assert not asked
    assert met.num_rows > 20_000
    for name in met.column_names:  # a value that is no number equals itself here
        np.testing.assert_array_equal(met[name].to_numpy(), grouped[name].to_numpy())


def test_two_items_with_one_key_are_noticed(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyTable, "find_new", lambda *_: None)
    with pytest.raises(EluteError, match="two items share a 64-bit hash"):
        read_items(log, 3, monkeypatch)
