"""`elute watch` over folders of parts: what is found, how it is said, what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from watch_worlds import POSITIONS, add_day, copy, log_of, make_folder, name_day

import elute
from conftest import call_elute
from elute.errors import EluteError
from elute.results.watched import ALARMS

DAYS = 16
FIELDS = {
    *("folder", "every", "period", "since", "code", "kind", "message", "where", "observed", "expected", "p", "do"),
}  # fmt: skip


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("watched") / "daily", DAYS)


def planted(quiet: Path, to: Path, table: pa.Table, day: int = DAYS) -> elute.Watch:
    add_day(copy(quiet, to), day, table)
    return elute.watch(to)


def test_a_quiet_folder(quiet: Path) -> None:
    outcome = call_elute("watch", quiet, "--json")
    assert outcome.code == 0, outcome.err
    found = outcome.json
    assert found["quiet"]
    assert (found["alarms"], found["earlier_alarms"]) == ([], [])
    assert (found["periods"], found["judged"], found["newest"]) == (DAYS, DAYS - 7, name_day(DAYS - 1))
    assert found["every"] == "day"
    assert found["level"] == pytest.approx(1 / 365 / 7)
    assert [one["group"] for one in found["groups"]] == [f"position {at}" for at in range(1, POSITIONS + 1)]
    newest = found["series"][-1]
    whole = elute.check(quiet, last=1).to_dict()
    for name in ("impressions", "clicks", "items"):
        assert newest[name] == whole[name]
    assert newest["check"]["rung"] == whole["rung"]
    assert newest["check"]["components"] == whole["components"]
    assert newest["check"]["rankable_share"] == whole["rankable_share"]
    assert newest["check"]["ordered_share"] == whole["precision"]["queries_ordered_share"]
    window = elute.check(quiet, drop=f"day = {name_day(DAYS - 1)}").to_dict()
    assert found["window"]["rung"] == window["rung"]
    assert found["window"]["ordered_share"] == window["precision"]["queries_ordered_share"]
    curve = newest["figures"]["curve"]
    assert all(one["low"] < one["ratio"] < one["high"] for one in curve)
    traffic = newest["figures"]["traffic"]
    assert traffic["low"] < traffic["impressions"] < traffic["high"]
    assert traffic["impressions"] == pytest.approx(newest["impressions"])
    said = call_elute("watch", quiet)
    assert said.code == 0
    assert "Quiet" in said.out
    assert call_elute("watch", quiet, "--pager").out == ""


def test_both_ways(quiet: Path, tmp_path: Path) -> None:
    add_day(copy(quiet, tmp_path / "it"), DAYS, log_of(DAYS, lost=3))
    words = ("--every", "day", "--baseline", 10, "--false-alarms", 0.5, "--last", 15, "--drop", f"day = {name_day(3)}")
    outcome = call_elute("watch", tmp_path / "it", *words, "--json")
    found = elute.watch(
        tmp_path / "it", every="day", baseline=10, false_alarms=0.5, last=15, drop=f"day = {name_day(3)}"
    )
    assert outcome.code == 4
    assert json.loads(found.to_json()) == outcome.json
    assert found.periods == 15
    found.save(tmp_path / "watch.json")
    assert elute.Watch.load(tmp_path / "watch.json").alarms == outcome.json["alarms"]
    assert "position 3" in found.sentence
    assert found.card().word == "Alarm"


def test_lost_clicks_page_the_right_people(quiet: Path, tmp_path: Path) -> None:
    folder = copy(quiet, tmp_path / "it")
    add_day(folder, DAYS, log_of(DAYS, lost=3))
    outcome = call_elute("watch", folder, "--pager", "--prometheus", tmp_path / "elute.prom")
    assert outcome.code == 4
    (line,) = outcome.out.splitlines()
    alarm = json.loads(line)
    assert set(alarm) == FIELDS
    assert (alarm["code"], alarm["kind"], alarm["where"]) == ("no_clicks", "fault", [{"position": 3}])
    assert (alarm["period"], alarm["observed"]) == (name_day(DAYS), 0)
    assert alarm["expected"] > 20
    assert alarm["p"] < 1e-4
    assert f"day >= {name_day(DAYS)}" in alarm["do"]
    assert alarm["since"] == alarm["period"]
    metrics = read_metrics((tmp_path / "elute.prom").read_text())
    assert metrics["elute_watch_alarms", ()] == 1
    for code in ALARMS:
        assert metrics["elute_watch_alarm", (("code", code),)] == (code == "no_clicks")
    assert metrics["elute_watch_impressions", ()] == 500 * POSITIONS
    assert metrics["elute_watch_propensity", (("factor", "position 1"),)] == 1
    text = call_elute("watch", folder)
    assert text.code == 4
    assert "Alarm" in text.out
    assert "position 3" in text.out


def test_what_goes_on_is_told_from_its_first_day(quiet: Path, tmp_path: Path) -> None:
    """Three days without the clicks of a position, one in between with them, and one more: dropped from the first."""
    folder = copy(quiet, tmp_path / "it")
    for day, planted in enumerate(({"lost": 3}, {"lost": 3}, {}, {"lost": 3}), DAYS):
        add_day(folder, day, log_of(day, **planted))
    found = elute.watch(folder)
    (alarm,) = [one for one in found.alarms if one["code"] == "no_clicks"]
    assert (alarm["period"], alarm["since"]) == (name_day(DAYS + 3), name_day(DAYS))
    assert f"day >= {name_day(DAYS)}" in alarm["do"]
    assert alarm["message"].endswith(f"as since {name_day(DAYS)}")
    assert {one["since"] for one in found.earlier_alarms if one["code"] == "no_clicks"} == {name_day(DAYS)}


_SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)')


def read_metrics(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The text format as Prometheus reads it: each metric with its help and type, each sample once."""
    out: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    declared: set[str] = set()
    for line in text.splitlines():
        if line.startswith("#"):
            kind, name, rest = line[2:].split(" ", 2)
            assert kind in ("HELP", "TYPE")
            assert kind == "HELP" or rest == "gauge"
            declared.add(f"{kind} {name}")
            continue
        found = _SAMPLE.fullmatch(line)
        assert found is not None, line
        labels = re.findall(r'([a-z_]+)="((?:[^"\\\n]|\\.)*)"', found[2])
        key = found[1], tuple(sorted((name, value) for name, value in labels if name != "folder"))
        assert key not in out
        assert {f"HELP {found[1]}", f"TYPE {found[1]}"} <= declared
        out[key] = float(found[3])
    assert text.endswith("\n")
    return out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "code", "said"),
    [
        (lambda: pa.concat_tables([log_of(DAYS)] * 2), "doubled", "even impressions"),
        (lambda: log_of(DAYS, pages=150), "traffic", "600 impressions"),
        (lambda: log_of(DAYS, pinned=True), "links", "fewer items link"),
        (lambda: log_of(DAYS, new=True), "new_items", "items that other parts have"),
        (lambda: log_of(DAYS, layout=True), "new_factors", "position 101"),
        (lambda: log_of(DAYS, layout=True), "vanished_factors", "position 1; "),
    ],
)
def test_planted(quiet: Path, tmp_path: Path, table: Any, code: str, said: str) -> None:
    found = planted(quiet, tmp_path / "it", table())
    by_code = {alarm["code"]: alarm for alarm in found.alarms}
    assert code in by_code
    assert [alarm["kind"] for alarm in found.alarms] == sorted((alarm["kind"] for alarm in found.alarms), reverse=True)
    assert said in by_code[code]["message"]
    assert not found.earlier_alarms


