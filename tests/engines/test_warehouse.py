"""Cells counted in a database by the statement of `elute.sql`: what is said of them is what is said of the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from postgres_server import Server, running
from test_against_reference import ODD_INT64, ODD_TEXT, ODD_UINT64, Case, logs, plain
from test_engines_agree import roles_of
from warehouses import Warehouse, in_duckdb, in_postgres, in_spark, in_sqlite

import elute
from elute.engines.partitioned import engine
from elute.simulation import toy
from elute.simulation.layouts import simulate_layouts

pytest.importorskip("sqlglot")

DIALECTS: dict[Warehouse, str] = {in_duckdb: "duckdb", in_sqlite: "sqlite", in_spark: "spark"}


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running() as started:
        yield started


def few(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def export(run: Warehouse, table: pa.Table, folder: Path, name: str = "log", **roles: Any) -> Path:
    """The file of cells that a warehouse leaves."""
    statement = elute.sql(name, DIALECTS.get(run, "postgres"), **roles).statement
    pq.write_table(run(table, name, statement), folder / "cells.parquet")
    return folder / "cells.parquet"


def check_folder(folder: Path, **options: Any) -> str:
    """All that a check says of a counts folder, but where it lies."""
    with elute.read_log(folder) as log:
        return json.dumps(elute.check(log, **options).to_dict(), sort_keys=True, default=str)


def about(folder: Path) -> dict[str, Any]:
    """What `counts.json` says but for the log's name, its state, and files whose bytes hang on the order of items."""
    said: dict[str, Any] = json.loads((folder / "counts.json").read_text(encoding="utf-8"))
    return {name: value for name, value in said.items() if name not in ("log", "source", "files")}


