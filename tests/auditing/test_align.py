"""Rows found by ids, against a dictionary."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute._util.matching import id_columns, match, refuse_repeats
from elute.errors import EluteError

PARTS = st.text("ab·\t\x00", max_size=2)
ROWS = st.lists(st.tuples(PARTS, PARTS, PARTS), max_size=12)


def columns(rows: list[tuple[str, ...]]) -> list[pa.Array]:
    return [pa.array([row[i] for row in rows], pa.string()) for i in range(3)]


@settings(deadline=None)
@given(ROWS, ROWS)
def test_as_a_dictionary_would_find_them(wanted: list[tuple[str, ...]], known: list[tuple[str, ...]]) -> None:
    first: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(known):
        first.setdefault(row, number)
    assert match(columns(wanted), columns(known)).tolist() == [first.get(row, -1) for row in wanted]


def test_numbers_and_text_are_the_same_id() -> None:
    numbers = pa.table({"q": pa.array([1, 2], pa.int16()), "d": pa.array(["x", "y"]).dictionary_encode()})
    text = pa.table({"q": ["2", "1"], "d": ["y", "x"]})
    assert match(id_columns(numbers, ("q", "d")), id_columns(text, ("q", "d"))).tolist() == [1, 0]


def test_a_repeat_is_refused_by_name() -> None:
    with pytest.raises(EluteError, match=r"labels\.csv: 1 rows repeat an item, for instance b·c·d"):
        refuse_repeats(columns([("a", "b", "c"), ("b", "c", "d"), ("b", "c", "d")]), "labels.csv")
    refuse_repeats(columns([("a", "b", "c"), ("b", "c", "d")]), "labels.csv")