def test_a_new_layout_that_nothing_links_says_so(quiet: Path, tmp_path: Path) -> None:
    both = {"layout": True, "new": True}
    apart = planted(quiet, tmp_path / "apart", log_of(DAYS, **both))
    tied = planted(quiet, tmp_path / "tied", log_of(DAYS, layout=True))
    texts = [{a["code"]: a["message"] for a in found.alarms}["new_factors"] for found in (apart, tied)]
    assert "no item links them" in texts[0]
    assert "items link them" in texts[1]


def test_nulls_are_a_fault(quiet: Path, tmp_path: Path) -> None:
    day = log_of(DAYS)
    ids = pa.array([None if at % 5 == 0 else value for at, value in enumerate(day["doc_id"].to_pylist())], pa.int64())
    found = planted(quiet, tmp_path / "it", day.set_column(1, "doc_id", ids))
    dropped = {alarm["code"]: alarm for alarm in found.alarms}["dropped_rows"]
    assert dropped["observed"] == pytest.approx(0.2)
    assert dropped["p"] is None


def test_a_missing_day_and_missing_hours(quiet: Path, tmp_path: Path) -> None:
    found = planted(quiet, tmp_path / "gap", log_of(DAYS + 1), DAYS + 1)
    assert [alarm["code"] for alarm in found.alarms] == ["missing_parts"]
    folder = tmp_path / "hours"
    for day in range(9):
        for hour in (0, 1, 2)[: 2 if day == 8 else 3]:
            add_day(folder, day, log_of(3 * day + hour, 120), f"day={name_day(day)},hour={hour}")
    found = elute.watch(folder, every="day")
    assert "missing_parts" in [alarm["code"] for alarm in found.alarms]
    assert found.series[-1]["parts"] == 2
    assert found.series[0]["impressions"] == 3 * 120 * POSITIONS


