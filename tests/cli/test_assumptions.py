"""`elute audit --assumptions` on logs that follow r·o and on one that does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import call_elute

DATA = Path(__file__).parents[2] / "docs" / "data" / "letor.txt"


def simulated(folder: Path, user: str) -> Path:
    out = folder / f"{user}.parquet"
    options = ("--policy", "uniform", "--user", user, "--width", 5, "--sessions", 20_000, "--seed", 3)
    assert call_elute("simulate", "--data", DATA, *options, "--out", out).code == 0
    return out


@pytest.mark.parametrize(("user", "verdict"), [("pbm", "holds"), ("trust", "rejected")])
def test_a_position_based_log_is_told_from_a_trusting_one(tmp_path: Path, user: str, verdict: str) -> None:
    log = simulated(tmp_path, user)
    done = call_elute("audit", "--assumptions", "--log", log, "--json")
    assert done.code == 0, done.err
    found = {finding["name"]: finding for finding in done.json["assumptions"]}
    assert found["linear"]["verdict"] == verdict
    assert found["unique fit"]["verdict"] == "holds"
    assert found["pairwise debiasing"]["verdict"] == "rejected"
    assert all(finding["sentence"] and finding["next"] is not None for finding in found.values())
    assert set(found["linear"]) >= {"name", "verdict", "p_value", "effect", "sentence", "next"}


def test_the_page_its_charts_and_wrong_usage(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    log = simulated(tmp_path, "pbm")
    given = ("--groups", "query_id", "--labels", tmp_path / "pbm.truth.parquet", "--charts", tmp_path / "drawn")
    page = call_elute("audit", "--assumptions", "--log", log, *given)
    assert page.code == 0, page.err
    assert "groups:" in page.out
    assert "linear in labels: holds" in page.out
    assert "Click probability is linear in relevance" in page.out
    pictures = sorted(path.name for path in (tmp_path / "drawn").glob("*.svg"))
    assert "click-rate-against-label.svg" in pictures
    assert len(pictures) == 6
    spec = json.loads((tmp_path / "drawn" / "offsets-by-factor.json").read_text())
    assert "vega-lite" in spec["$schema"]
    assert "Offsets by factor" in spec["description"]
    assert call_elute("audit", "--log", log).code == 2
    for option in ("--groups", "--cluster", "--charts"):
        assert call_elute("audit", "--fit", "x", option, "query_id", "--log", log).code == 2


def test_clusters_are_named_and_those_that_tell_nothing_refused(tmp_path: Path) -> None:
    log = simulated(tmp_path, "pbm")
    asked = ("audit", "--assumptions", "--log", log)
    page = call_elute(*asked, "--cluster", "session_id")
    assert page.code == 0, page.err
    assert "Clicks may depend on each other within session_id" in page.out
    for column, words in (("nobody", "has no column 'nobody' to cluster by"), ("position", "makes 5 clusters")):
        refused = call_elute(*asked, "--cluster", column)
        assert refused.code == 1
        assert words in refused.err


EXAMPLE = {"A": (0.9, 0.72), "B": (0.8, 0.64), "C": (0.4, 0.1), "D": (0.2, 0.05)}
"""Section 6.1 of the limits paper: click probabilities of A and B at ranks 1 and 2, of C and D at 3 and 4."""


def test_what_hangs_loose_is_named(tmp_path: Path) -> None:
    """Theorem 6.3 on the command line."""
    log = tmp_path / "log.csv"
    rows = [
        f"q,{doc},{rank + 2 * (doc in 'CD') + 1},{round(10_000 * p)},10000"
        for doc, rates in EXAMPLE.items()
        for rank, p in enumerate(rates)
    ]
    log.write_text("\n".join(["query_id,doc_id,position,click,n", *rows]))
    found = call_elute("audit", "--assumptions", "--log", log, "--impressions", "n", "--json").json["assumptions"][0]
    assert (found["name"], found["verdict"], found["effect"]) == ("unique fit", "rejected", 0.5)
    (flat,) = found["evidence"]
    assert [item["doc_id"] for item in flat["example_items"]] == ["C", "D"]
    assert [factor["position"] for factor in flat["example_factors"]] == [3, 4]
    assert "doc_id C from 0.4 to 1; query_id q, doc_id D from 0.2 to 0.5" in flat["sentence"]
    page = call_elute("check", log, "--impressions", "n", "--model", "affine")
    assert page.code == 3
    assert "null dimension 4, gauge 2" in " ".join(page.out.split())
    parts = call_elute("check", log, "--impressions", "n", "--model", "affine", "--json").json["generic"]["parts"]
    assert [(part["factors"], part["null_dimension"]) for part in parts] == [(2, 2), (2, 2)]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("query_id,doc_id,grade\nnone,such,1\n", "no item of the log has a label in"),
        ("query_id,doc_id,stars\n1,d1-1,1\n", "has no column 'grade'"),
        ("query_id,doc_id,grade\n1,d1-1,1\n1,d1-1,2\n", "1 items have more than one grade"),
    ],
)
def test_labels_that_cannot_be_used(tmp_path: Path, labels: str, message: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text("query_id,doc_id,position,click\n1,d1-1,1,1\n1,d1-1,2,0\n")
    (tmp_path / "labels.csv").write_text(labels)
    done = call_elute("audit", "--assumptions", "--log", log, "--labels", tmp_path / "labels.csv")
    assert done.code == 1
    assert message in done.err
    assert "Traceback" not in done.err
