"""The door of cells: exports of all kinds come in, and whatever is not the statement's whole result is one line."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_warehouse import SPARSE, about, check_folder, export, repeated
from warehouses import in_duckdb

import elute
from conftest import call_elute

ROLES: dict[str, Any] = {"bias": "position,device", "session": "session_id", "max_position": 7}


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(in_duckdb, repeated(SPARSE), tmp_path_factory.mktemp("cells"), **ROLES)


def count(cells: object, folder: Path, **options: Any) -> Path:
    elute.count(cells, folder, from_cells=True, **options)
    return folder


def assert_same(one: Path, other: Path) -> None:
    assert about(one) == about(other)
    assert check_folder(one) == check_folder(other)


def test_exports_in_several_files_and_other_types(cells: Path, tmp_path: Path) -> None:
    """As warehouses write them: in shards, whole numbers as decimals, names in small letters or capitals."""
    table, whole = pq.read_table(cells), count(cells, tmp_path / "whole")
    shards = tmp_path / "shards"
    shards.mkdir()
    changed = table.rename_columns([name.upper() for name in table.column_names])
    for number, field in enumerate(changed.schema):
        if pa.types.is_integer(field.type):
            changed = changed.set_column(number, field.name, changed[field.name].cast(pa.decimal128(38, 0)))
    for number in range(3):
        pq.write_table(changed.slice(number * 60, 60 if number < 2 else None), shards / f"part-{number}.parquet")
    assert_same(count(shards, tmp_path / "folder"), whole)
    assert_same(count(str(shards / "*.parquet"), tmp_path / "glob"), whole)
    assert_same(count(sorted(map(str, shards.iterdir())), tmp_path / "list"), whole)


def test_the_order_of_rows_is_no_matter(cells: Path, tmp_path: Path) -> None:
    table = pq.read_table(cells)
    pq.write_table(table.sort_by([("position", "descending")]), tmp_path / "sorted.parquet")
    assert_same(count(tmp_path / "sorted.parquet", tmp_path / "one"), count(cells, tmp_path / "other"))


def test_roles_are_found_or_compared(cells: Path, tmp_path: Path) -> None:
    whole = count(cells, tmp_path / "whole")
    assert_same(count(cells, tmp_path / "given", bias="position,device", session="session_id", max_position=7), whole)
    for options, problem in (
        ({"bias": "device"}, "made with bias position, device, not device"),
        ({"click": "other"}, "no column 'other'"),
        ({"where": "position < 3"}, "filter in the statement, with `elute.sql`"),
        ({"max_position": 3}, "filter in the statement, with `elute.sql`"),
        ({"engine": "spark"}, "the cells are counted already"),
    ):
        with pytest.raises(elute.EluteError, match=problem):
            count(cells, tmp_path / "refused", **options)
    with pytest.raises(elute.EluteError, match="give their paths"):
        count(pq.read_table(cells), tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_roles_are_given_where_nothing_is_said_of_them(tmp_path: Path) -> None:
    """A statement of one's own, with the sums by their names."""
    table = repeated(SPARSE)
    pq.write_table(table, tmp_path / "log.parquet")
    roles: dict[str, Any] = {"bias": "position,device", "item": "doc_id", "query": "query_id"}
    own = pq.read_table(export(in_duckdb, table, tmp_path, **roles)).drop_columns(
        ["elute_about", "elute_rows_read", "elute_rows_in_all"]
    )
    pq.write_table(own, tmp_path / "own.parquet")
    elute.count(tmp_path / "log.parquet", tmp_path / "expected", **roles)
    assert_same(count(tmp_path / "own.parquet", tmp_path / "found", **roles), tmp_path / "expected")
    with pytest.raises(elute.EluteError, match="no column 'place'"):
        count(tmp_path / "own.parquet", tmp_path / "none", bias="place")


def change(name: str, value: object, row: int = 3) -> Callable[[pa.Table], pa.Table]:
    def run(table: pa.Table) -> pa.Table:
        values = table[name].to_pylist()
        values[row] = value
        return table.set_column(table.column_names.index(name), name, pa.array(values))

    return run


