"""`where` takes one SQL expression on a row, and nothing that could do more than look at it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import elute
from elute.engines.duckdb.expression import parse
from elute.engines.spark.filtering import spell_for_spark

COLUMNS = ["query_id", "position", "device", 'odd "name', "it's; --", "info", "Date"]


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        ("position < 5", ("position",)),
        ("position < 5 -- the first page", ("position",)),
        ("position /* of ) the */ < 5", ("position",)),
        ("POSITION < 5 AND date IS NOT NULL", ("position", "Date")),
        ('"odd ""name" = 3', ('odd "name',)),
        ('"it\'s; --" = 3', ("it's; --",)),
        ("device = 'x) OR (SELECT 1); DROP TABLE log; --'", ("device",)),
        ("device IN ('a', 'b') OR NOT position BETWEEN 1 AND 2", ("device", "position")),
        ("info.page = 3", ("info",)),
        ("lower(device) LIKE 'ph%' AND split_part(device, '-', 1) = 'a'", ("device",)),
        ("CASE WHEN position = 1 THEN true ELSE device = 'x' END", ("position", "device")),
        ("date >= DATE '2024-01-01' AND date < DATE '2024-01-01' + INTERVAL 3 DAY", ("Date",)),
        ("TRY_CAST(device AS INT) IS NULL", ("device",)),
        ("true", ()),
    ],
)
def test_expressions(where: str, columns: tuple[str, ...]) -> None:
    found = parse(where, COLUMNS, "the log")
    assert set(found.columns) == set(columns)
    again = parse(found.plain, COLUMNS, "the log")
    assert again.plain == found.plain


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("-- nothing", "SELECT clause"),
        ("position <", "syntax error"),
        ("1) FROM log WHERE (1", "syntax error"),
        ("true) OR (true", "syntax error"),
        ("position < 5)", "syntax error"),
        ("(position < 5", "syntax error"),
        ("position < 5 /*", "unterminated"),
        ("position < 5;", "syntax error"),
        ("true; DROP TABLE log", "not one expression"),
        ("true; SELECT true", "2 statements"),
        ("true); SELECT (true", "syntax error"),
        ("true FROM log", "FROM, WHERE"),
        ("true FROM read_text('/etc/passwd')", "FROM, WHERE"),
        ("true WHERE true", "FROM, WHERE"),
        ("true GROUP BY 1", "FROM, WHERE"),
        ("true ORDER BY 1", "FROM, WHERE"),
        ("true LIMIT 1", "FROM, WHERE"),
        ("true UNION SELECT false", "FROM, WHERE"),
        ("DISTINCT true", "FROM, WHERE"),
        ("ALL true", "syntax error"),
        ("true, false", "2 expressions"),
        ("true AS x", "the name 'x'"),
        ("(SELECT true)", "a subquery"),
        ("EXISTS (SELECT 1)", "a subquery"),
        ("position IN (SELECT 1)", "a subquery"),
        ("position = ANY (SELECT 1)", "a subquery"),
        ("device = (SELECT content FROM read_text('/etc/passwd'))", "a subquery"),
        ("read_text('/etc/passwd') = device", "single row"),
        ("query('SELECT 1') = 1", "single row"),
        ("sum(position) > 3", "single row"),
        ("position > row_number() OVER ()", "a window function"),
        ("random() < 0.5", "differently each time"),
        ("now() > Date", "differently each time"),
        ("current_setting('temp_directory') = device", "differently each time"),
        ("main.lower(device) = 'a'", "without a schema"),
        ("nonsense(device)", "no function 'nonsense'"),
        ("list_filter([1], x -> x > 0) = [1]", "a lambda"),
        ("*", "COLUMNS is not allowed"),
        ("COLUMNS('.*')", "COLUMNS is not allowed"),
        ("position = $1", "a parameter"),
        ("position = ?", "a parameter"),
        ("#1", "POSITIONAL_REFERENCE"),
        ("postion < 5", "no column 'postion' (closest: position)"),
        ("device = phone", "text goes into single quotes"),
        ("rowid < 5", "no column 'rowid'"),
        ("log.position < 5", "no column 'log'"),
        ("current_date > Date", "no column 'current_date'"),
        ("device = 'a\0b'", "null character"),
        ("device = '\udcff'", "surrogate"),
        ("NOT " * 900 + "true", "nested"),
        ("(" * 3000 + "true" + ")" * 3000, "depth"),
    ],
)
def test_everything_else_is_refused(where: str, says: str) -> None:
    with pytest.raises(elute.EluteError) as refused:
        parse(where, COLUMNS, "the log")
    said = str(refused.value)
    assert said.startswith("the log: `where=`: ")
    assert says in said
    assert "\n" not in said


@given(text=st.text(), name=st.text(min_size=1).filter(lambda name: "\0" not in name))
def test_text_and_names_never_become_sql(text: str, name: str) -> None:
    if "\0" in text:
        return
    table = pa.table({name: [text, text + "x"]})
    quoted = "\"{}\" = '{}'".format(name.replace('"', '""'), text.replace("'", "''"))
    assert parse(quoted, table.column_names, "the log").columns == (name,)


@given(where=st.text(alphabet="()'\"-/*;, \nabSELCTFROMWH1=<>&", max_size=30))
@example(where="C''")
def test_whatever_is_accepted_is_an_expression_in_parentheses(where: str) -> None:
    """So that what stands before and after it in a statement stays what it is."""
    import duckdb

    try:
        found = parse(where, ["a", "b"], "the log")
    except elute.EluteError:
        return
    both = f"SELECT false AND {found.sql} FROM (SELECT NULL AS a, NULL AS b)"
    try:
        assert duckdb.execute(both).fetchall() == [(False,)]
    except duckdb.Error as error:
        # its types do not go together, or are none: C'' is a literal of the type C
        assert any(word in str(error) for word in ("Binder", "Conversion", "Type with name"))


@pytest.mark.parametrize(
    ("where", "spelled"),
    [
        ('"order" = 1', "(`order` = 1)"),
        ("device = 'it''s'", "(device = 'it\\'s')"),
        ("device = '\\'", "(device = '\\\\')"),
        ("device = '\"'", "(device = '\"')"),
        ("device LIKE 'a%'", "(device LIKE 'a%')"),
        ("CAST(info AS VARCHAR) = 'AS VARCHAR'", "(CAST(info AS STRING) = 'AS VARCHAR')"),
    ],
)
def test_in_the_words_of_spark(where: str, spelled: str) -> None:
    """There, double quotes make text, and a backslash escapes."""
    assert spell_for_spark(parse(where, [*COLUMNS, "order"], "the log"), "the log") == spelled


@pytest.mark.parametrize("where", ["regexp_matches(device, 'a')", "device LIKE 'a\\%'", "TRY(position < 5)"])
def test_what_spark_would_take_otherwise_is_refused(where: str) -> None:
    with pytest.raises(elute.EluteError, match="may mean something else to Spark"):
        spell_for_spark(parse(where, COLUMNS, "the log"), "the log")


@pytest.fixture
def text_log(tmp_path: Path) -> str:
    columns = {"query_id": [1, 1, 2], "doc_id": [1, 2, 1], "position": ["2", "10", "n/a"], "click": [1, 0, 0]}
    pa.csv.write_csv(pa.table(columns), tmp_path / "log.csv")
    return str(tmp_path / "log.csv")


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("position < 5", "write for instance CAST(position AS INT)"),
        ("CAST(position AS INT) < 5", "write for instance TRY_CAST(position AS INT)"),
        ("position", "of type VARCHAR, not true or false"),
        ("CAST(click AS INT) + 1", "of type INTEGER, not true or false"),
    ],
)
def test_columns_of_csv_are_text(text_log: str, where: str, says: str) -> None:
    with pytest.raises(elute.EluteError) as refused:
        elute.read_log(text_log, where=where)
    assert says in str(refused.value)
    assert elute.read_log(text_log, where="TRY_CAST(position AS INT) < 5").survey.rows == 1
