"""However many threads read a log, and however it is cut, the answer is the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import elute
from elute._util.threads import count_threads, count_usable_cores, map_threads, split_evenly, use_threads
from elute.engines.duckdb import engine, keyed_rows, ranges
from elute.errors import EluteError
from elute.kernels import rows

COUNTS = (1, 2, 3, 7)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ranges, batches and partitions small enough for many of each."""
    monkeypatch.setattr(ranges, "ROWS_A_RANGE", 100)
    monkeypatch.setattr(ranges, "_BLOCK", 130)
    monkeypatch.setattr(keyed_rows, "BATCH_ROWS", 2048)
    monkeypatch.setattr(rows, "ROWS_IN_ONE", 0)
    monkeypatch.setattr(rows, "ROWS_A_PARTITION", 300)
    monkeypatch.setattr(engine, "LOOKED_AT", 1_000)
    yield
    use_threads(None)


def _make_log(n: int = 9_000, nulls: bool = False) -> pa.Table:
    rng = np.random.default_rng(3)
    query = (rng.random(n) ** 3 * 300).astype(int)
    doc, position = rng.integers(0, 40, n), rng.integers(1, 6, n)
    position[query % 7 == 0] += 10
    query[: n // 3] = np.where(query[: n // 3] < 200, 3, query[: n // 3])
    docs: list[int | None] = doc.tolist()
    if nulls:
        docs[5::97] = [None] * len(docs[5::97])
    return pa.table(
        {
            "query_id": [f"q{one}" for one in query.tolist()],
            "doc_id": docs,
            "position": position,
            "device": np.where(query % 5 == 0, "phone", "desk"),
            "click": (rng.random(n) < 0.3 / position).astype(np.int64),
        }
    )


def _write(kind: str, table: pa.Table, folder: Path) -> Any:
    path = folder / f"log.{kind.partition(' ')[0]}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=777)
    elif kind == "parquet files":
        cuts = [0, 13, 2_500, 2_501, table.num_rows]
        files = [folder / f"part-{at}.parquet" for at in range(len(cuts) - 1)]
        for at, file in enumerate(files):
            pq.write_table(table.slice(cuts[at], cuts[at + 1] - cuts[at]), file, row_group_size=401)
        return files
    elif kind == "csv":
        pyarrow.csv.write_csv(table, path)
    elif kind == "duckdb table":
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE log AS SELECT * FROM given")
        return f"duckdb://{path}#log"
    elif kind == "duckdb view":
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE base AS SELECT * FROM given")
            connection.execute("CREATE VIEW log AS SELECT * FROM base")
        return f"duckdb://{path}#log"
    else:
        return table
    return path


@pytest.mark.parametrize("kind", ["parquet", "parquet files", "duckdb table", "duckdb view", "csv", "arrow"])
def test_sources(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted as one partition by one thread, too, as small logs are."""
    table = _make_log()
    source = _write(kind, table, tmp_path)
    use_threads(1)
    with monkeypatch.context() as patch:
        patch.setattr(rows, "ROWS_IN_ONE", table.num_rows + 2)
        found = [elute.check(source, bias="position,device").to_dict()]
    for threads in COUNTS:
        use_threads(threads)
        with elute.read_log(source, bias="position,device") as log:
            assert isinstance(log.engine, engine.DuckDBEngine)
            with log.engine._source.split() as cursors:
                assert len(cursors) == (1 if kind == "duckdb view" else threads)
            assert log.connect().tolist() == log.structure().root.tolist()
            found.append(elute.check(log).to_dict())
    assert all(one == found[0] for one in found)
    assert found[0]["impressions"] == table.num_rows
    assert found[0]["components"] > 1


@pytest.mark.parametrize(
    "options",
    [
        {"bias": "position"},
        {"bias": "device,position", "exact": True},
        {"item": "doc_id"},
        {"item": "doc_id", "query": "query_id", "bias": "device"},
        {"where": "click = 0 OR position > 2"},
        {"min_factor_impressions": 300, "bias": "position,device"},
        {"impressions": "position", "bias": "device", "click": "click"},
    ],
    ids=str,
)
def test_options(options: dict[str, Any], tmp_path: Path) -> None:
    source = _write("parquet", _make_log(nulls=True), tmp_path)
    found = []
    for threads in COUNTS:
        use_threads(threads)
        with elute.read_log(source, **options) as log:
            fields = elute.check(log).to_dict()
            counts = log.counts()
            cells = counts.items.append_column("n", pa.array(counts.item_impressions))
            found.append((fields, sorted(map(str, cells.to_pylist()))))
    assert all(one == found[0] for one in found)


def test_a_condition_in_the_words_of_the_relation(tmp_path: Path) -> None:
    """What stands for the log in a query stands in this condition as well; only the log is read in ranges."""
    table = _make_log(3_000)
    source = _write("csv", table.append_column("file", pa.array(["scratch.log", "other.log"] * 1_500)), tmp_path)
    found = []
    for threads in COUNTS:
        use_threads(threads)
        found.append(elute.check(source, where="file = 'scratch.log'").to_dict())
    assert all(fields == found[0] for fields in found)
    assert found[0]["impressions"] == 1_500


def test_files_that_differ_are_read_by_one_thread(tmp_path: Path) -> None:
    """A column that one file lacks, and one that is text elsewhere: DuckDB puts them together, as without threads."""
    table = _make_log(3_000)
    one, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(table.slice(0, 1_500), one)
    text = table.slice(1_500).set_column(1, "doc_id", table["doc_id"].slice(1_500).cast(pa.string()))
    pq.write_table(text.drop_columns("device"), other)
    found = []
    for threads in COUNTS:
        use_threads(threads)
        found.append(elute.check([one, other], bias="position").to_dict())
    assert all(fields == found[0] for fields in found)


def test_an_error_in_a_thread_is_one_line(tmp_path: Path) -> None:
    """A file that is cut short between two looks at it."""
    path = tmp_path / "log.parquet"
    pq.write_table(_make_log(50_000), path, row_group_size=777)
    use_threads(3)
    with elute.read_log(path) as log:
        assert log.survey.rows == 50_000
        data = path.read_bytes()
        path.write_bytes(data[:20_000] + b"\0" * (len(data) - 20_000 - 100_000) + data[-100_000:])
        with pytest.raises(EluteError):
            log.counts()


def test_threads_share_jobs() -> None:
    seen = set()

    def work(job: int) -> int:
        seen.add(threading.get_ident())
        return job * job

    assert map_threads(work, range(500), 4) == [job * job for job in range(500)]
    assert 1 <= len(seen) <= 4
    assert map_threads(work, [], 4) == []


def test_the_first_error_ends_it() -> None:
    done = []

    def work(job: int) -> None:
        if job == 3:
            raise ValueError(job)
        done.append(job)

    with pytest.raises(ValueError, match="3"):
        map_threads(work, range(10_000), 2)
    assert len(done) < 10_000


def test_ranges_cover_everything() -> None:
    for n in (0, 1, 7, 1_000):
        for parts in COUNTS:
            ends = split_evenly(n, parts)
            assert ends[0][0] == 0
            assert ends[-1][1] == n
            assert all(a[1] == b[0] for a, b in pairwise(ends))


def test_how_many_threads() -> None:
    assert count_threads() == count_usable_cores() >= 1
    use_threads(5)
    assert count_threads() == 5