def put(name: str, column: Callable[[pa.ChunkedArray], Any]) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.column_names.index(name), name, column(table[name]))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda table: table.slice(0, 100), "something is missing or there twice"),
        (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "something is missing or there twice"),
        (lambda table: table.slice(0, 0), "has no rows"),
        (lambda table: table.drop_columns("position"), "no column 'position'"),
        (lambda table: table.drop_columns("elute_clicks"), "no column 'elute_clicks'"),
        (lambda table: table.drop_columns("elute_rows_repeated"), "no column 'elute_rows_repeated'"),
        (lambda table: table.append_column("POSITION", table["position"]).drop_columns("position"), None),
        (lambda table: table.append_column("Elute_Rows", table["elute_rows"]), None),
        (change("elute_clicks", -1), "-1, not 0 or more"),
        (change("elute_clicks", None), "empty in 1 rows"),
        (change("elute_clicks", 10**6), "a cell has 1,000,000 clicks"),
        (change("elute_impressions", 10**6), "a cell has"),
        (change("elute_rows", 0), "a cell has"),
        (change("elute_rows_shown", 0), "a cell has"),
        (change("elute_rows_flawed", 1), "'click' is neither 0 nor 1, true nor false in 1 row "),
        (change("elute_rows_read", 5), "it is of several results"),
        (put("elute_rows_in_all", lambda column: pa.array([1] * len(column))), "the log changed meanwhile"),
        (put("elute_rows", lambda column: column.cast(pa.float64())), "holds double, not int64"),
        (put("elute_rows", lambda column: column.cast(pa.string())), "holds string, not int64"),
        (put("elute_rows", lambda column: pa.array([2**64 - 1] * len(column), pa.uint64())), "beyond 64 bits"),
        (put("position", lambda column: pa.array([[1]] * len(column))), "which no id is"),
        (put("position", lambda column: pa.array([Decimal(10) ** 30] * len(column))), "beyond 64 bits"),
        (put("elute_about", lambda column: pa.array(["{}"] * len(column))), "'elute_about.elute' is missing"),
        (change("elute_about", None), "from different statements"),
        (put("elute_about", lambda column: pa.array(["["] * len(column))), "'elute_about' is not as the statement"),
        (put("elute_about", lambda column: pa.array([1] * len(column))), "'elute_about' is not as the statement"),
        (put("elute_about", lambda column: pa.array(["[" * 10**5] * len(column))), "is not as the statement gives it"),
    ],
)
def test_what_is_not_the_whole_result(
    cells: Path, tmp_path: Path, damage: Callable[[pa.Table], pa.Table], problem: str | None
) -> None:
    pq.write_table(damage(pq.read_table(cells)), tmp_path / "cells.parquet")
    if problem is None:
        count(tmp_path / "cells.parquet", tmp_path / "out")
        return
    with pytest.raises(elute.EluteError, match=problem) as refused:
        count(tmp_path / "cells.parquet", tmp_path / "out")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


@settings(max_examples=60, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_damaged_bytes(cells: Path, tmp_path: Path, data: st.DataObject) -> None:
    """One line, or the same counts as before where the damage meant nothing."""
    whole = bytearray(cells.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    (tmp_path / "cells.parquet").write_bytes(whole[: data.draw(st.sampled_from([len(whole), len(whole) // 2]))])
    try:
        found = elute.count(tmp_path / "cells.parquet", tmp_path / "out", from_cells=True)
    except elute.EluteError as error:
        assert "\n" not in str(error)
        return
    assert found.rows == 266


def test_the_command_line(cells: Path, tmp_path: Path) -> None:
    done = call_elute("count", "--from-cells", cells, "--out", tmp_path / "counts")
    assert (done.code, done.err) == (0, "")
    assert "rows became" in done.out
    assert_same(tmp_path / "counts", count(cells, tmp_path / "python"))
    (tmp_path / "cells.csv").write_text("a,b\n1,2\n")
    for words, problem in (
        (("count", "--from-cells", tmp_path / "cells.csv"), "export the cells as Parquet"),
        (("count", "--from-cells", tmp_path / "none.parquet"), "no file"),
        (("count", "--from-cells", cells, "--bias", "device"), "these counts were made with bias"),
    ):
        wrong = call_elute(*words, "--out", tmp_path / "refused")
        assert wrong.code == 1
        assert problem in wrong.err
        assert wrong.err.count("\n") == 1
    assert call_elute("count", "--from-cells", cells, "--out", cells.parent).code == 1
    assert cells.exists()
