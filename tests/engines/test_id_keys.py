"""Keys of ids: SipHash against its definition; ids made up to collide; no result depends on the key that was drawn."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elute
from elute.engines import counter, id_keys
from elute.engines.duckdb.id_columns import id_sql
from elute.engines.id_keys import IdHash, KeyRoom
from elute.engines.partitioned import engine as partitioned
from elute.kernels import rows
from reference.crafted_ids import craft_pairs
from reference.siphash import WORD, siphash_1_3, words_of

KEY = 0x0706050403020100, 0x0F0E0D0C0B0A0908

texts = st.lists(st.tuples(st.binary(max_size=30), st.integers(0, WORD)), min_size=1, max_size=20)


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="this Python hashes bytes otherwise")
def test_the_reference_is_the_hash_that_python_has() -> None:
    """Which has the length, modulo 256, in the last word; with this seed its key is 0."""
    values = [bytes(range(n)) for n in range(1, 20)]
    code = "print([hash(bytes(range(n))) for n in range(1, 20)])"
    ran = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True
    )
    for value, hashed in zip(values, json.loads(ran.stdout), strict=True):
        whole, rest = divmod(len(value), 8)
        last = int.from_bytes(value[8 * whole :], "little") | len(value) << 56
        assert siphash_1_3((0, 0), [*words_of(value)[:whole], last]) == hashed & WORD, rest


@given(texts)
def test_keys_are_siphash_of_the_columns(values: list[tuple[bytes, int]]) -> None:
    text, number = (list(column) for column in zip(*values, strict=True))
    columns = [pa.array(text, pa.binary()), pa.array(number, pa.uint64())]
    found = IdHash(KEY).hash_nested(columns[0], columns[1:], by_inner=True)
    assert found.outer.tolist() == [siphash_1_3(KEY, words_of(one)) for one in text]
    assert found.keys.tolist() == [siphash_1_3(KEY, words_of(a) + words_of(b)) for a, b in values]
    alone = IdHash(KEY).hash_ids(columns)
    assert np.array_equal(alone.keys, found.keys)
    assert np.array_equal(alone.places, found.places)
    cut = IdHash(KEY).hash_ids([column.slice(1) for column in columns])
    assert np.array_equal(cut.keys, found.keys[1:])
    wide = IdHash(KEY).hash_ids([columns[0].cast(pa.large_binary()), columns[1]])
    assert np.array_equal(wide.keys, found.keys)


@given(texts)
def test_places_do_not_depend_on_the_key(values: list[tuple[bytes, int]]) -> None:
    columns = [pa.array([a for a, _ in values], pa.binary()), pa.array([b for _, b in values], pa.uint64())]
    one, other = (IdHash().hash_ids(columns) for _ in range(2))
    assert np.array_equal(one.places, other.places)
    distinct = len(set(values))
    assert len(set(one.places.tolist())) == distinct
    assert len(set(one.keys.tolist())) == distinct


def test_blocks_of_rows_are_hashed_alike() -> None:
    """More rows than a kernel takes at a time, against a few at a time and against the reference; in memory that is
    used again, too, also where fewer rows come after more."""
    rows = 2 * id_keys._BLOCK + 5
    text = [f"{n:x}" * (n % 4) for n in range(rows)]
    columns = [pa.array(text), pa.array(range(rows), pa.uint64())]
    whole, room = IdHash(KEY).hash_nested(columns[0], columns[1:], by_inner=False), KeyRoom()
    assert whole.outer[-9:].tolist() == [siphash_1_3(KEY, words_of(one.encode())) for one in text[-9:]]
    for begin, end in ((0, rows), *((begin, begin + 100) for begin in range(0, rows, 100))):
        some = [column.slice(begin, end - begin) for column in columns]
        for held in (None, room):
            found = IdHash(KEY).hash_nested(some[0], some[1:], False, held)
            for one, other in zip(whole, found, strict=True):
                assert np.array_equal(one[begin:end], other)


def test_ids_made_up_to_collide_do_not() -> None:
    """Forty items, each shown under its own factor. By DuckDB's hash they are one, and connect all factors."""
    pairs = craft_pairs(40)
    hashed = (
        duckdb.connect()
        .execute("SELECT " + ", ".join(f"hash({q}::BIGINT, {d}::BIGINT)" for q, d in pairs))
        .fetchall()[0]
    )
    assert len(set(hashed)) == 1
    log = pa.table(
        {
            "query_id": [query for query, _ in pairs],
            "doc_id": [doc for _, doc in pairs],
            "position": list(range(40)),
            "click": [0] * 40,
        }
    )
    each: list[dict[str, Any]] = [{}, {"memory": partitioned.LEAST}, {"exact": True}]
    for options in each:
        found = elute.check(elute.read_log(log, **options)).to_dict()
        assert (found["items"], found["components"]) == (40, 40)


