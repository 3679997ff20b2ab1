"""JSON at the door: what passes, and what is said of the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elute.door.fields import (
    Damaged,
    Kind,
    anything,
    choice,
    each,
    flag,
    mapping,
    maybe,
    number,
    plain,
    record,
    scalar,
    text,
    whole,
)
from elute.door.json_file import parse_json, read_json
from elute.errors import EluteError

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def passes(kind: Kind, value: Any) -> bool:
    try:
        kind(value, "it")
    except Damaged:
        return False
    return True


def leaves(value: Any) -> list[Any]:
    if isinstance(value, list | dict):
        return [leaf for one in (value.values() if isinstance(value, dict) else value) for leaf in leaves(one)]
    return [value]


@given(value=ANY)
def test_kinds_are_what_they_say(value: Any) -> None:
    """Each against its definition in Python."""
    exact = type(value)
    counts = exact is int and 0 <= value < 2**63
    real = exact in (int, float) and abs(value) < float("inf") and (exact is float or abs(value) < 2**63)
    assert passes(text, value) == (exact is str)
    assert passes(flag, value) == (exact is bool)
    assert passes(whole(), value) == counts
    assert passes(whole(3, 5), value) == (exact is int and 3 <= value <= 5)
    assert passes(number(), value) == real
    assert passes(number(0, 1), value) == (real and 0 <= value <= 1)
    assert passes(maybe(whole()), value) == (counts or value is None)
    assert passes(scalar, value) == (value is None or exact in (str, bool) or real)
    assert passes(each(text), value) == (exact is list and all(type(one) is str for one in value))
    assert passes(mapping(flag), value) == (exact is dict and all(type(one) is bool for one in value.values()))
    assert passes(plain, value) == all(passes(scalar, leaf) for leaf in leaves(value))
    assert passes(anything, value)


def test_records() -> None:
    kind = record({"a": whole()}, {"b": text})
    assert passes(kind, {"a": 1}) and passes(kind, {"a": 1, "b": "x", "c": None})
    assert not passes(kind, {"b": "x"}) and not passes(kind, {"a": 1, "b": 2}) and not passes(kind, [1])
    closed = record({"a": whole()}, closed=True)
    assert passes(closed, {"a": 1}) and not passes(closed, {"a": 1, "c": None})
    assert not passes(each(text, least=1), []) and not passes(each(text, unique=True), ["a", "a"])
    assert passes(choice("x", "y"), "x") and not passes(choice("x", "y"), "z") and not passes(choice("x"), ["x"])


def test_where_it_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"steps": [{"cost": 1}, {"cost": -2}]}')
    kind = record({"steps": each(record({"cost": number(0)}))})
    with pytest.raises(EluteError, match=r"plan.json is not a plan \('steps\[1\].cost' is -2, not 0 or more\); again"):
        read_json(path, kind, "a plan", "again")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not text in UTF-8"),
        (b'"\\ud800"', "not text in UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
        (b"1" * 5000, "not JSON"),
    ],
)
def test_what_is_not_json(tmp_path: Path, written: bytes, said: str) -> None:
    path = tmp_path / "it.json"
    path.write_bytes(written)
    with pytest.raises(Damaged, match=said):
        parse_json(path, anything)


def test_numbers_that_json_cannot_write_are_not_numbers(tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    for written in ("NaN", "Infinity", "-Infinity", "1e999", str(10**30)):
        path.write_text(f"[{written}]")
        with pytest.raises(Damaged):
            parse_json(path, each(number()))


def test_a_file_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elute.door.json_file._MOST", 100)
    path = tmp_path / "it.json"
    path.write_text(json.dumps("x" * 200))
    with pytest.raises(Damaged, match="more than 100 bytes"):
        parse_json(path, anything)
