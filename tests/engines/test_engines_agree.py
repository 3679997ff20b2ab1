"""Every way to count a log gives the same answer: whole, from a folder of counts, in passes, and in Spark."""

from __future__ import annotations

import json
import math
import operator
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from test_against_reference import ODD_INT64, ODD_TEXT, ODD_UINT64, Case, logs, plain

import elute
from elute.checking import measured
from elute.engines.partitioned import engine
from elute.engines.partitioned.row_files import RowFiles

Reader = Callable[..., elute.ClickLog]


def whole(path: str, **roles: Any) -> elute.ClickLog:
    return elute.read_log(path, **roles)


def by_value(path: str, **roles: Any) -> elute.ClickLog:
    return elute.read_log(path, exact=True, **roles)


def from_counts(path: str, **roles: Any) -> elute.ClickLog:
    """Counted first; the folder knows the roles."""
    return elute.read_log(counts_of(elute.read_log(path, **roles)))


def from_counts_in_parts(path: str, **roles: Any) -> elute.ClickLog:
    """Counted partition by partition, and read chunk by chunk."""
    return elute.read_log(counts_of(in_passes(path, **roles)), memory=engine.LEAST)


def counts_of(log: elute.ClickLog) -> Path:
    with log:
        folder = Path(str(log.engine.label)).with_suffix(".counts")
        log.save_counts(folder)
    return folder


def in_passes(path: str, **roles: Any) -> elute.ClickLog:
    """With so little memory that there are several passes even over a few rows."""
    return elute.read_log(path, memory=engine.LEAST, **roles)


def in_spark(path: str, **roles: Any) -> elute.ClickLog:
    return elute.read_log(path, engine="spark", **roles)


QUICK = [by_value, from_counts, in_passes, from_counts_in_parts]
SPARK = pytest.param(in_spark, marks=pytest.mark.xdist_group("spark"))
"""All tests in Spark run in one process, so that there is one Spark."""


@pytest.fixture
def tiny_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass for every ten rows."""
    monkeypatch.setattr(engine, "BYTES_A_ROW", (engine.LEAST - engine.BASE) // 30)


@pytest.fixture
def some_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass for about 40,000 rows."""
    monkeypatch.setattr(engine, "BYTES_A_ROW", 2_000)


def verdict(read: Reader, path: str, roles: dict[str, Any]) -> dict[str, Any]:
    with read(path, **roles) as log:
        fields = elute.check(log).to_dict()
    if read in (by_value, handed_over_by_value):
        assert fields.pop("collision_bound") == 0
    return fields


