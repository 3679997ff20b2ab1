"""`elute check` as its users and their programs see it."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import call_elute, run_elute

CONTRACT = """
impressions clicks items factors cells queries recoverable components component_sizes rankable_queries rankable_share
comparable_pairs_share impressions_in_largest_share warnings
"""


@pytest.fixture
def path(chain: pa.Table, tmp_path: Path) -> Path:
    pq.write_table(chain, tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def test_json_keeps_the_contract(path: Path) -> None:
    """In a process, as libraries below Python could write to its standard output too."""
    outcome = run_elute("check", path, "--json")
    assert outcome.code == 3
    assert outcome.out.count("\n") == 1
    fields = json.loads(outcome.out)
    assert set(CONTRACT.split()) <= set(fields)
    assert all(set(warning) == {"code", "message", "count"} for warning in fields["warnings"])


def test_recoverable_is_exit_code_0(chain: pa.Table, tmp_path: Path) -> None:
    pq.write_table(chain.slice(0, 3), tmp_path / "log.parquet")
    outcome = run_elute("check", tmp_path / "log.parquet")
    assert outcome.code == 0
    assert outcome.out.lstrip().startswith("≈ Loose: relevance is recoverable in principle (its 2 factors form one")
    assert "✓" not in outcome.out


def test_page_leads_with_the_verdict_and_ends_with_a_command_that_runs(path: Path) -> None:
    outcome = call_elute("check", path, "--bias", "position,query_id")
    assert outcome.code == 3
    lines = [line.strip() for line in outcome.out.splitlines() if line.strip()]
    assert lines[0].startswith("✗ Relevance is not recoverable")
    assert lines[-1].startswith("Next: elute check")
    command = lines[-1].removeprefix("Next: elute ").split("   #")[0].split()
    again = call_elute(*command)
    assert again.code == 3
    assert "Which bias column breaks it" in again.out


def test_explore_proposes_the_columns_that_work(tmp_path: Path) -> None:
    log = pa.table(
        {
            "query_id": ["q"] * 4,
            "doc_id": ["a", "a", "b", "b"],
            "position": [1, 2, 2, 1],
            "device": ["x", "x", "y", "y"],
            "click": [0, 1, 0, 1],
        }
    )
    pq.write_table(log, tmp_path / "log.parquet")
    outcome = call_elute("check", tmp_path / "log.parquet", "--bias", "device,position", "--explore")
    assert outcome.code == 3
    assert outcome.out.rstrip().splitlines()[-1].strip().startswith(f"Next: elute check {tmp_path / 'log.parquet'}   #")
    tried = outcome.out[outcome.out.index("Which bias column breaks it") :].splitlines()[2:5]
    assert [line.split()[-1] for line in tried] == ["apart", "linked", "apart"]
    assert "✓" not in outcome.out  # linked is not known


def test_text_from_logs_is_shown_as_it_is(tmp_path: Path) -> None:
    """Markup and control characters in ids neither style the page nor break it."""
    ids = ["[red]a[/red]", "b\x1b[31m\nc", "[/]"]
    log = pa.table({"query_id": ids, "doc_id": ids, "position": ids, "click": [0, 1, 0]})
    pq.write_table(log, tmp_path / "log.parquet")
    outcome = call_elute("check", tmp_path / "log.parquet")
    assert outcome.code == 3
    assert "[red]a[/red]" in outcome.out
    assert "\x1b" not in outcome.out
    assert r"b\x1b[31m\nc" in outcome.out
    assert json.loads(call_elute("check", tmp_path / "log.parquet", "--json").out)["components"] == 3


def test_values_that_json_has_no_type_for(tmp_path: Path) -> None:
    log = pa.table(
        {
            "query_id": ["x", "y"],
            "doc_id": pa.array([Decimal("1.5"), Decimal("2.5")]),
            "position": [float("nan"), 2.0],
            "day": pa.array([date(2026, 1, 1), date(2026, 1, 2)]),
            "click": [0, 1],
        }
    )
    pq.write_table(log, tmp_path / "log.parquet")
    outcome = call_elute("check", tmp_path / "log.parquet", "--bias", "position,day", "--json")
    factors = {tuple(part["factor"].values()) for part in outcome.json["isolated"]}
    assert factors == {("nan", "2026-01-01"), (2.0, "2026-01-02")}
    assert "NaN" not in outcome.out


def test_same_input_same_output(path: Path) -> None:
    """In two processes, which differ in Python's hashes of strings."""
    first, second = (run_elute("check", path, "--explore", "--curve", "--json").out for _ in range(2))
    assert first == second


def test_richer_models_need_more_than_connection(tmp_path):
    """One item a link connects positions for r·o; trust bias needs two."""
    rows = [(f"d{k}", k + step) for k in range(1, 5) for step in (0, 1)]
    again = [(f"e{k}", k + step) for k in range(1, 5) for step in (0, 1)]
    found = {}
    for name, shown in (("one", rows), ("two", rows + again)):
        lines = ["query_id,doc_id,position,click", *(f"q,{doc},{position},1" for doc, position in shown)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
        done = call_elute("check", tmp_path / f"{name}.csv", "--model", "affine", "--json")
        assert done.json["recoverable"]
        found[name] = done.json["generic"]
    assert (found["one"]["identifiable"], found["one"]["null_dimension"]) == (False, 6)
    assert (found["two"]["identifiable"], found["two"]["null_dimension"]) == (True, 2)
    assert found["one"]["undetermined"]
    refused = call_elute("check", tmp_path / "one.csv", "--model", "cubic")
    assert refused.code == 1
    assert "no model 'cubic'; there are: pbm, affine, vector:D" in refused.err
