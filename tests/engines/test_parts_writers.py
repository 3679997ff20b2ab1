"""Writers of a folder of parts: killed at any moment, two at once, and beside readers."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from conftest import call_elute
from elute.engines.parts import adding

KILLS = int(os.environ.get("ELUTE_KILLS", "6"))
"""Moments at which an append is killed; `make kills` asks for more."""

_APPEND = """
import os, sys
import elute
from elute.verbs.counting.count import count
for line in sys.stdin:  # nothing has run in this process but imports: its children are as it is
    child = os.fork()
    if child == 0:
        count(sys.argv[1], sys.argv[2], append=True, key="day=3", drop="day < 2")
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


def write_day(path: Path, seed: int, rows: int = 400) -> Path:
    rng = np.random.default_rng(seed)
    position = rng.integers(1, 6, rows)
    columns = {
        "query_id": rng.integers(0, 20, rows),
        "doc_id": rng.integers(0, 9, rows),
        "position": position,
        "click": rng.random(rows) < 0.5 / position,
    }
    pq.write_table(pa.table(columns), path)
    return path


def read_blocks(folder: Path) -> list[dict[str, Any]]:
    return list(json.loads((folder / "parts.json").read_text())["blocks"])


def check_rows(folder: Path) -> tuple[int, int]:
    with elute.read_log(folder) as log:
        found = elute.check(log, precision=False)
        return found.log.survey.rows, int(found.log.survey.clicks.sum())


