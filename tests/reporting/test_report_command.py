"""`elute report` and `elute demo` as a user runs them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from report_worlds import AUDIT, charts_of, toy_log

from elute.cli import main

pytestmark = pytest.mark.xdist_group("demo")  # run once for all


@pytest.fixture(scope="module")
def folder(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `elute demo` leaves, to work in."""
    return shutil.copytree(demo_folder, tmp_path_factory.mktemp("demo"), dirs_exist_ok=True)


@pytest.fixture
def elute_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command line in this process, which starts sooner, in the demo's folder."""
    monkeypatch.chdir(folder)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


def test_the_demo_runs_every_verb_and_ends_by_naming_the_page(folder: Path) -> None:
    printed = (folder / "printed.txt").read_text(encoding="utf-8")
    at = [printed.index(f"$ elute {verb} demo") for verb in ("check", "repair", "fit", "judge", "report")]
    assert at == sorted(at) and "$ elute audit --fit demo" in printed
    assert "demo/report.html" in printed.splitlines()[-1] + printed.splitlines()[-2]
    audit = json.loads((folder / "demo" / "audit.json").read_text())
    assert [model["name"] for model in audit["models"]] == ["pbm", "merged", "naive"]
    assert [model["verdict"] for model in audit["models"]] == ["pass", "pass", "fail"]
    assert audit["models"][0]["cmip"]["estimate"] < audit["models"][2]["cmip"]["estimate"] / 3
    assert (folder / "demo" / "judged" / "ratings.csv").read_text().startswith("query,docid,rating")
    page = (folder / "demo" / "report.html").read_text(encoding="utf-8")
    for words in (
        "With a swap plan: estimable, not precisely known",
        "What can be used",
        "How much is seen",
        "Can the fit be trusted?",
        "--audit demo",
    ):
        assert words in page


def test_the_demo_shows_both_verdicts_and_repairs_the_broken_log(
    folder: Path, elute_here: Callable[..., Result]
) -> None:
    printed = (folder / "printed.txt").read_text(encoding="utf-8")
    assert "≈ Loose: relevance is recoverable in principle" in printed and "✗ Relevance is not recoverable" in printed
    assert "✓ Known" not in printed.partition("demo/layouts.parquet")[0]
    assert elute_here("check", "demo/sound.parquet").exit_code == 0
    assert elute_here("check", "demo/broken.parquet", "--plan", "demo/merge.json").exit_code == 0
    broken = elute_here("check", "demo/broken.parquet", "--json", "--session", "session_id")
    assert broken.exit_code == 3
    fields = json.loads(broken.stdout)
    assert fields["component_sizes"] == [6, 4]
    assert 0 < fields["rankable_queries"] < fields["queries"]
    assert fields["warnings"] == []


def test_a_report_says_what_it_wrote(folder: Path, elute_here: Callable[..., Result]) -> None:
    outcome = elute_here("report", "demo/sound.parquet", "--out", "a/page.html", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    fields = json.loads(outcome.stdout)
    assert fields["report"] == "a/page.html"
    assert fields["recoverable"] is True and fields["headline"] == "Estimable, not precisely known"
    assert fields["bytes"] == (folder / "a" / "page.html").stat().st_size < 5_000_000
    assert fields["sections"] == ["usable", "graph", "rankable", "links", "health", "again", "more"]
    page = (folder / "a" / "page.html").read_text(encoding="utf-8")
    assert "elute report demo/sound.parquet --out a/page.html" in page
    assert "elute fit demo/sound.parquet --out fit" in page


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--fit", "nowhere"), "no fit"),
        (("--plan", "nowhere.json"), "no plan 'nowhere.json'"),
        (("--audit", "nowhere.json"), "no audit 'nowhere.json'"),
        (("--audit", "demo/merge.json"), "is not what 'elute audit' writes"),
        (("--audit", "demo/judged/ratings.csv"), "is not what 'elute audit' writes"),
        (("--plan", "demo/merge.json", "--bias", "query_id"), "made for bias position"),
        (("--fit", "demo/fits/pbm", "--bias", "query_id"), "--bias position"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_no_page(
    folder: Path, elute_here: Callable[..., Result], words: tuple[str, ...], says: str
) -> None:
    outcome = elute_here("report", "demo/broken.parquet", *words, "--out", "none.html")
    assert outcome.exit_code == 1
    lines = [line for line in outcome.stderr.splitlines() if says in line]
    assert len(lines) == 1 and lines[0].startswith("elute: "), outcome.stderr
    assert isinstance(outcome.exception, SystemExit) and outcome.stdout == ""
    assert not (folder / "none.html").exists()


@pytest.mark.parametrize("broken", ["models", "selection", "positions"])
def test_half_an_audit_is_refused(folder: Path, elute_here: Callable[..., Result], broken: str) -> None:
    (folder / "half.json").write_text(json.dumps({**AUDIT, broken: [1]}), encoding="utf-8")
    outcome = elute_here("report", "demo/sound.parquet", "--audit", "half.json", "--out", "none.html")
    assert outcome.exit_code == 1 and "half.json is not what" in outcome.stderr
    assert not (folder / "none.html").exists()


def test_contexts_get_a_line_each(tmp_path: Path, elute_here: Callable[..., Result]) -> None:
    table = toy_log(broken=False, sessions=6000)
    device = ["phone" if session % 3 else "desk" for session in table["session_id"].to_pylist()]
    pq.write_table(table.append_column("device", [device]), tmp_path / "log.parquet")
    words = (tmp_path / "log.parquet", "--bias", "position,device")
    assert elute_here("fit", *words, "--out", tmp_path / "fit").exit_code == 0
    outcome = elute_here("report", *words, "--fit", tmp_path / "fit", "--out", tmp_path / "page.html")
    assert outcome.exit_code == 0, outcome.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    rows = charts_of(page)["propensity-0"]["spec"]["data"]["values"]
    assert {row["series"] for row in rows} == {"device phone", "device desk"} and len(rows) == 20
    assert all(0 < row["low"] <= row["y"] <= row["high"] for row in rows)
