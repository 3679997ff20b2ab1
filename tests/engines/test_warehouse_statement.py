"""The statement in every dialect: read again by that dialect's grammar, and nothing that users write breaks out."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elute
from conftest import call_elute
from elute.cells.filters import Filters
from elute.engines.warehouse.layout import AboutCells
from elute.options.table import DIALECTS

sqlglot = pytest.importorskip("sqlglot")
exp = sqlglot.exp

HOSTILE = (
    'a"b',
    "a'b",
    "a;b",
    'x"; DROP TABLE log; --',
    "x`; DROP TABLE log; --",
    "a`b",
    "/*",
    "a b",
    "select",
    "\\",
    "a\\",
)
ESCAPING = ("bigquery", "clickhouse")


def parse(statement: str, dialect: str) -> Any:
    """One statement, that selects."""
    (tree,) = sqlglot.parse(statement, dialect=dialect)
    assert isinstance(tree, exp.Select)
    return tree


def test_the_dialects_are_those_of_the_options() -> None:
    from elute.engines.warehouse import dialects

    assert tuple(dialects.DIALECTS) == DIALECTS


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_reads_what_is_written(dialect: str) -> None:
    given = {"where": "day >= '2026-11-01' AND device IN ('phone', 'desk')", "max_position": 10}
    plain = parse(elute.sql("logs.clicks", dialect).statement, dialect)
    assert [one.alias_or_name for one in plain.selects] == [
        *("query_id", "doc_id", "position", "elute_rows", "elute_rows_shown", "elute_impressions", "elute_clicks"),
        *("elute_rows_flawed", "elute_rows_read", "elute_rows_in_all", "elute_about"),
    ]
    full = elute.sql(
        "logs.clicks",
        dialect,
        session="session",
        impressions="shown",
        min_factor_impressions=5,
        bias="position + device",
        **given,  # type: ignore[arg-type]
    )
    tree = parse(full.statement, dialect)
    tables = {table.name.lower() for table in tree.find_all(exp.Table)}
    assert tables == {"clicks", "elute_log", "elute_kept", "elute_kept_rows", "elute_cells", "elute_pages"}
    said = tree.selects[-1].this.this
    assert AboutCells.read(said) == AboutCells(
        "logs.clicks",
        AboutCells.read(said).roles,
        Filters(str(given["where"]), 10, 5),
    )
    assert AboutCells.read(said).roles.to_dict() == full.roles


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_names(dialect: str, name: str) -> None:
    """As a column, as a table; where a dialect has no safe way to quote one, it is refused."""
    refused = dialect in ESCAPING and ("\\" in name or "`" in name)
    for table, item in ((name, "doc"), ("log", name)):
        if refused:
            with pytest.raises(elute.EluteError, match="cannot be quoted safely"):
                elute.sql(table, dialect, item=[item])
            continue
        tree = parse(elute.sql(table, dialect, item=[item]).statement, dialect)
        found = {table.name for table in tree.find_all(exp.Table)} - {"elute_log", "elute_cells"}
        wanted = table.upper() if dialect == "snowflake" and table.islower() and table.isalpha() else table
        assert found == {wanted}
        assert item in {one.alias for one in tree.find_all(exp.Alias)}


@settings(max_examples=30)
@given(
    name=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
    at=st.sampled_from(DIALECTS),
)
def test_any_name_at_all(name: str, at: str) -> None:
    try:
        statement = elute.sql("log", at, item=["doc", name]).statement
    except elute.EluteError:
        return
    tree = parse(statement, at)
    assert name in {one.alias for one in tree.find_all(exp.Alias)}
    assert {table.name.lower() for table in tree.find_all(exp.Table)} == {"log", "elute_log", "elute_cells"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "where",
    [
        *("1 = 1; DROP TABLE log", "a = 1) OR (1 = 1", "a = 1 UNION SELECT 1", "a = 1 ORDER BY 1", "a = 1 LIMIT 1"),
        *("a IN (SELECT b FROM c)", "EXISTS (SELECT 1)", "count(*) > 1", "row_number() OVER () = 1", "DELETE FROM log"),
        *("a, b", "a AS b", "1", "'a'", "NULL", "*", "(", "a = ?", "rand() < 0.5", "a = 'b", " ", "(" * 5_000),
    ],
)
def test_a_condition_is_one_condition(dialect: str, where: str) -> None:
    with pytest.raises(elute.EluteError, match=r"^`where=`: [^\n]+; write one SQL condition on a row"):
        elute.sql("log", dialect, where=where)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_condition_may_say(dialect: str) -> None:
    """It is read by the dialect's grammar; comments are left out, and it stays whole beside other conditions."""
    for where, shown in (
        ("a = 1 OR b = 2 -- ) x", "a = 1 OR b = 2"),
        ("a = 1 /* ; */ OR b", "a = 1 OR b"),
        ("day >= CURRENT_DATE", "day >= CURRENT_DATE"),
        ("not a between 1 and 2", "NOT a BETWEEN 1 AND 2"),
    ):
        tree = parse(elute.sql("log", dialect, where=where, max_position=3).statement, dialect)
        kept = tree.find(exp.Where).this
        assert isinstance(kept, exp.And)
        assert isinstance(kept.this, exp.Paren)
        assert kept.this.this == sqlglot.parse_one(shown, dialect=dialect)