def assert_same(run: Warehouse, table: pa.Table, name: str = "log", options: Any = None, **roles: Any) -> None:
    """The counts of the log and of its cells say the same, or both are refused."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        pq.write_table(table, folder / "log.parquet")
        cells = export(run, table, folder, name, **roles)
        try:
            elute.count(folder / "log.parquet", folder / "expected", **roles)
        except elute.EluteError as error:
            with pytest.raises(elute.EluteError) as refused:
                elute.count(cells, folder / "found", from_cells=True)
            if "no usable row" in str(error):
                assert str(refused.value).partition(" has ")[2] == str(error).partition(" has ")[2]
            return
        elute.count(cells, folder / "found", from_cells=True, **(options or {}))
        assert about(folder / "found") == about(folder / "expected")
        assert check_folder(folder / "found") == check_folder(folder / "expected")


@few(12)
@given(case=logs(nulls=True))
@example(case=plain([("q", text, text) for text in ODD_TEXT], "text"))
@example(case=plain([(1, number, number) for number in ODD_INT64], "int64"))
@example(case=plain([(1, number, number) for number in ODD_UINT64], "uint64"))
@example(case=plain([(1, None, 1), (1, 1, None)]))
@example(case=plain([(n % 7, n, n % 30) for n in range(90)], clicks="counts"))
def test_random_logs_in_duckdb(case: Case) -> None:
    assert_same(in_duckdb, case.table, **roles_of(case))


def _fits(case: Case) -> bool:
    """SQLite and Postgres have no unsigned integers."""
    return not any(pa.types.is_uint64(kind) for kind in case.types.values())


@few(6)
@given(case=logs(nulls=True).filter(_fits))
@example(case=plain([("q", text, text) for text in ODD_TEXT], "text"))
@example(case=plain([(1, number, number) for number in ODD_INT64], "int64"))
@example(case=plain([(1, None, 1), (1, 1, None)], clicks="bool"))
@example(case=plain([(n % 7, n, n % 30) for n in range(90)], clicks="counts"))
def test_random_logs_in_sqlite(case: Case) -> None:
    assert_same(in_sqlite, case.table, **roles_of(case))


@pytest.mark.xdist_group("postgres")
@few(4)
@given(case=logs(nulls=True).filter(_fits))
@example(case=plain([("q", text, text) for text in ODD_TEXT], "text"))
@example(case=plain([(1, None, 1), (1, 1, None)], clicks="bool"))
@example(case=plain([(n % 7, n, n % 30) for n in range(90)], clicks="counts"))
def test_random_logs_in_postgres(server: Server, case: Case) -> None:
    assert_same(in_postgres(server), case.table, **roles_of(case))


SPARSE = pa.table(
    {
        "query_id": [f"q{n % 40}" for n in range(300)],
        "doc_id": [None if n % 50 == 0 else n for n in range(300)],
        "position": [n * 7919 % 9 + 1 for n in range(300)],
        "device": [("phone", "desk", None)[n % 3] if n % 11 else "tv" for n in range(300)],
        "session_id": [n // 6 for n in range(300)],
        "user_id": [n % 5 for n in range(300)],
        "click": [n % 4 == 0 for n in range(300)],
    }
)
"""Most items shown once, some positions alone, nulls, few users."""

FILTERED: list[dict[str, Any]] = [
    {},
    {"bias": "position + device", "session": "session_id"},
    {"where": "device = 'phone' OR position > 3", "session": "user_id"},
    {"max_position": 5, "min_factor_impressions": 30, "session": "session_id"},
    {"bias": "position,device", "min_factor_impressions": 12, "session": "user_id", "item": "doc_id"},
    {"item": "doc_id", "query": "query_id"},
    {"where": "position <= 8 AND NOT device IS NULL", "max_position": 7, "bias": ["position", "device"]},
]


def repeated(table: pa.Table) -> pa.Table:
    """With rows that show an item again on its page."""
    return pa.concat_tables([table, table.slice(10, 40), table.slice(20, 5)])


def _read_item_alone(roles: dict[str, Any]) -> bool:
    """A statement does not see that there is a query column too."""
    return roles.get("item") == "doc_id" and "query" not in roles


def assert_filtered_alike(run: Warehouse, roles: dict[str, Any]) -> None:
    table = repeated(SPARSE)
    assert_same(run, table.drop_columns("query_id") if _read_item_alone(roles) else table, **roles)


@pytest.mark.parametrize("roles", FILTERED)
def test_filters_sessions_and_formulas(roles: dict[str, Any]) -> None:
    for run in (in_duckdb, in_sqlite):
        assert_filtered_alike(run, roles)


@pytest.mark.xdist_group("postgres")
def test_filters_sessions_and_formulas_in_postgres(server: Server) -> None:
    for roles in FILTERED[1:4]:
        assert_filtered_alike(in_postgres(server), roles)


@pytest.mark.xdist_group("spark")
def test_logs_in_spark(spark: None) -> None:
    assert_filtered_alike(in_spark, FILTERED[3])
    counts = plain([(n % 7, n, n % 30) for n in range(90)], clicks="counts")
    assert_same(in_spark, counts.table, **roles_of(counts))


@pytest.mark.parametrize("run", [in_duckdb, in_sqlite])
def test_dense_logs(run: Warehouse) -> None:
    for broken in (False, True):
        table = toy.simulate(2_000, 60, broken=broken, seed=3)
        assert_same(run, table, session="session_id")
    assert_same(run, simulate_layouts(1_000, 40, 3), bias="position + device + layout")


def test_items_told_apart_by_value(tmp_path: Path) -> None:
    cells = export(in_duckdb, repeated(SPARSE), tmp_path)
    elute.count(cells, tmp_path / "by hash", from_cells=True)
    elute.count(cells, tmp_path / "by value", from_cells=True, exact=True)
    by_hash, by_value = about(tmp_path / "by hash"), about(tmp_path / "by value")
    assert by_value.pop("collision_bound") == 0 < by_hash.pop("collision_bound")
    assert by_value.pop("exact") and not by_hash.pop("exact")
    assert by_value == by_hash


def test_with_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partition by partition, the same."""
    monkeypatch.setattr(engine, "BYTES_A_ROW", 200_000)
    assert_same(in_duckdb, toy.simulate(2_000, 60, broken=True, seed=3), options={"memory": engine.LEAST})


def test_rows_without_impressions() -> None:
    table = pa.table(
        {
            "query_id": ["a", "a", "b", None, "c"],
            "doc_id": [1, 1, 2, 3, 4],
            "position": [1, 2, 1, 1, 2],
            "shown": [5, 0, 3, 2, 0],
            "click": [2, 0, 3, 1, 0],
        }
    )
    for run in (in_duckdb, in_sqlite):
        assert_same(run, table, impressions="shown")
        assert_same(run, table.slice(1, 1), impressions="shown")


