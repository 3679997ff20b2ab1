"""Every command that a page prints runs as printed, and leads on: from each rung to a fit, or to a plan."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from known_worlds import dead_link, dense, lone_positions, seen_six_times, sparse, stray_results

from conftest import Outcome, call_elute

_CHAINS: dict[str, tuple[Callable[[], pa.Table], list[str]]] = {
    "dense": (dense, ["check", "fit", "audit"]),
    "sparse": (sparse, ["check", "fit", "audit"]),
    "six": (seen_six_times, ["check", "fit", "audit"]),
    "stray": (stray_results, ["check", "check", "fit", "audit"]),
    "dead": (dead_link, ["check", "fit", "audit"]),
    "lone": (lone_positions, ["check", "repair"]),
}


def find_next(outcome: Outcome) -> list[str] | None:
    """The words of the command after `Next:`, without `elute`."""
    found = re.search(r"Next: (elute .*?)(?:   #.*)?$", outcome.out, re.MULTILINE)
    return None if found is None else shlex.split(found[1])[1:]


@pytest.mark.parametrize("name", _CHAINS)
def test_each_command_runs_as_printed(name: str, tmp_path: Path) -> None:
    make, verbs = _CHAINS[name]
    pq.write_table(make(), tmp_path / "log.parquet")
    words: list[str] | None = ["check", "log.parquet"]
    for verb in verbs:
        assert words is not None and words[0] == verb
        outcome = call_elute(*words, cwd=tmp_path)
        assert outcome.code in (0, 3), outcome.err
        words = find_next(outcome)


_RANKINGS = {
    "q1 3 4 5\nq2 4 3 5\nq3 5 3 4\n": ["check", "check", "report"],
    "q1 3 4 5\nq2 6 7 8\n": ["check", "repair", "check", "report"],
    "q1 3 4 5\nq1 4 3 5\nq1 3 5 4\n": ["check", "report"],
}
"""Coarser items link the first, nothing but a plan the second; the third is linked."""


@pytest.mark.parametrize("text", _RANKINGS)
def test_rankings_without_clicks_lead_to_a_page(text: str, tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "train.init_list").write_text(text)
    words: list[str] | None = ["check", "lists"]
    for verb in _RANKINGS[text]:
        assert words is not None and words[0] == verb
        outcome = call_elute(*words, cwd=tmp_path)
        assert outcome.code in (0, 3), outcome.err
        assert "✓" not in outcome.out or verb == "repair"
        words = find_next(outcome)
    assert (tmp_path / "report.html").exists()


def test_counts_lead_back_to_the_log_where_they_lack_the_columns(tmp_path: Path) -> None:
    """Counts have their bias columns for good."""
    rows = dense().rename_columns(["q", "d", "position", "clicked"])
    for part in range(2):
        pq.write_table(rows.slice(part * 7_000, 7_000), tmp_path / f"log{part}.parquet")
    for logs in (["log0.parquet"], ["log0.parquet", "log1.parquet"]):
        named = [
            "--query",
            "q",
            "--doc",
            "d",
            "--bias",
            "q,position",
            "--click",
            "clicked",
            "--where",
            "position <> 77",
        ]
        assert call_elute("count", *logs, *named, "--out", "counts", cwd=tmp_path).code == 0
        explored = find_next(call_elute("check", "counts", cwd=tmp_path))
        assert explored == ["check", "counts", "--explore"]
        words = find_next(call_elute(*explored, cwd=tmp_path))
        assert words is not None and {"--where", "position <> 77", "--click"} <= set(words)
        after = call_elute(*words, "--json", cwd=tmp_path)
        assert after.code == 0, after.err
        assert (after.json["components"], after.json["impressions"]) == (1, 7_000 * len(logs))


def test_options_of_the_user_are_carried_on(tmp_path: Path) -> None:
    table = stray_results().rename_columns(["q", "d", "rank", "clicked"])
    pq.write_table(table, tmp_path / "log.parquet")
    named = ["--query", "q", "--doc", "d", "--bias", "rank", "--click", "clicked", "--where", "rank <> 77"]
    words = find_next(call_elute("check", "log.parquet", *named, cwd=tmp_path))
    assert words is not None
    assert {"--max-position", "--where", "rank <> 77", "--click"} <= set(words)
    after = call_elute(*words, cwd=tmp_path)
    assert after.code == 0
    onwards = find_next(after)
    assert onwards is not None and onwards[0] == "fit" and {"--max-position", "--where", "--click"} <= set(onwards)
    assert call_elute(*onwards, cwd=tmp_path).code == 0
