"""A large table in Postgres, read over several connections: its rows, each once, in one state, whatever goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from postgres_server import Server
from test_postgres import server as server

import elute
from elute._util.threads import use_threads
from elute.engines.remote import postgres_ranges
from elute.engines.remote.postgres import PostgresTable, transaction

pytestmark = pytest.mark.xdist_group("postgres")
ROWS = 30_000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ranges of a few blocks."""
    monkeypatch.setattr(postgres_ranges, "BLOCKS", 8)
    use_threads(4)
    yield
    use_threads(None)


@pytest.fixture
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    doc = np.where(rng.random(ROWS) < 0.7, np.arange(ROWS), rng.integers(0, 40, ROWS))
    return pa.table(
        {
            "query_id": [f"q{one % 200}" for one in doc.tolist()],
            "doc_id": doc,
            "position": rng.integers(1, 6, ROWS),
            "click": (rng.random(ROWS) < 0.2).astype(np.int64),
        }
    )


@pytest.fixture
def url(server: Server, table: pa.Table) -> str:
    return server.load(table, "many")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of the connections."""
    asked: list[str] = []
    read = postgres_ranges._Shared.read

    def note(self: postgres_ranges._Shared, cursor: Any) -> None:
        asked.append(str(cursor))
        read(self, cursor)

    monkeypatch.setattr(postgres_ranges._Shared, "read", note)
    return asked


def read_docs(url: str) -> list[int]:
    found: list[int] = pa.table(PostgresTable(url).select(["doc_id"]))["doc_id"].to_pylist()
    return sorted(found)


def test_every_row_once_on_any_number_of_connections(url: str, table: pa.Table, opened: list[str]) -> None:
    expected = sorted(table["doc_id"].to_pylist())
    for threads in (1, 2, 3, 7):
        use_threads(threads)
        opened.clear()
        assert read_docs(url) == expected
        assert len(opened) == (0 if threads == 1 else threads)


def test_the_answer_is_that_of_the_table(url: str, table: pa.Table) -> None:
    with elute.read_log(url) as far, elute.read_log(table) as near:
        assert elute.check(far).to_dict() == elute.check(near).to_dict()
        there, here = (one.counts(names=True).items.sort_by("doc_id") for one in (far, near))
    assert there.to_pylist() == here.to_pylist()


def test_conditions_leave_no_row_out_and_none_twice(server: Server, url: str) -> None:
    """Whatever happened to the table: rows deleted, blocks emptied, more rows."""
    server.run("DELETE FROM many WHERE doc_id % 3 = 0", "INSERT INTO many SELECT * FROM many WHERE doc_id < 100")
    with transaction(url) as (cursor, name):
        ranges = postgres_ranges.split_blocks(cursor, name)
        sums = ", ".join(f"count(*) FILTER (WHERE {rows})" for rows in ranges)
        cursor.execute(f"SELECT count(*), {sums} FROM {name}")
        total, *each = cursor.fetchone()
    assert len(ranges) > 8 and sum(each) == total and min(each) > 0


def test_what_is_written_meanwhile_is_not_seen(
    server: Server, url: str, table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that move to other blocks between two connections would come twice, or never."""
    read = postgres_ranges._Shared.read
    done: list[bool] = []

    def write_first(self: postgres_ranges._Shared, cursor: Any) -> None:
        if not done:
            done.append(True)
            server.run("UPDATE many SET doc_id = doc_id + 1000000", "DELETE FROM many WHERE doc_id % 2 = 0")
        read(self, cursor)

    monkeypatch.setattr(postgres_ranges._Shared, "read", write_first)
    assert read_docs(url) == sorted(table["doc_id"].to_pylist())
    assert done


def test_a_server_without_more_connections_is_read_over_those_it_has(
    server: Server, url: str, table: pa.Table, opened: list[str]
) -> None:
    server.run("DROP ROLE IF EXISTS lonely", "CREATE ROLE lonely LOGIN PASSWORD 'x' CONNECTION LIMIT 1")
    server.run("GRANT SELECT ON many TO lonely")
    assert read_docs(server.url("many", "x", "lonely")) == sorted(table["doc_id"].to_pylist())
    assert len(opened) == 1


def test_views_and_what_has_no_blocks_are_read_whole(server: Server, url: str, opened: list[str]) -> None:
    server.run(
        "CREATE OR REPLACE VIEW of_many AS SELECT * FROM many",
        "DROP TABLE IF EXISTS parted",
        "CREATE TABLE parted (LIKE many) PARTITION BY RANGE (position)",
        "CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (3)",
        "CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (3) TO (9)",
        "INSERT INTO parted SELECT * FROM many",
    )
    for name in ("of_many", "parted"):
        assert len(read_docs(server.url(name))) == ROWS
    assert opened == []


def test_children_of_a_table_come_with_it(server: Server, url: str) -> None:
    server.run("DROP TABLE IF EXISTS child", "CREATE TABLE child () INHERITS (many)", "INSERT INTO child TABLE many")
    assert len(read_docs(url)) == 2 * ROWS


def test_a_range_that_fails_ends_it_in_one_line(server: Server, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    split = postgres_ranges.split_blocks

    def spoil(cursor: Any, table: str) -> list[str]:
        *most, last = split(cursor, table)
        return [*most, f"1 / (doc_id - doc_id) = 1 AND {last}"]

    monkeypatch.setattr("elute.engines.remote.postgres.split_blocks", spoil)
    with pytest.raises(elute.EluteError, match=r"cannot read postgres://.*#many: division by zero") as caught:
        elute.read_log(url)
    assert "\n" not in str(caught.value)


def test_a_reader_that_is_left_early_ends_its_connections(server: Server, url: str, opened: list[str]) -> None:
    batches = PostgresTable(url)._read_batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND query LIKE '%ctid%' "
            "AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchone() == (0,)
    assert len(opened) == 4
