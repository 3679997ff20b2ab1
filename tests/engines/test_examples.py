"""The smallest items under factors: with a look at some rows first, and without."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import elute
from elute.engines.duckdb import examples
from elute.engines.duckdb.source import DuckDBSource

KINDS: dict[str, Callable[[np.ndarray], pa.Array]] = {
    "text": lambda n: pa.array([f"d{one}" for one in n]),
    "numbers": pa.array,
    "floats": lambda n: pa.array(np.where(n == 7, np.nan, -n / 3)),
    "nulls": lambda n: pa.array([None if one == 3 else int(one) for one in n]),
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", [3, 400])
def test_the_same_examples(query: int, kind: str, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(query)
    n = 20_000
    position = rng.choice(12, n, p=[0.18] * 5 + [0.1 / 7] * 7)
    log = pa.table(
        {
            "query_id": pa.array(position * 1_000 + rng.integers(0, query, n)),  # so that no item links two positions
            "doc_id": KINDS[kind](rng.integers(0, 50, n)),
            "position": pa.array(position),
            "click": pa.array(rng.random(n) < 0.3),
        }
    )
    asked: list[bool] = []

    def check() -> dict[str, object]:
        return elute.check(elute.read_log(log, exact=exact)).to_dict()

    plain = check()
    monkeypatch.setattr(examples, "MANY", 1_000)
    monkeypatch.setattr(examples, "LOOKED_AT", 2_000)
    execute = DuckDBSource.execute

    def note(source: DuckDBSource, sql: str) -> None:
        asked.append("elute_most" in sql)
        execute(source, sql)

    monkeypatch.setattr(DuckDBSource, "execute", note)
    assert check()["component_details"] == plain["component_details"]
    assert plain["components"] == 12
    assert any(asked)


def test_a_factor_with_few_items_keeps_all_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two items of position 1 lie beyond what position 0 has."""
    n = 3_000
    position = (np.arange(n) >= n - 2).astype(int)
    log = pa.table({"doc_id": np.where(position, 9_000 + np.arange(n), np.arange(n) % 90), "position": position})
    log = log.append_column("click", pa.array(np.zeros(n, int)))
    monkeypatch.setattr(examples, "MANY", 1_000)
    found = elute.check(elute.read_log(log, item="doc_id")).to_dict()["component_details"]
    assert [[one["doc_id"] for one in part["example_items"]] for part in found] == [
        [0, 1, 2],
        [9_000 + n - 2, 9_000 + n - 1],
    ]
