"""Folders of parts: whatever is appended, replaced and dropped, they are read as the log of the rows that remain."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_against_reference import ODD_TEXT, Case, plain
from test_engines_agree import expect_of_counts, odd_logs, roles_of, some, to_text, verdict

import elute
from elute.engines.partitioned import engine as partitioned
from elute.engines.parts import adding, reading


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges, groups and blocks of a few items, which rows as few as these would not have."""
    monkeypatch.setattr(reading, "ITEMS_A_RANGE", 4)
    monkeypatch.setattr(reading, "CELLS_A_CHUNK", 5)
    monkeypatch.setattr(reading, "ITEMS_A_CHUNK", 5)
    monkeypatch.setattr(adding, "MANY", 3)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Case, list[tuple[str, list[int]]], str | None, int | None]:
    """A log, and what happens to it: rows by key, in the order in which they are appended, the same key perhaps again;
    what is dropped at last; and how many of the last parts are read."""
    case = draw(odd_logs())
    keys = draw(st.lists(st.sampled_from(["1", "2", "3", "10"]), min_size=1, max_size=6))
    parts = [(key, [row for row in range(len(case.rows)) if draw(st.booleans())]) for key in keys]
    drop = draw(st.sampled_from([None, "day < 2", "day >= 3", "day != 10 and day > 1"]))
    return case, parts, drop, draw(st.sampled_from([None, 1, 2]))


DROPS: dict[str | None, set[str]] = {
    None: set(),
    "day < 2": {"1"},
    "day >= 3": {"3", "10"},
    "day != 10 and day > 1": {"2", "3"},
}
TEXTS = plain([("q", text, text) for text in ODD_TEXT], "text")
ORDER = ["1", "2", "3", "10"]


@pytest.mark.usefixtures("small")
@some(20)
@given(history=histories(), by_value=st.booleans())
@example(history=(TEXTS, [("1", [*range(40)]), ("2", [*range(61)])], None, None), by_value=False)
@example(history=(plain([(1, 1, 1), (2, 1, 1), (1, 1, 2)]), [(k, [0, 1, 2]) for k in ORDER], None, None), by_value=True)
def test_any_history_is_the_log_of_the_rows_that_remain(
    history: tuple[Case, list[tuple[str, list[int]]], str | None, int | None], by_value: bool
) -> None:
    case, parts, drop, last = history
    roles, left = roles_of(case), {}
    with tempfile.TemporaryDirectory() as place:
        for number, (key, rows) in enumerate(parts):
            day = f"{place}/{number}.parquet"
            pq.write_table(case.table.take(pa.array(rows, pa.int64())), day)
            dropped = drop if number == len(parts) - 1 else None
            try:
                elute.count(day, f"{place}/parts", append=True, key=f"day={key}", drop=dropped, exact=by_value, **roles)
            except elute.EluteError as error:
                assert "has no rows" in str(error) or "no usable row" in str(error)
                continue
            left[key] = rows
            left = {kept: own for kept, own in left.items() if dropped is None or kept not in DROPS[drop]}
        read = [key for key in ORDER if key in left][-last if last else 0 :]
        if not read:
            if Path(f"{place}/parts/parts.json").exists():
                with pytest.raises(elute.EluteError, match="has no part"):
                    elute.read_log(f"{place}/parts", last=last)
            return
        remaining = [row for key in read for row in left[key]]
        pq.write_table(case.table.take(pa.array(remaining, pa.int64())), f"{place}/log.parquet")
        with elute.read_log(f"{place}/parts", last=last) as log:
            found = elute.check(log).to_dict()
            log.save_counts(f"{place}/merged")
        expected = expect_of_counts(f"{place}/log.parquet", {**roles, "exact": by_value}, found)
        assert to_text(found) == to_text(expected)
        by_range, of_one = (
            verdict(partial(elute.read_log, memory=partitioned.LEAST), f"{place}/{name}", window)
            for name, window in (("parts", {"last": last}), ("merged", {}))
        )
        assert to_text(by_range) == to_text(of_one)
