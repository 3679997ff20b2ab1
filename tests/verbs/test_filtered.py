"""Filters on every verb that reads a log: the same from Python and from the command line, and the same as on a log that
has only these rows."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from test_both_ways import LETOR, compare, without_times

import elute
from conftest import call_elute

ASKED: dict[str, Any] = {"where": "score < 0.9 OR device = 'it''s'", "max_position": 7, "min_factor_impressions": 150}
WORDS = ("--where", ASKED["where"], "--max-position", 7, "--min-factor-impressions", 150)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """All of a log, and what passes."""
    folder = tmp_path_factory.mktemp("filtered")
    elute.simulate(LETOR, folder / "log.parquet", sessions=600, seed=5)
    table = pq.read_table(folder / "log.parquet")
    n = table.num_rows
    columns = {"device": ["it's" if i % 5 == 0 else "phone" for i in range(n)], "score": [i % 10 / 8 for i in range(n)]}
    for name, values in columns.items():
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, pa.array(values))
    pq.write_table(table, folder / "log.parquet")
    left = table.filter(((pc.field("score") < 0.9) | (pc.field("device") == "it's")) & (pc.field("position") <= 7))
    shown = left.group_by("position").aggregate([("click", "count")]).filter(pc.field("click_count") >= 150)
    left = left.filter(pc.is_in(left["position"], shown["position"].combine_chunks()))
    assert 0 < left.num_rows < n
    pq.write_table(left, folder / "left.parquet")
    return folder / "log.parquet", folder / "left.parquet"


def test_check_and_repair_and_count(logs: tuple[Path, Path], tmp_path: Path) -> None:
    compare(elute.check(logs[0], explore=True, **ASKED), "check", logs[0], "--explore", *WORDS)
    compare(elute.merge(logs[0], **ASKED), "repair", logs[0], "--method", "merge", *WORDS)
    counted = elute.count(logs[0], tmp_path / "counts", **ASKED)
    compare(counted, "count", logs[0], "--out", tmp_path / "counts", *WORDS)
    assert counted.filters == json.loads((tmp_path / "counts" / "counts.json").read_text())["filters"] == ASKED
    assert "(score < 0.9" not in counted.sentence
    assert "rows with score < 0.9" in counted.sentence
    assert "positions up to 7" in str(elute.check(tmp_path / "counts").card())


def read_fields(path: Path) -> Any:
    """Of a fit, but for what names its log."""
    fields = json.loads(path.read_text())
    filters = fields.pop("provenance")["filters"]
    assert filters == (None if path.parent.name == "left" else ASKED)
    return without_times(fields)


@pytest.mark.parametrize(("model", "options"), [("pbm", {}), ("ubm", {"session": "session_id"})])
def test_fit_and_audit(logs: tuple[Path, Path], model: str, options: dict[str, Any], tmp_path: Path) -> None:
    """Session models read the rows anew."""
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    compare(elute.fit(logs[0], model, **options, **ASKED), "fit", logs[0], "--model", model, *words, *WORDS)
    elute.fit(logs[0], model, **options, **ASKED).save(tmp_path / "some")
    elute.fit(logs[1], model, **options).save(tmp_path / "left")
    assert read_fields(tmp_path / "some" / "fit.json") == read_fields(tmp_path / "left" / "fit.json")
    one, other = (pq.read_table(tmp_path / name / "relevance.parquet") for name in ("some", "left"))
    assert one.equals(other)
    given = ("audit", "--fit", tmp_path / "some", "--log", logs[0], "--shifted-log", logs[0], *words, *WORDS)
    audited = elute.audit(tmp_path / "some", logs[0], shifted_log=logs[0], **options, **ASKED)
    compare(audited, *given)
    direct = elute.audit(tmp_path / "left", logs[1], shifted_log=logs[1], **options).to_dict()
    assert without_times(audited.to_dict()["models"][0] | {"name": "", "fit": ""}) == without_times(
        direct["models"][0] | {"name": "", "fit": ""}
    )


def test_a_log_split_by_a_filter_is_two_logs(logs: tuple[Path, Path]) -> None:
    fit = elute.fit(logs[0], where="session_id % 2 = 0", allow_unidentified=True)
    for where, noted in (("session_id % 2 = 1", False), ("session_id % 2 = 0", True), (None, True)):
        notes = str(elute.audit(fit, logs[0], where=where).to_dict())
        assert ("on the log that the model was fitted to" in notes) == noted


def test_report(logs: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    compare(elute.report(logs[0], out, **ASKED), "report", logs[0], "--out", out, *WORDS)
    assert "--max-position 7" in out.read_text()


def test_judge(logs: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    fit = elute.fit(logs[0], **ASKED)
    fit.save(tmp_path / "fit")
    made = {}
    for log, options, name in ((logs[0], ASKED, "some"), (logs[1], {}, "left")):
        made[name] = elute.judge(fit, "lightgbm", tmp_path / name, log=log, features=LETOR, **options)
    assert (tmp_path / "some" / "weighted.tsv").read_text() == (tmp_path / "left" / "weighted.tsv").read_text()
    words = ("judge", tmp_path / "fit", "--format", "lightgbm", "--log", logs[0], "--features", LETOR)
    compare(
        elute.judge(tmp_path / "fit", "lightgbm", tmp_path / "some", log=logs[0], features=LETOR, **ASKED),
        *words,
        "--out",
        tmp_path / "some",
        *WORDS,
    )
    with pytest.raises(elute.EluteError, match="give `log=` too"):
        elute.judge(fit, max_position=3)


def test_judgments_of_items_that_a_log_names(logs: tuple[Path, Path]) -> None:
    fit = elute.fit(logs[0], item="doc_id", where="query_id IS NOT NULL", allow_unidentified=True)
    first = pq.read_table(logs[0])["query_id"][0].as_py()
    chosen = f"query_id = {first!r}" if isinstance(first, str) else f"query_id = {first}"
    found = elute.judge(fit, log=logs[0], where=chosen, max_position=9, all_items=True)
    assert set(found.table["query_id"].to_pylist()) == {str(first)}


def test_train(logs: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    how: dict[str, Any] = {"model": "lightgbm", "steps": 5, "session": "session_id"}
    for learner in ("naive", "ipw-random"):
        said = []
        for log, options, name in ((logs[0], ASKED, "some"), (logs[1], {}, "left")):
            random: dict[str, Any] = {"randomised": log} if learner == "ipw-random" else {}
            fields = elute.train(log, LETOR, tmp_path / name, learner=learner, **random, **how, **options).to_dict()
            said.append(without_times({key: fields[key] for key in fields if key != "provenance"}))
        assert said[0] == said[1]
    words = ("--features", LETOR, "--learner", "naive", "--model", "lightgbm", "--steps", 5, "--session", "session_id")
    ranker = elute.train(logs[0], LETOR, tmp_path / "some", learner="naive", **how, **ASKED)
    compare(ranker, "train", logs[0], *words, "--out", tmp_path / "some", *WORDS)


@pytest.mark.parametrize(
    "verb", [("check",), ("repair", "--method", "merge"), ("fit", "--out", "fit")], ids=["check", "repair", "fit"]
)
def test_the_next_command_has_the_same_filters(logs: tuple[Path, Path], verb: tuple[str, ...], tmp_path: Path) -> None:
    said = call_elute(verb[0], logs[0], *verb[1:], *WORDS, cwd=tmp_path)
    command = next(line.partition("Next: ")[2] for line in said.out.splitlines() if "Next: " in line)
    words = shlex.split(command.partition("   #")[0])
    for flag, value in zip(WORDS[::2], WORDS[1::2], strict=True):
        assert words[words.index(str(flag)) + 1] == str(value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--where", "postion < 3"), "--where: no column 'postion' (closest: position)"),
        (("--where", "1) FROM x WHERE (1"), "--where: syntax error"),
        (("--max-position", 5, "--bias", "device"), "or say which rows to keep with --where"),
        (("--min-factor-impressions", 10**9), "none passes --min-factor-impressions"),
    ],
)
def test_refusals_in_one_line(logs: tuple[Path, Path], words: tuple[object, ...], says: str) -> None:
    refused = call_elute("check", logs[0], *words)
    assert refused.code == 1
    assert says in refused.err
    assert refused.err.count("\n") == 1


def test_an_open_log_keeps_its_own(logs: tuple[Path, Path]) -> None:
    asked: list[Callable[..., object]] = [elute.check, elute.fit]
    with elute.read_log(logs[0], max_position=5) as log:
        for verb in asked:
            with pytest.raises(elute.EluteError, match=r"`max_position=`: the log was read already"):
                verb(log, max_position=3)