def test_names_as_each_warehouse_means_them() -> None:
    found = elute.sql("logs.clicks", "snowflake", item=["doc", "DocId"]).statement
    assert '"LOGS"."CLICKS"' in found
    assert '"DOC" AS "doc"' in found
    assert '"DocId" AS "DocId"' in found
    assert '"logs"."Clicks"' in elute.sql('"logs"."Clicks"', "snowflake").statement
    assert "`my-project`.`data`.`clicks`" in elute.sql("my-project.data.clicks", "bigquery").statement
    assert '"a.b"."c"' in elute.sql('"a.b".c', "postgres").statement


@pytest.mark.parametrize("table", ["", ".", "a.", ".a", "a..b", "a.b.c.d.e", "elute_log", '"elute_cells"'])
def test_what_names_no_table(table: str) -> None:
    with pytest.raises(elute.EluteError):
        elute.sql(table, "duckdb")


def test_columns_that_cannot_be() -> None:
    with pytest.raises(elute.EluteError, match="are in the warehouse; name them"):
        elute.sql("log", "duckdb", item="feature_*")
    with pytest.raises(elute.EluteError, match="is called like one of elute's own"):
        elute.sql("log", "duckdb", item=["doc", "elute_rows"])
    with pytest.raises(elute.EluteError, match="differ in capitals only"):
        elute.sql("log", "duckdb", item=["doc", "Doc"])
    with pytest.raises(elute.EluteError, match="none of the bias columns"):
        elute.sql("log", "duckdb", bias="device", max_position=3)
    assert elute.sql("log", "duckdb", item="doc").roles["query"] is None
    assert elute.sql("log", "duckdb", item="doc", query="q").roles["query"] == "q"
    assert elute.sql("log", "duckdb").roles["query"] == "query_id"


def test_the_command_line_prints_the_statement() -> None:
    words = ("sql", "logs.clicks", "--dialect", "trino", "--where", "day = DATE '2026-11-14'", "--session", "page")
    found = elute.sql("logs.clicks", "trino", where="day = DATE '2026-11-14'", session="page")
    assert call_elute(*words).out == found.statement + "\n"
    assert call_elute(*words, "--json").json == found.to_dict()
    assert call_elute("sql", "log", "--dialect", "oracle").code == 2
    wrong = call_elute("sql", "log", "--dialect", "mysql", "--where", "a = 1; b")
    assert (wrong.code, wrong.out) == (1, "")
    assert "--where: this is not one condition in mysql" in wrong.err


def test_without_sqlglot(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "sqlglot" or ".warehouse.st" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(elute.EluteError, match=r'needs sqlglot; run: pip install "elute\[sql\]"'):
        elute.sql("log", "duckdb")
