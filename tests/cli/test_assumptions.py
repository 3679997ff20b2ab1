"""`elute audit --assumptions` on logs that follow r·o and on one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import run_elute

DATA = Path(__file__).parents[2] / "docs" / "data" / "letor.txt"


def simulated(folder: Path, user: str) -> Path:
    out = folder / f"{user}.parquet"
    options = ("--policy", "uniform", "--user", user, "--width", 5, "--sessions", 20_000, "--seed", 3)
    assert run_elute("simulate", "--data", DATA, *options, "--out", out).code == 0
    return out


@pytest.mark.parametrize(("user", "verdict"), [("pbm", "holds"), ("trust", "rejected")])
def test_a_position_based_log_is_told_from_a_trusting_one(tmp_path: Path, user: str, verdict: str) -> None:
    log = simulated(tmp_path, user)
    done = run_elute("audit", "--assumptions", "--log", log, "--json")
    assert done.code == 0, done.err
    found = {finding["name"]: finding for finding in done.json["assumptions"]}
    assert found["linear"]["verdict"] == verdict
    assert found["unique fit"]["verdict"] == "holds"
    assert found["pairwise debiasing"]["verdict"] == "rejected"
    assert all(finding["sentence"] and finding["next"] is not None for finding in found.values())
    assert set(found["linear"]) >= {"name", "verdict", "p_value", "effect", "sentence", "next"}


def test_the_page_and_wrong_usage(tmp_path: Path) -> None:
    log = simulated(tmp_path, "pbm")
    page = run_elute("audit", "--assumptions", "--log", log, "--groups", "query_id")
    assert page.code == 0
    assert "groups:" in page.out
    assert run_elute("audit", "--log", log).code == 2
    assert run_elute("audit", "--fit", "x", "--groups", "query_id", "--log", log).code == 2