def test_pages_made_up_to_collide_are_no_repeats() -> None:
    """Session and document are such pairs."""
    sessions, docs = zip(*craft_pairs(40), strict=True)
    columns = {"session_id": sessions, "doc_id": docs, "position": [1, 2] * 20, "click": [0, 1] * 20}
    with elute.read_log(pa.table(columns), item="doc_id", session="session_id") as log:
        assert log.engine.count_repeats_on_page(log.roles) == 0


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Queries of very different sizes, items with text and numbers, some of them in several queries."""
    rng = np.random.default_rng(8)
    n = 6_000
    query = (rng.random(n) ** 3 * 60).astype(int)
    doc, position = rng.integers(0, 30, n), rng.integers(1, 6, n)
    table = {"query_id": [f"q{one}" for one in query], "doc_id": doc, "position": position}
    pq.write_table(pa.table({**table, "click": (rng.random(n) < 0.4 / position).astype(int)}), tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


@pytest.mark.parametrize("item", [None, "doc_id"])
@pytest.mark.parametrize("options", [{}, {"memory": partitioned.LEAST}, {"exact": True}])
def test_no_result_depends_on_the_key(
    log: Path, item: str | None, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many partitions, of which the largest are counted in splits; twice, with a key of its own each time."""
    monkeypatch.setattr(rows, "ROWS_IN_ONE", 0)
    monkeypatch.setattr(rows, "ROWS_A_PARTITION", 300)
    monkeypatch.setattr(counter, "ROWS_A_SPLIT", 200)
    monkeypatch.setattr(partitioned, "BYTES_A_ROW", (partitioned.LEAST - partitioned.BASE) // 3_000)
    found = []
    for _ in range(2):
        with elute.read_log(str(log), item=item, **options) as opened:
            verdict = elute.check(opened).to_dict()
            counts = opened.counts()
            cells = [getattr(counts, name).tolist() for name in ("offsets", "factor", "impressions", "clicks")]
            found.append((verdict, cells, elute.PBM().fit(opened).propensity_.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("TINYINT", "range(-128, 128)"),
        ("BIGINT", "[-9223372036854775808, -1, 0, 1, 9223372036854775807]"),
        ("DOUBLE", "[0.0, 1.5, -1.5, 1e300, 'inf', '-inf', 'nan', 5e-324]"),
        ("FLOAT", "[0.0, 1.5, -1.5, 'nan', 1e-45]"),
        ("DECIMAL(18,3)", "[0, 1, -1, 123.456]"),
        ("TIMESTAMP_NS", "['2020-01-01 00:00:00.000000001', '2020-01-01']"),
        ("HUGEINT", "[0, 1, 18446744073709551616, -1]"),
        ("UUID", "['00000000-0000-0000-0000-000000000001', '10000000-0000-0000-0000-000000000001']"),
        ("BLOB", "['a', 'b', 'a\\x00', '']"),
        ("VARCHAR", "['a', 'b', 'a ', '']"),
    ],
)
def test_different_values_have_different_keys(kind: str, values: str) -> None:
    source = f"SELECT DISTINCT unnest({values})::{kind} AS id"
    columns = duckdb.connect().sql(f"SELECT {id_sql('id', kind)} AS k FROM ({source}) ORDER BY 1").to_arrow_table()["k"]
    keys = IdHash().hash_ids([columns.combine_chunks()]).keys
    assert len(set(keys.tolist())) == len(keys) > 1


def test_minus_zero_is_zero() -> None:
    both = duckdb.connect().sql(
        f"SELECT {id_sql('id', 'DOUBLE')} AS k FROM (VALUES (0.0::DOUBLE), ('-0.0'::DOUBLE)) AS t(id)"
    )
    assert len(set(both.to_arrow_table()["k"].to_pylist())) == 1


def test_no_two_runs_share_a_key() -> None:
    column = [pa.array([1], pa.uint64())]
    assert len({int(IdHash().hash_ids(column).keys[0]) for _ in itertools.repeat(None, 50)}) == 50
