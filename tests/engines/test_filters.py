"""A filtered log is the log that has only these rows: for every engine, every source and every field of a check."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from file_server import serving
from hypothesis import given
from hypothesis import strategies as st
from postgres_server import running
from test_engines_agree import by_value, in_passes, in_spark, some, tiny_passes, whole

import elute
from elute.engines.partitioned import engine

__all__ = ["tiny_passes"]

Row = dict[str, Any]
Keep = Callable[[Row], bool]

WHERE: list[tuple[str | None, Keep]] = [
    (None, lambda row: True),
    ("device = 'phone'", lambda row: row["device"] == "phone"),
    ("device <> 'it''s' AND (day >= 3 OR click = 1)", lambda row: _is_not_its(row) and _is_late_or_clicked(row)),
    ("day IN (1, 2, 4)", lambda row: row["day"] in (1, 2, 4)),
    ('"day" IS NULL OR day % 2 = 0', lambda row: row["day"] is None or row["day"] % 2 == 0),
]
"""Conditions, and the same in Python; a comparison with a null is not true."""


def _is_not_its(row: Row) -> bool:
    return row["device"] not in (None, "it's")


def _is_late_or_clicked(row: Row) -> bool:
    return (row["day"] is not None and row["day"] >= 3) or row["click"] == 1


SCHEMA = pa.schema(
    {"query_id": pa.int64(), "doc_id": pa.string(), "position": pa.int64(), "device": pa.string(), "day": pa.int64(),
     "click": pa.int64(), "shown": pa.int64(), "session_id": pa.int64()}
)  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(values, values, values, st.none())

    row = st.fixed_dictionaries(
        {
            "query_id": maybe(st.integers(1, 4)),
            "doc_id": maybe(st.sampled_from("abc")),
            "position": maybe(st.integers(0, 6)),
            "device": maybe(st.sampled_from(["phone", "desk", "it's"])),
            "day": maybe(st.integers(1, 5)),
            "click": st.integers(0, 1),
            "shown": st.integers(0, 4),
            "session_id": st.integers(1, 5),
        }
    )
    rows = [{**row, "shown": max(row["shown"], row["click"])} for row in draw(st.lists(row, min_size=1, max_size=60))]
    return pa.Table.from_pylist(rows, SCHEMA)


@st.composite
def wishes(draw: st.DrawFn) -> tuple[dict[str, Any], Keep]:
    where, keep = draw(st.sampled_from(WHERE))
    options = {
        "where": where,
        "max_position": draw(st.none() | st.integers(0, 6)),
        "min_factor_impressions": draw(st.none() | st.integers(1, 8)),
    }
    return options, keep


@st.composite
def columns(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "bias": draw(st.sampled_from(["position", "position,device"])),
        "item": draw(st.sampled_from([None, "doc_id"])),
        "impressions": draw(st.sampled_from([None, "shown"])),
        "session": draw(st.sampled_from([None, "session_id"])),
    }


def filtered(table: pa.Table, options: dict[str, Any], keep: Keep, roles: dict[str, Any]) -> pa.Table:
    """What is to be read, in plain Python."""
    rows = [row for row in table.to_pylist() if keep(row)]
    most, least, bias = options["max_position"], options["min_factor_impressions"], roles["bias"].split(",")
    if most is not None:
        rows = [row for row in rows if row["position"] is not None and row["position"] <= most]
    if least is not None:
        shown: Counter[tuple[Any, ...]] = Counter()
        for row in rows:
            if all(row[column] is not None for column in ("query_id", "doc_id", *bias)):
                shown[tuple(row[column] for column in bias)] += row[roles["impressions"]] if roles["impressions"] else 1
        rows = [row for row in rows if shown[tuple(row[column] for column in bias)] >= least]
    return pa.Table.from_pylist(rows, table.schema)


def said_by(read: Callable[..., elute.ClickLog], source: object, **options: Any) -> dict[str, Any] | None:
    """The whole JSON of a check but for the filters; None where nothing is left."""
    try:
        with read(source, **options) as log:
            fields = elute.check(log).to_dict()
    except elute.EluteError as error:
        assert any(words in str(error) for words in ("has no rows", "is left", "has no usable row"))
        return None
    for field in ("filters", "rows_filtered", *(("collision_bound",) if read is by_value else ())):
        del fields[field]
    return fields


@pytest.mark.usefixtures("tiny_passes")
@pytest.mark.parametrize("read", [whole, by_value, in_passes])
@some(40)
@given(table=tables(), wish=wishes(), roles=columns())
def test_as_if_the_log_had_no_other_rows(
    read: Any, table: pa.Table, wish: tuple[dict[str, Any], Keep], roles: dict[str, Any]
) -> None:
    left = filtered(table, *wish, roles)
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("all", table), ("left", left)):
            pq.write_table(rows, f"{folder}/{name}.parquet")
        assert said_by(read, f"{folder}/all.parquet", **wish[0], **roles) == said_by(
            read, f"{folder}/left.parquet", **roles
        )


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
@some(4)
@given(table=tables(), wish=wishes(), roles=columns())
def test_in_spark_too(table: pa.Table, wish: tuple[dict[str, Any], Keep], roles: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/log.parquet"
        pq.write_table(table, path)
        assert said_by(in_spark, path, **wish[0], **roles) == said_by(whole, path, **wish[0], **roles)


LOG = pa.Table.from_pylist(
    [
        {
            "query_id": n % 7,
            "doc_id": "abcd"[n % 4],
            "position": 1 + min(n % 13, n % 17),
            "device": ["phone", "desk", "it's"][n % 3],
            "day": 1 + n % 5,
            "click": int(n % 6 == 0),
            "shown": 1 + n % 3,
            "session_id": n // 13,
            "odd (name": n % 2,
        }
        for n in range(800)
    ],
)
ASKED: dict[str, Any] = {"where": "device = 'phone' OR day = 2", "max_position": 11, "min_factor_impressions": 28}


def expected() -> dict[str, Any]:
    left = filtered(
        LOG, ASKED, lambda row: row["device"] == "phone" or row["day"] == 2, {"bias": "position", "impressions": None}
    )
    fields = elute.check(left).to_dict()
    assert 1 < fields["factors"] < 11
    return {**fields, "filters": ASKED, "rows_filtered": LOG.num_rows - left.num_rows}


def as_csv(folder: Path) -> object:
    pa.csv.write_csv(LOG, folder / "log.csv")
    return folder / "log.csv"


def as_ndjson(folder: Path) -> object:
    (folder / "log.ndjson").write_text("".join(json.dumps(row) + "\n" for row in LOG.to_pylist()))
    return folder / "log.ndjson"


def as_several_files(folder: Path) -> object:
    pq.write_table(LOG.slice(0, 300), folder / "a.parquet")
    pq.write_table(LOG.slice(300), folder / "b.parquet")
    return str(folder / "*.parquet")


def as_table(folder: Path) -> object:
    with duckdb.connect(str(folder / "log.db")) as connection:
        connection.register("arrow", LOG)
        connection.execute("CREATE TABLE log AS SELECT * FROM arrow")
    return f"duckdb://{folder / 'log.db'}#log"


SOURCES: list[Callable[[Path], object]] = [
    as_csv, as_ndjson, as_several_files, as_table, lambda _: LOG, lambda _: LOG.to_pandas()
]  # fmt: skip


@pytest.mark.parametrize("memory", [None, engine.LEAST])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source(source: Callable[[Path], object], memory: int | None, tmp_path: Path) -> None:
    said = elute.check(source(tmp_path), memory=memory, **ASKED).to_dict()
    if source is as_csv:
        return_numbers(said)
    assert said == expected()


def return_numbers(fields: dict[str, Any]) -> None:
    """Ids in CSV are text, which here is the only difference."""
    for part in fields["component_details"]:
        for item in part["example_items"]:
            item["query_id"] = int(item["query_id"])


def test_over_the_network(tmp_path: Path) -> None:
    pq.write_table(LOG, tmp_path / "log.parquet")
    with serving() as http:
        http.files["/log.parquet"] = (tmp_path / "log.parquet").read_bytes()
        assert elute.check(f"{http.url}/log.parquet", **ASKED).to_dict() == expected()


@pytest.mark.xdist_group("postgres")
def test_a_table_in_postgres() -> None:
    with running() as server:
        assert elute.check(server.load(LOG, "filtered_log"), **ASKED).to_dict() == expected()


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("write", [as_csv, as_ndjson])
def test_text_in_spark(write: Callable[[Path], object], tmp_path: Path) -> None:
    asked = {**ASKED, "where": "device = 'phone' OR CAST(day AS INT) = 2"}
    said = elute.check(write(tmp_path), engine="spark", **asked).to_dict()
    if write is as_csv:
        return_numbers(said)
    assert said == {**expected(), "filters": asked, "rows_filtered": None}
    with pytest.raises(elute.EluteError, match=r"TRY_CAST|may mean something else"):
        elute.check(write(tmp_path), engine="spark", where="strlen(device) = 1")


@pytest.fixture(params=[None, engine.LEAST], ids=["whole", "in parts"])
def memory(request: pytest.FixtureRequest) -> Iterator[int | None]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr("elute.cells.chunks.ITEMS_A_CHUNK", 5)
        yield request.param


def test_counts_remember_their_filters(memory: int | None, tmp_path: Path) -> None:
    elute.count(LOG, tmp_path / "all", **ASKED)
    assert elute.check(tmp_path / "all", memory=memory).to_dict() == expected()
    elute.count(LOG, tmp_path / "some", where=ASKED["where"])
    later = {name: ASKED[name] for name in ("max_position", "min_factor_impressions")}
    assert elute.check(tmp_path / "some", memory=memory, **later).to_dict() == expected()
    assert elute.check(tmp_path / "some", memory=memory, **ASKED).to_dict() == expected()
    elute.count(tmp_path / "some", tmp_path / "fewer", memory=memory, **later)
    assert elute.check(tmp_path / "fewer").to_dict() == expected()
    with pytest.raises(elute.EluteError, match=r"count the table again with `elute\.count` and `where=`"):
        elute.read_log(tmp_path / "some", where="day = 2")
    with pytest.raises(elute.EluteError, match="is left"):
        elute.read_log(tmp_path / "some", memory=memory, max_position=0)


@some(25)
@given(table=tables(), wish=wishes(), roles=columns(), in_parts=st.booleans())
def test_counts_are_filtered_as_the_log_is(
    table: pa.Table, wish: tuple[dict[str, Any], Keep], roles: dict[str, Any], in_parts: bool
) -> None:
    """Where nothing was left out as unusable: of that, counts keep the number only. Of pages they know nothing."""
    table = table.drop_null().filter(pa.compute.field("shown") > 0)
    roles = {**roles, "session": None}
    options = {**wish[0], "where": None}
    if roles["item"] is not None or not table.num_rows:
        return
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("elute.cells.chunks.ITEMS_A_CHUNK", 3)
        elute.count(table, f"{folder}/counts", **roles)
        direct = said_by(whole, table, **options, **roles)
        limit = {"memory": engine.LEAST} if in_parts else {}
        assert said_by(whole, f"{folder}/counts", **options, **limit) == direct


def test_counts_of_items_shown_for_several_queries_cannot_be_filtered(tmp_path: Path) -> None:
    elute.count(LOG, tmp_path / "counts", item="doc_id")
    with pytest.raises(elute.EluteError, match=r"filter while counting, with `elute\.count`"):
        elute.read_log(tmp_path / "counts", max_position=5)
    assert elute.read_log(tmp_path / "counts", max_position=13).survey.rows == LOG.num_rows


def test_counts_of_a_changed_log_are_still_refused(tmp_path: Path) -> None:
    pq.write_table(LOG, tmp_path / "log.parquet")
    elute.count(tmp_path / "log.parquet", tmp_path / "counts", max_position=9)
    elute.count(tmp_path / "counts", tmp_path / "fewer", max_position=8)
    pq.write_table(LOG.slice(1), tmp_path / "log.parquet")
    for folder in ("counts", "fewer"):
        with pytest.raises(elute.EluteError, match="has changed since it was counted"):
            elute.read_log(tmp_path / folder, max_position=5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_position": 3, "bias": "device"}, "none of the bias columns (device) is named as one of positions"),
        ({"max_position": 3, "bias": "position,slot"}, "2 bias columns may hold positions (position, slot)"),
        ({"max_position": 3, "bias": "rank"}, "column 'rank' is not a number in 800 rows, for instance 'first'"),
        ({"max_position": 0}, "none passes `max_position=`"),
        ({"min_factor_impressions": 10_000}, "none passes `min_factor_impressions=`"),
        ({"where": "day > 5"}, "none passes `where=`"),
        ({"max_position": -1}, "is -1; give a whole number from 0"),
        ({"max_position": 1.5}, "is 1.5; give a whole number from 0"),
        ({"min_factor_impressions": 0}, "is 0; give a whole number from 1"),
        ({"min_factor_impressions": True}, "is True; give a whole number from 1"),
        ({"where": 3}, "is 3; give an SQL expression"),
        ({"min_factor_impressions": 2, "impressions": "stamp"}, "holds DATE values where numbers are expected"),
    ],
)
@pytest.mark.parametrize("kind", ["duckdb", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))])
def test_wishes_that_cannot_be_met(
    options: dict[str, Any], says: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "spark":
        request.getfixturevalue("spark")
    n = LOG.num_rows
    table = LOG.append_column("slot", LOG["position"]).append_column("rank", pa.array(["first"] * n))
    path = tmp_path / "log.parquet"
    pq.write_table(table.append_column("stamp", pa.array([0] * n, pa.date32())), path)
    with pytest.raises(elute.EluteError) as refused, elute.read_log(path, engine=kind, **options) as log:
        elute.check(log)
    assert says in str(refused.value)


def test_positions_in_text_are_numbers(tmp_path: Path) -> None:
    """10 is beyond 9, which text is not."""
    for name, table in (("csv", LOG), ("parquet", LOG.set_column(2, "position", LOG["position"].cast(pa.string())))):
        path = tmp_path / f"log.{name}"
        pa.csv.write_csv(table, path) if name == "csv" else pq.write_table(table, path)
        with elute.read_log(path, max_position=10) as log:
            assert log.survey.factors.num_rows == 10


def test_rankings_in_ultras_format(tmp_path: Path) -> None:
    (tmp_path / "set.init_list").write_text("q1 3 4 5\nq2 6 7 -1\n")
    with elute.read_log(tmp_path, max_position=1, where="doc_id <> '3'") as log:
        assert (log.survey.rows, log.survey.filtered) == (3, 2)


def test_means_and_clusters_of_what_is_read(tmp_path: Path) -> None:
    """Also where their columns play no role, and in text."""
    for source in (as_csv(tmp_path), as_ndjson(tmp_path), LOG):
        with elute.read_log(source, where='"odd (name" = 1' if source is LOG else "\"odd (name\" IN ('1')") as log:
            means = log.engine.compute_means(("query_id",), "odd (name")
            assert set(means["odd (name"].to_pylist()) == {1.0}
    with elute.read_log(LOG, where="day = 2") as log:
        clusters = log.counts().read_clusters("day")
        assert clusters.values is not None
        assert clusters.values.to_pylist() == [2]
