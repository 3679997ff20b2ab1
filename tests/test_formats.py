"""One log in every form it may come in gives one answer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import elute


def as_csv(table: pa.Table, path: Path, delimiter: str = ",") -> str:
    pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(delimiter=delimiter))
    return str(path)


def as_ndjson(table: pa.Table, path: Path) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return str(path)


def as_gzip(path: str) -> str:
    Path(path + ".gz").write_bytes(gzip.compress(Path(path).read_bytes()))
    return path + ".gz"


def as_database(table: pa.Table, path: Path) -> str:
    connection = duckdb.connect(str(path))
    connection.register("rows_in", table)
    connection.execute('CREATE SCHEMA logs; CREATE TABLE logs."my log" AS SELECT * FROM rows_in')
    connection.close()
    return f"duckdb://{path}#logs.my log"


def as_parts(table: pa.Table, folder: Path) -> str:
    (folder / "deep").mkdir(parents=True)
    pq.write_table(table.slice(0, 2), folder / "a.parquet")
    shuffled = table.slice(2).select(table.column_names[::-1])
    pq.write_table(shuffled, folder / "deep" / "b.parquet")
    return str(folder)


FORMS = {
    "arrow": lambda t, d: t,
    "pandas": lambda t, d: t.to_pandas(),
    "polars": lambda t, d: pl.from_arrow(t),
    "record batch": lambda t, d: t.to_batches()[0],
    "csv": lambda t, d: as_csv(t, d / "log.csv"),
    "csv.gz": lambda t, d: as_gzip(as_csv(t, d / "log.csv")),
    "tsv": lambda t, d: as_csv(t, d / "log.tsv", "\t"),
    "semicolons": lambda t, d: as_csv(t, d / "log.csv", ";"),
    "ndjson": lambda t, d: as_ndjson(t, d / "log.ndjson"),
    "ndjson.gz": lambda t, d: as_gzip(as_ndjson(t, d / "log.ndjson")),
    "path object": lambda t, d: Path(as_csv(t, d / "log.csv")),
    "duckdb table": lambda t, d: as_database(t, d / "x.db"),
    "folder of Parquet": lambda t, d: as_parts(t, d / "parts"),
    "glob": lambda t, d: as_parts(t, d / "parts") + "/**/*.parquet",
    "list of paths": lambda t, d: [as_parts(t, d / "parts") + "/a.parquet", str(d / "parts" / "deep" / "b.parquet")],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_form_does_not_matter(form: str, chain: pa.Table, tmp_path: Path) -> None:
    with elute.read_log(FORMS[form](chain, tmp_path)) as log:
        check = elute.check(log)
        fields = check.to_dict()
        items = {tuple(row.values()) for row in check.counts.items.to_pylist()}
    assert (fields["components"], fields["component_sizes"]) == (3, [2, 2, 1])
    assert (fields["impressions"], fields["clicks"], fields["items"], fields["cells"]) == (6, 3, 4, 6)
    assert (fields["queries"], fields["rankable_queries"]) == (3, 3)
    assert fields["component_details"][0]["example_factors"] == [{"position": 1}, {"position": 2}]
    assert items == {("q1", "a"), ("q1", "b"), ("q2", "c"), ("q3", "d")}


@pytest.mark.parametrize(
    "clicks", [[True, False, False, True, True, False], [1.0, 0, 0, 1, 1, 0], ["1", "0", "0", "true", "TRUE", "false"]]
)
def test_clicks_may_be_written_in_several_ways(clicks: list[object], chain: pa.Table) -> None:
    log = chain.set_column(3, "click", pa.array(clicks))
    assert elute.check(elute.read_log(log)).to_dict()["clicks"] == 3


def test_ids_of_csv_stay_text(tmp_path: Path) -> None:
    """007 and 7 are two documents; so are lines that look like comments, and quoted ids with newlines."""
    path = tmp_path / "log.csv"
    path.write_text('query_id,doc_id,position,click\nq,007,1,0\nq,7,10,1\n#q,"a,\n""b""",2,0\n')
    check = elute.check(elute.read_log(path))
    assert check.to_dict()["items"] == 3
    assert check.components == 3
    assert {row["doc_id"] for row in check.counts.items.to_pylist()} == {"007", "7", 'a,\n"b"'}
    assert check.counts.factors["position"].to_pylist() == [1, 2, 10]  # numbers, in the order of numbers


def test_bias_values_of_csv_stay_text_where_numbers_would_lose_something(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("query_id,doc_id,position,click\nq,a,1,0\nq,b,01,1\n")
    assert elute.check(elute.read_log(path)).counts.factors["position"].to_pylist() == ["01", "1"]


def test_ids_of_json_that_look_like_dates_and_uuids_stay_text(tmp_path: Path) -> None:
    rows = [
        {"query_id": "2020-01-01", "doc_id": "0B0E0D1C-7f0b-4c3e-9a53-3c6f6d7a1b2c", "position": 1, "click": 0},
        {"query_id": "2020-01-01", "doc_id": "0b0e0d1c-7f0b-4c3e-9a53-3c6f6d7a1b2c", "position": 2, "click": True},
    ]
    path = as_ndjson(pa.Table.from_pylist([]), tmp_path / "log.ndjson")
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert elute.check(elute.read_log(path)).to_dict()["items"] == 2


def test_aggregated_rows_equal_the_rows_they_count(chain: pa.Table) -> None:
    rows = pa.concat_tables([chain, chain, chain.slice(0, 2)])
    counted = (
        rows.append_column("shown", pa.array([1] * rows.num_rows))
        .group_by(["query_id", "doc_id", "position"])
        .aggregate([("click", "sum"), ("shown", "sum")])
    )
    single = elute.check(elute.read_log(rows)).to_dict()
    several = elute.check(elute.read_log(counted, click="click_sum", impressions="shown_sum")).to_dict()
    for field in set(single) - {"rows", "columns"}:
        assert single[field] == several[field], field


def test_rows_without_an_impression_are_no_cells(chain: pa.Table) -> None:
    log = elute.read_log(
        chain.append_column("shown", pa.array([2, 0, 1, 1, 1, 1])).set_column(3, "click", pa.array([1, 0, 0, 1, 1, 0])),
        impressions="shown",
    )
    fields = elute.check(log).to_dict()
    assert (fields["cells"], fields["factors"], fields["components"]) == (5, 4, 3)
    assert {"code": "no_impression", "count": 1} in [
        {key: w[key] for key in ("code", "count")} for w in fields["warnings"]
    ]


def test_an_item_may_be_the_identity_of_feature_columns() -> None:
    log = pd.DataFrame(
        {
            "query_id": [1, 1, 2, 2],
            "feature_1": [0.5, 0.25, 0.5, 0.125],
            "feature_2": [-0.0, 1.0, 0.0, 3.0],
            "position": [1, 2, 2, 3],
            "click": [0, 1, 0, 0],
        }
    )
    fields = elute.check(elute.read_log(log, item="feature_*")).to_dict()
    assert fields["columns"]["item"] == ["feature_1", "feature_2"]
    assert fields["items"] == 3  # the first and third row are one item, shown for two queries
    assert fields["component_sizes"] == [2, 1]
    assert fields["rankable_queries"] == 1


def test_a_log_without_queries_still_gets_a_verdict(chain: pa.Table) -> None:
    fields = elute.check(elute.read_log(chain.drop_columns("query_id"), item="doc_id")).to_dict()
    assert fields["components"] == 3
    assert fields["queries"] is None
    assert fields["rankable_share"] is None


def test_a_thing_that_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(elute.EluteError, match="cannot read a log from dict"):
        elute.read_log({"query_id": [1]})