@pytest.mark.slow
def test_killed_at_any_moment_nothing_is_lost_and_nothing_doubled(tmp_path: Path) -> None:
    """Of three parts one is replaced and one is dropped by the append that is killed: all of it happened, or nothing.
    What is left over is removed by the next."""
    days = [write_day(tmp_path / f"{day}.parquet", day, 400 + day) for day in range(4)]
    folder, rng = tmp_path / "parts", random.Random(7)
    sums = {}
    for name, chosen in {"before": (1, 2, 3), "after": (2, 0)}.items():
        pq.write_table(pa.concat_tables([pq.read_table(days[day]) for day in chosen]), tmp_path / f"{name}.parquet")
        sums[name] = check_rows(tmp_path / f"{name}.parquet")
    outcomes, seconds = [], 0.0
    with subprocess.Popen(
        [sys.executable, "-c", _APPEND, days[0], folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as runs:
        assert runs.stdin is not None and runs.stdout is not None
        for kill in range(KILLS + 1):
            for day in (1, 2, 3):
                elute.count(days[day], folder, append=True, key=f"day={day}")
            print(file=runs.stdin, flush=True)
            child, began = int(runs.stdout.readline()), time.monotonic()
            if kill:
                time.sleep(rng.random() * seconds)
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            assert int(runs.stdout.readline()) in (0, signal.SIGKILL)
            seconds = seconds if kill else time.monotonic() - began
            outcomes.append(check_rows(folder))
    assert outcomes[0] == sums["after"]
    assert set(outcomes) <= set(sums.values())
    elute.count(days[2], folder, append=True, key="day=2")
    named = {part["name"] for part in json.loads((folder / "parts.json").read_text())["parts"]}
    assert {path.name for path in (folder / "parts").iterdir()} == named
    assert {path.name for path in folder.iterdir()} == {"parts", "parts.json"}


def test_writers_at_once_all_get_their_part_in(tmp_path: Path) -> None:
    days = [write_day(tmp_path / f"{day}.parquet", day) for day in range(4)]
    folder = tmp_path / "parts"
    command = [sys.executable, "-m", "elute", "count", "--append", "--out", str(folder)]
    runs = [
        subprocess.Popen([*command, str(path), "--key", f"day={day}"], stderr=subprocess.PIPE, text=True)
        for day, path in enumerate(days)
    ]
    for run in runs:
        _, said = run.communicate()
        assert run.returncode == 0, said
    pq.write_table(pa.concat_tables([pq.read_table(day) for day in days]), tmp_path / "all.parquet")
    assert check_rows(folder) == check_rows(tmp_path / "all.parquet")


def test_who_reads_keeps_what_is_replaced(tmp_path: Path) -> None:
    """Names of items are read when they are asked for, which may be long after the log was opened."""
    folder = tmp_path / "parts"
    one, other = (write_day(tmp_path / f"{day}.parquet", day) for day in range(2))
    elute.count(one, folder, append=True, key="day=1")
    with elute.read_log(folder) as log:
        counts = log.counts()
        elute.count(other, folder, append=True, key="day=1")
        assert len(list((folder / "parts").iterdir())) == 2
        named = counts.items
    assert named.num_rows == counts.n_items
    elute.count(other, folder, append=True, key="day=1")
    assert len(list((folder / "parts").iterdir())) == 1


def test_small_parts_are_put_together_and_still_chosen_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "MANY", 4)
    folder = tmp_path / "parts"
    days = [write_day(tmp_path / f"{day}.parquet", day, 100 + day) for day in range(10)]
    for day, path in enumerate(days):
        elute.count(path, folder, append=True, key=f"day={day}", item="doc_id")
    before = read_blocks(folder)
    assert [len(block["of"]) for block in before] == [4, 4]
    elute.count(days[9], folder, append=True, key="day=2", item="doc_id")
    after = read_blocks(folder)
    assert before[0] not in after
    assert before[1] in after
    monkeypatch.setattr(adding, "MANY", 99)
    elute.count(days[8], folder, append=True, key="day=4", item="doc_id", drop="day = 0")
    assert read_blocks(folder) == []
    elute.count(days[0], folder, append=True, key="day=0", item="doc_id")
    monkeypatch.setattr(adding, "MANY", 4)
    elute.count(days[4], folder, append=True, key="day=4", item="doc_id")
    assert len(read_blocks(folder)) == 1
    rows = {day: 100 + day for day in range(10)} | {2: 109}
    for last in (10, 8, 5, 1):
        with elute.read_log(folder, last=last) as log:
            assert log.survey.rows == sum(rows[day] for day in range(10 - last, 10))
    with elute.read_log(folder, drop="day = 5") as log:
        assert log.survey.rows == sum(rows.values()) - rows[5]


def test_what_cannot_be_appended_is_refused(tmp_path: Path) -> None:
    """And leaves the folder as it was."""
    day, folder = write_day(tmp_path / "day.parquet", 1), tmp_path / "parts"
    assert call_elute("count", day, "--append", "--key", "day=1", "--out", folder).code == 0
    before = (folder / "parts.json").read_bytes()
    text = tmp_path / "text.parquet"
    table = pq.read_table(day)
    pq.write_table(table.set_column(1, "doc_id", table["doc_id"].cast(pa.string())), text)
    elute.count(day, tmp_path / "plain")
    for words, said in [
        ((day, "--append", "--key", "day"), "give a name and a value"),
        ((day, "--append", "--key", "week=1"), "have the key day, not week"),
        ((day, "--append", "--key", "day=2", "--drop", "week < 1"), "compare a name of the keys (day)"),
        ((day, "--append", "--key", "day=2", "--item", "doc_id"), "were counted with item"),
        ((day, "--append", "--key", "day=2", "--max-position", "2"), "have all positions"),
        ((day, "--append", "--key", "day=2", "--min-factor-impressions", "2"), "about all parts together"),
        ((text, "--append", "--key", "day=2"), "column 'doc_id' holds string here and int64"),
        ((day, "--key", "day=2"), "go with --append"),
        ((day,), "is a folder of parts"),
    ]:
        refused = call_elute("count", *words, "--out", folder)
        assert refused.code == 1
        assert said in refused.err, refused.err
        assert (folder / "parts.json").read_bytes() == before
    refused = call_elute("count", day, "--append", "--key", "day=2", "--out", tmp_path / "plain")
    assert refused.code == 1 and "holds the counts of one log" in refused.err
    refused = call_elute("check", day, "--last", "2")
    assert refused.code == 1 and "choose parts of a folder" in refused.err
    with pytest.raises(elute.EluteError, match="needs a `key=` here"):
        elute.count(table, folder, append=True)
    elute.count(day, tmp_path / "docs", item="doc_id")
    for source in (tmp_path / "docs", elute.read_log(day, item="doc_id").counts()):
        with pytest.raises(elute.EluteError, match="does not name the queries of its items"):
            elute.count(source, tmp_path / "new", append=True, key="day=1")


def test_counts_become_a_part(tmp_path: Path) -> None:
    """So do parts: those of a month, for instance."""
    days = [write_day(tmp_path / f"{day}.parquet", day) for day in range(3)]
    for day, path in enumerate(days[:2]):
        elute.count(path, tmp_path / "days", append=True, key=f"day={day}")
    elute.count(days[2], tmp_path / "plain")
    for number, source in enumerate((tmp_path / "days", tmp_path / "plain")):
        elute.count(source, tmp_path / "all", append=True, key=f"month={number}")
    pq.write_table(pa.concat_tables([pq.read_table(day) for day in days]), tmp_path / "all.parquet")
    one, other = (elute.check(tmp_path / name).to_dict() for name in ("all", "all.parquet"))
    assert one == other


def test_each_night_may_write_the_same_file(tmp_path: Path) -> None:
    """A part is what was counted."""
    folder, kept = tmp_path / "parts", []
    for day in range(4):
        kept.append(pq.read_table(write_day(tmp_path / "export.parquet", day, 100 + day)))
        elute.count(tmp_path / "export.parquet", folder, append=True, key=f"day={day}")
    pq.write_table(pa.concat_tables(kept), tmp_path / "all.parquet")
    assert elute.check(folder).to_dict() == elute.check(tmp_path / "all.parquet").to_dict()
    (tmp_path / "export.parquet").unlink()
    assert elute.check(folder, drop="day > 1").to_dict()["rows"] == kept[0].num_rows + kept[1].num_rows


def test_the_default_key_is_the_name_of_the_log(tmp_path: Path) -> None:
    day, folder = write_day(tmp_path / "1.parquet", 1), tmp_path / "parts"
    for _ in range(2):
        found = elute.count(day, folder, append=True)
    assert found.key == {"log": str(day.resolve())}
    assert (found.parts, found.replaced) == (1, True)