def assert_alike(read: Reader, table: pa.Table, roles: dict[str, Any]) -> None:
    """The whole JSON, or the refusal, is the embedded engine's."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/log.parquet"
        pq.write_table(table, path)
        try:
            expected = verdict(whole, path, roles)
        except elute.EluteError as error:
            with pytest.raises(elute.EluteError) as refused:
                verdict(read, path, roles)
            assert str(refused.value) == str(error)
            return
        found = verdict(read, path, roles)
        if read in (by_value, handed_over_by_value):
            del expected["collision_bound"]
        if read in (from_counts, from_counts_in_parts):
            expected = expect_of_counts(path, roles, found)
        assert to_text(found) == to_text(expected)


def to_text(fields: dict[str, Any]) -> str:
    """As JSON, in which 0.0 and -0.0 differ and NaN is as good as NaN."""
    return json.dumps(fields, sort_keys=True, default=str)


def expect_of_counts(path: str, roles: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Counts do not tell which clicks are of one session, nor of one query where items have several. They give what the
    log gives without a look at these, and say that they do. Coarser items are not proposed: they take another count."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measured, "CLUSTERED", -1)
        expected = verdict(whole, path, roles)
    if expected["precision"] is not None:
        notes, own = expected["precision"]["notes"], found["precision"]["notes"]
        blind = [note for note in own if note.startswith("counts do not tell which clicks are of one ")]
        assert len(blind) == sum(note.startswith("the log is too large to look at how") for note in notes)
        expected["precision"]["notes"] = [*blind, *notes[len(blind) :]]
    expected["suggestions"] = [one for one in expected["suggestions"] if one["option"] != "item"]
    return expected


def roles_of(case: Case) -> dict[str, Any]:
    roles: dict[str, Any] = {"query": "query", "doc": "doc", "bias": case.bias}
    return roles | {name: of for name, of in (("item", case.item), ("impressions", case.impressions)) if of}


def some(examples: int, asked: str = "ELUTE_FUZZ_LOGS") -> settings:
    """So many logs, or as many as `make fuzz-engines` asks for."""
    return settings(
        max_examples=max(examples, int(os.environ.get(asked, "0"))),
        deadline=None,
        phases=[phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)],  # each log takes .1 s and more
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    )


ODD_FLOATS = (0.0, -0.0, math.nan, -math.nan, 1.5, -1.5, math.inf, 5e-324)


@st.composite
def odd_logs(draw: st.DrawFn) -> Case:
    """Any log, in some of which an id or a bias column has numbers that are equal though their bits are not."""
    case = draw(logs(nulls=True))
    column = draw(st.sampled_from([None, "query", "doc", "position"]))
    if column is None:
        return case
    kind = draw(st.sampled_from([pa.float32(), pa.float64()]))
    drawn = [draw(st.sampled_from(ODD_FLOATS)) for _ in case.rows]
    rows = [{**row, column: value} for row, value in zip(case.rows, drawn, strict=True)]
    return replace(case, rows=rows, types={**case.types, column: kind})


@pytest.mark.usefixtures("tiny_passes")
@pytest.mark.parametrize("read", QUICK)
@some(40)
@given(case=odd_logs())
@example(case=plain([("q", text, text) for text in ODD_TEXT], "text"))
@example(case=plain([(1, number, number) for number in ODD_UINT64], "uint64"))
@example(case=plain([(1, None, 1), (1, 1, None)]))
@example(case=plain([(n % 7, n, n % 30) for n in range(90)], clicks="counts"))
def test_random_logs_alike(read: Reader, case: Case) -> None:
    assert_alike(read, case.table, roles_of(case))


@pytest.mark.usefixtures("tiny_passes")
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_an_id_that_is_no_number_beside_one_other(kind: pa.DataType) -> None:
    """DuckDB's statistics leave NaN out, and a column of one other value is not for that a constant. Under some keys
    of the run both ids fall into one partition."""
    columns = {"query": pa.array([math.nan, 1.5], kind), "doc": ["d", "d"], "position": [1, 2], "click": [0, 1]}
    for _ in range(8):
        assert_alike(from_counts_in_parts, pa.table(columns), {"query": "query", "doc": "doc", "bias": ["position"]})


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
@some(4, "ELUTE_FUZZ_SPARK_LOGS")
@given(case=odd_logs())
@example(case=plain([("q", text, text) for text in ODD_TEXT], "text"))
@example(case=plain([(1, number, number) for number in ODD_INT64 + ODD_UINT64[:3]], "int64"))
@example(case=plain([(n % 7, n, n % 30) for n in range(90)], clicks="counts"))
@example(case=plain([(None, 1, 1)]))
def test_random_logs_alike_in_spark(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forests of the partitions are merged on the executors first."""
    monkeypatch.setattr("elute.engines.spark.engine.FORESTS", 1)
    for read in (in_spark, handed_over_by_value):
        assert_alike(read, case.table, roles_of(case))


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_queries_are_the_same_by_value_in_spark(demo_logs: Path) -> None:
    """Each lies in all partitions."""
    for item in (None, "doc_id"):
        roles: dict[str, Any] = {"item": item, "bias": ["query_id", "position"]}
        assert_alike(handed_over_by_value, pq.read_table(demo_logs / "broken.parquet"), roles)


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_a_busy_query_of_unsigned_numbers_goes_by_its_number() -> None:
    """Spark reads such ids as decimals."""
    columns = {"query": pa.array([1, 2**64 - 2, 1], pa.uint64()), "doc": [0, 8, 0], "position": [1, 1, 2]}
    table = pa.table({**columns, "click": [1, 0, 0]})
    assert_alike(in_spark, table, {"query": "query", "doc": "doc", "bias": "position"})