def test_too_few_parts_are_no_alarm(tmp_path: Path) -> None:
    add_day(tmp_path / "it", 0, log_of(0))
    outcome = call_elute("watch", tmp_path / "it", "--out", tmp_path / "watch.html")
    assert outcome.code == 0
    assert "too few" in outcome.out
    assert "Too few periods" in (tmp_path / "watch.html").read_text()


def test_a_log_without_clicks_or_without_items_that_return(tmp_path: Path) -> None:
    """What can be tested is, what cannot is said."""
    for day in range(9):
        add_day(
            tmp_path / "shown",
            day,
            log_of(day, 100).drop_columns("click").append_column("click", pa.nulls(400, pa.int64()).fill_null(0)),
        )
        add_day(tmp_path / "news", day, log_of(day, 100, new=True))
    without = elute.watch(tmp_path / "shown")
    assert {"click_rate", "curve"} <= {one["test"] for one in without.untested}
    news = elute.watch(tmp_path / "news")
    assert [one["test"] for one in news.untested] == ["click_rate"]
    assert without.quiet
    assert news.quiet


def test_what_is_refused(quiet: Path, tmp_path: Path) -> None:
    for words, said in (
        ((tmp_path,), "no folder of parts"),
        ((quiet, "--every", "hour"), "--every is 'hour'; the parts of"),
        ((quiet, "--drop", "day > 2000"), "has no part to look at"),
        ((quiet, "--out", tmp_path), "is a directory"),
        ((quiet, "--out", quiet / "parts.json"), "would be written over"),
        ((quiet, "--pager", "--json"), "give one of them"),
        ((quiet, "--baseline", 3), "3"),
    ):
        outcome = call_elute("watch", *words)
        assert outcome.code in (1, 2), words
        assert said in outcome.err, (words, outcome.err)
        assert len(outcome.err.strip().splitlines()) <= 4
    with pytest.raises(EluteError, match="`every=`"):
        elute.watch(quiet, every="hour")


@pytest.mark.parametrize("damage", ["index", "cells", "gone"])
def test_a_damaged_folder_is_one_line(quiet: Path, tmp_path: Path, damage: str) -> None:
    folder = copy(quiet, tmp_path / "it")
    part = next(path for path in (folder / "parts").iterdir() if path.is_dir())
    file = {"index": folder / "parts.json", "cells": part / "cells.parquet", "gone": part / "counts.json"}[damage]
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-40])
    outcome = call_elute("watch", folder)
    assert outcome.code == 1
    assert len(outcome.err.strip().splitlines()) == 1
    assert "Traceback" not in outcome.err