@pytest.mark.parametrize("value", [-1, 2, 0.5, None, float("nan"), "x", "yes"])
def test_clicks_that_are_none_are_refused(value: object, tmp_path: Path) -> None:
    table = pa.table({"query_id": ["a", "a"], "doc_id": [1, 2], "position": [1, 2], "click": pa.array([value, value])})
    for run in (in_duckdb, in_sqlite):
        with pytest.raises(elute.EluteError, match="log: column 'click' is neither 0 nor 1, true nor false in 2 rows"):
            elute.count(export(run, table, tmp_path), tmp_path / "out", from_cells=True)
    with pytest.raises(elute.EluteError, match="column 'click'"):
        elute.read_log(table)


@pytest.mark.parametrize(
    ("shown", "click"), [(3, 4), (-1, 0), (2.5, 1), (float("nan"), 0), (None, 0), (2, None), (2, 0.5), (2e15, 0)]
)
def test_counts_that_are_none_are_refused(shown: object, click: object, tmp_path: Path) -> None:
    table = pa.table({"query_id": ["a"], "doc_id": [1], "position": [1], "shown": [shown], "click": [click]})
    with pytest.raises(elute.EluteError, match=r"column '(click|shown)'"):
        elute.read_log(table, impressions="shown")
    for run in (in_duckdb, in_sqlite):
        with pytest.raises(elute.EluteError, match="log: columns 'click' and 'shown' are not whole numbers from 0"):
            elute.count(export(run, table, tmp_path, impressions="shown"), tmp_path / "out", from_cells=True)


@pytest.mark.parametrize("value", [True, 1, 1.0, "true", " TRUE ", "1"])
def test_clicks_of_any_type(value: object, tmp_path: Path) -> None:
    none: Any = "false" if isinstance(value, str) else {bool: False, int: 0, float: 0.0}[type(value)]
    table = pa.table({"query_id": ["a", "a"], "doc_id": [1, 2], "position": [1, 2], "click": pa.array([value, none])})
    for run in (in_duckdb, in_sqlite):
        assert elute.count(export(run, table, tmp_path), tmp_path / "out", from_cells=True).clicks == 1


def test_sqlite_takes_no_text_for_a_number(tmp_path: Path) -> None:
    """It would make 0 of it."""
    table = pa.table({"query_id": ["a"], "doc_id": [1], "position": ["first"], "shown": [3], "click": [1]})
    cells = export(in_sqlite, table, tmp_path, max_position=5)
    with pytest.raises(elute.EluteError, match="in 1 row"):
        elute.count(cells, tmp_path / "out", from_cells=True)
    cells = export(in_sqlite, table.set_column(3, "shown", pa.array(["many"])), tmp_path, impressions="shown")
    with pytest.raises(elute.EluteError, match="in 1 row"):
        elute.count(cells, tmp_path / "out", from_cells=True)


HOSTILE = [
    'a"b',
    "a'b",
    "a;b",
    'x"; DROP TABLE log; --',
    "a`b",
    "a--b",
    "/*",
    "a b",
    "é",
    "select",
    "{{x}}",
    "%27",
    "\\",
]


@pytest.mark.parametrize("run", [in_duckdb, in_sqlite])
def test_names_that_would_break_out(run: Warehouse) -> None:
    """As columns of items, and each as the table's own."""
    named = {name: [n % 2 for n in range(3)] for name in HOSTILE}
    columns = {**named, "bias;'\"": [1, 2, 1], "click;'\"": [1, 0, 0]}
    roles: dict[str, Any] = {"query": HOSTILE[0], "item": HOSTILE, "bias": ["bias;'\""], "click": "click;'\""}
    assert_same(run, pa.table(columns), name=HOSTILE[3], **roles)
    for name in HOSTILE[:3] + HOSTILE[4:]:
        assert run(pa.table(columns), name, elute.sql(name, DIALECTS[run], **roles).statement).num_rows == 2