BIASES = ["position", ["query_id", "position"]]


@pytest.mark.usefixtures("some_passes")
@pytest.mark.parametrize("read", [*QUICK, SPARK])
def test_yandex_alike(read: Reader, data: Path, request: pytest.FixtureRequest) -> None:
    if read is in_spark:
        request.getfixturevalue("spark")
    log = pq.read_table(data / "yandex" / "train.parquet")
    for bias in BIASES[:1] if read is in_spark else BIASES:
        assert_alike(read, log, {"bias": bias, "session": "session_id"})
    assert_alike(read, log, {"bias": ["query_id", "position"], "item": "doc_id"})


def kept_in_spark(path: str, **roles: Any) -> elute.ClickLog:
    """With no memory here for cells, so that they stay with the executors."""
    return elute.read_log(path, engine="spark", memory=1, **roles)


def kept_by_value(path: str, **roles: Any) -> elute.ClickLog:
    return elute.read_log(path, engine="spark", memory=1, exact=True, **roles)


def handed_over_by_value(path: str, **roles: Any) -> elute.ClickLog:
    return elute.read_log(path, engine="spark", exact=True, **roles)


@pytest.mark.usefixtures("some_passes")
@pytest.mark.parametrize(
    ("read", "prior"),
    [
        (from_counts, "none"),
        (from_counts_in_parts, "none"),
        (in_passes, "none"),
        (in_passes, "beta"),
        *(
            pytest.param(reader, prior, marks=pytest.mark.xdist_group("spark"))
            for reader, prior in (
                (in_spark, "none"),
                (handed_over_by_value, "none"),
                (kept_in_spark, "beta"),
                (kept_by_value, "none"),
            )
        ),
    ],
)
def test_a_fit_does_not_depend_on_where_the_log_was_counted(
    read: Reader,
    prior: Any,
    data: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Items come in another order, so that sums differ in their last digits. A fit from partition to partition stops at
    another point as close to the maximum: within 1e-4 standard errors. With a prior, its two numbers are found to a
    percent."""
    if read not in (from_counts, from_counts_in_parts, in_passes):
        request.getfixturevalue("spark")
    if read is kept_by_value:
        monkeypatch.setattr("elute.engines.spark.partitions.ANSWERS", 1)  # merged on the executors first
    path = str(tmp_path / "log.parquet")
    pq.write_table(pq.read_table(data / "yandex" / "test.parquet"), path)
    order = [("query_id", "ascending"), ("doc_id", "ascending")]
    with whole(path) as first, read(path) as second:
        fits = [elute.PBM(relevance_prior=prior).fit(log) for log in (first, second)]
        one, other = (fit.relevance_.sort_by(order) for fit in fits)
        partitions = second.partitions()
        assert (partitions is not None) == (read not in (from_counts, in_spark, handed_over_by_value))
        if partitions is not None:
            numbers = partitions.map_reduce(lambda partition: [partition.number], operator.add)
            assert len(numbers) == len(set(numbers)) > 1
    estimated = ["relevance", "log_se", "shape", "rate", "evidence"]
    assert one.column_names == other.column_names
    assert one.drop_columns(estimated).equals(other.drop_columns(estimated))
    close = 1e-3 if prior == "beta" else 1e-6 if partitions is None else 1e-5
    for column in estimated:
        np.testing.assert_allclose(other[column].to_numpy(), one[column].to_numpy(), rtol=close)
    apart = np.abs(np.log(fits[1].propensity_ / fits[0].propensity_))
    assert (apart <= (1e-9 if partitions is None else 1e-4 * np.maximum(fits[0].propensity_log_se_, 1e-5))).all()


@pytest.mark.usefixtures("some_passes")
@pytest.mark.parametrize(
    "read", [in_passes, from_counts_in_parts, pytest.param(kept_in_spark, marks=pytest.mark.xdist_group("spark"))]
)
def test_subsets_and_samples_where_the_cells_are(read: Reader, data: Path, request: pytest.FixtureRequest) -> None:
    """Subsets come out the same. Samples are others, but the whole log is one of them, and the expected number of
    factors in a sample is Σ 1 − (1 − share)ⁿ."""
    if read is kept_in_spark:
        request.getfixturevalue("spark")
    path, bias = str(data / "yandex" / "train.parquet"), ["query_id", "position"]
    with whole(path, bias=bias) as first, read(path, bias=bias) as second:
        one, other = (elute.check(log, explore=True, curve=True) for log in (first, second))
        shown = first.survey.impressions
    assert one.subsets == other.subsets
    assert one.curve is not None
    assert other.curve is not None
    assert one.curve[-1] == other.curve[-1]
    for point in other.curve[:-1]:
        kept = 1 - (1 - point.share) ** shown
        error = np.sqrt((kept * (1 - kept)).sum() / point.samples)
        assert abs(point.factors - kept.sum()) < 5 * error + 1e-9


@pytest.mark.usefixtures("tiny_passes")
def test_ids_of_any_type_come_back_as_they_were(tmp_path: Path) -> None:
    """Types that Parquet does not have, too."""
    import duckdb

    place = tmp_path / "log.db"
    with duckdb.connect(str(place)) as connection:
        connection.execute(
            "CREATE TABLE log AS SELECT n % 5 AS query_id, (n::HUGEINT + 700000000000000000000) AS big, "
            "('00000000-0000-0000-0000-' || lpad(n::VARCHAR, 12, '0'))::UUID AS id, "
            "(CASE n % 2 WHEN 0 THEN 'a' ELSE 'b' END)::ENUM ('a', 'b') AS kind, "
            "TIMESTAMPTZ '2020-01-01 00:00:00+00' + to_days(n::INTEGER) AS day, "
            "t AS position, (n + t) % 3 = 0 AS click "
            "FROM range(40) rows(n), range(2) factors(t)"
        )
    roles: dict[str, Any] = {"item": ["big", "id", "kind", "day"], "query": "query_id"}
    source = f"duckdb://{place}#log"
    with whole(source, **roles) as first, in_passes(source, **roles) as second:
        one, other = (elute.PBM(relevance_prior="none").fit(log).relevance_ for log in (first, second))
        assert one.schema == other.schema
        names = roles["item"]
        assert one.select(names).sort_by("big").to_pylist() == other.select(names).sort_by("big").to_pylist()


@pytest.mark.usefixtures("some_passes")
def test_a_check_after_the_counts_were_fetched(data: Path) -> None:
    """The structure then comes from the counts, and so do the queries."""
    path = str(data / "yandex" / "test.parquet")
    roles: dict[str, Any] = {"bias": ["query_id", "position"]}
    with in_passes(path, **roles) as log:
        log.counts()
        assert elute.check(log).to_dict() == verdict(whole, path, roles)


@pytest.mark.usefixtures("some_passes")
def test_rows_are_put_aside_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a check comes before the cells are asked for, or after, as in a fit."""
    path, made = str(data / "yandex" / "test.parquet"), list[int]()
    names = ("items", "cells", "components", "queries", "rankable_queries")
    with whole(path) as log:
        expected = elute.check(log).to_dict()
    make = RowFiles.__init__

    def count(files: RowFiles, folder: Path, partitions: int) -> None:
        made.append(partitions)
        make(files, folder, partitions)

    monkeypatch.setattr(RowFiles, "__init__", count)
    for cells_first in (True, False):
        with in_passes(path) as log:
            if cells_first:
                log.partitions()
            found = elute.check(log).to_dict()
            elute.PBM().fit(log)
        assert [found[name] for name in names] == [expected[name] for name in names]
    assert len(made) == 2
