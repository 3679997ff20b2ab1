"""What the pages on warehouses and schedules show runs: their Python, their scripts, the DAG, the model and the gate.

Airflow and dbt have stand-ins, which do with a task or a model what those do: bash runs the one, DuckDB the other.
"""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import subprocess
import sys
import types
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

import duckdb
import jinja2
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

import elute
from elute.simulation import toy
from shell import ROOT, run

pytest.importorskip("sqlglot")

WAREHOUSES, SCHEDULE = ((ROOT / "docs/how-to" / f"{page}.md").read_text("utf-8") for page in ("warehouses", "schedule"))


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def log() -> pa.Table:
    return toy.simulate(1_000, 40, broken=False, seed=7)


def verdict(folder: Path) -> dict[str, Any]:
    with elute.read_log(folder) as counted:
        return elute.check(counted).to_dict()


def test_the_python_of_the_page_on_warehouses(tmp_path: Path) -> None:
    table = log()
    with closing(duckdb.connect(str(tmp_path / "shop.db"))) as shop:
        shop.register("given", table)
        shop.execute("CREATE TABLE clicks AS SELECT * FROM given")
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as shop:
        shop.execute(f"CREATE TABLE clicks ({', '.join(table.column_names)})")
        shop.executemany("INSERT INTO clicks VALUES (?, ?, ?, ?, ?)", zip(*table.to_pydict().values(), strict=True))
        shop.commit()
    pq.write_table(table, tmp_path / "log.parquet")
    elute.count(tmp_path / "log.parquet", tmp_path / "expected", session="session_id")
    shown = blocks(WAREHOUSES, "python")
    assert len(shown) == 2
    for block in shown:
        with chdir(tmp_path):
            exec(compile(block, "warehouses.md", "exec"), {})  # noqa: S102 (our own page)
        assert verdict(tmp_path / "counts") == verdict(tmp_path / "expected")


def test_the_cells_that_docs_bring_are_those_of_the_statement() -> None:
    held = pq.read_table(ROOT / "docs/data/cells.parquet")
    with closing(duckdb.connect()) as shop:
        shop.register("clicks", log())
        made = shop.sql(elute.sql("clicks", "duckdb", session="session_id").statement).to_arrow_table()
    order = [(name, "ascending") for name in ("query_id", "doc_id", "position")]
    assert held.sort_by(order).to_pydict() == made.select(held.column_names).sort_by(order).to_pydict()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose commands `elute`, `duckdb` and `dbt` are these."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "stand_in.py").write_text(STAND_IN, encoding="utf-8")
    for name in ("elute", "duckdb", "dbt"):
        module = "-m elute" if name == "elute" else f"{shlex.quote(str(tools / 'stand_in.py'))} {name}"
        (tools / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module} "$@"\n', encoding="utf-8")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


STAND_IN = """
import pathlib, sys
import duckdb, jinja2
tool, *words = sys.argv[1:]
if tool == "duckdb":
    duckdb.connect(words[1], read_only=words[0] == "-readonly").execute(words[words.index("-c") + 1])
else:
    settings = {}
    model = jinja2.Template(pathlib.Path("models/cells.sql").read_text())
    text = model.render(config=lambda **given: settings.update(given) or "")
    assert settings["materialized"] == "external"
    duckdb.connect("shop.db").execute(f"COPY ({text}) TO '{settings['location']}'")
"""


def bash(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=False)


def write_days(folder: Path) -> None:
    table = log()
    table = table.append_column(
        "day", pa.array(["2026-10-31", "2026-11-14"] * (table.num_rows // 2 + 1))[: table.num_rows]
    )
    with closing(duckdb.connect(str(folder / "shop.db"))) as shop:
        shop.register("given", table)
        shop.execute("CREATE TABLE clicks AS SELECT * EXCLUDE (day), day::DATE AS day FROM given")
    pq.write_table(table.filter(pc.equal(table["day"], "2026-11-14")), folder / "day.parquet")


@pytest.mark.slow
def test_the_script_for_cron(place: Path) -> None:
    script = blocks(SCHEDULE, "bash")[0]
    for name, broken, code in (("sound", False, 0), ("broken", True, 3)):
        pq.write_table(toy.simulate(1_000, 40, broken=broken, seed=7), place / f"{name}.parquet")
        done = bash(script, f"{name}.parquet", name)
        assert done.returncode == code, done.stderr
        assert (place / name / "fit" / "fit.json").exists() == (code == 0)
        assert ("ends with 3, see broken/check.json" in done.stderr) == (code == 3)
        assert (place / name / "check.json").read_text().startswith("{")
    assert bash(script, "none.parquet", "none").returncode == 1


@pytest.mark.slow
def test_the_script_of_the_watch(place: Path) -> None:
    script = blocks(SCHEDULE, "bash")[2]
    table = log()
    for day in range(1, 10):
        if day == 9:
            seen = pc.and_(table["click"], pc.not_equal(table["position"], 3))
            table = table.set_column(table.column_names.index("click"), "click", seen)
        pq.write_table(table, place / f"{day}.parquet")
        done = bash(script, f"{day}.parquet", f"2026-11-0{day}", "daily")
        assert done.returncode == (4 if day == 9 else 0), done.stderr
        said = (place / "daily.ndjson").read_text().splitlines()
        assert bool(said) == (day == 9)
    assert '"code": "no_clicks"' in said[0]
    assert (place / "daily.html").exists()
    assert "elute_watch_alarms" in (place / "daily.prom").read_text()
    assert bash(script, "none.parquet", "2026-11-10", "daily").returncode == 1


def test_the_crontab() -> None:
    (crontab,) = blocks(SCHEDULE, "cron")
    *settings, line = crontab.splitlines()
    assert all(re.fullmatch(r"[A-Z_]+=\S+", setting) for setting in settings)
    minute, hour, *rest = line.split(maxsplit=5)
    assert (int(minute) < 60, int(hour) < 24, rest[:3]) == (True, True, ["*", "*", "*"])
    assert not re.search(r"(?<!\\)%", rest[3])
    command = rest[3].replace("\\%", "%")
    assert "nightly.sh" in command
    assert subprocess.run(["bash", "-n", "-c", command], check=False).returncode == 0


class Task:
    """What an operator of Airflow keeps, and which comes after it."""

    def __init__(self, task_id: str, bash_command: str) -> None:
        self.task_id, self.bash_command = task_id, bash_command
        TASKS.append(self)

    def __rshift__(self, other: Task) -> Task:
        ORDER.append((self.task_id, other.task_id))
        return other


TASKS: list[Task] = []
ORDER: list[tuple[str, str]] = []


@pytest.mark.slow
def test_the_airflow_dag(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tasks in order, each with the day that Airflow would put into its command."""
    given: dict[str, Any] = {}
    stand_ins: dict[str, dict[str, Any]] = {
        "airflow": {},
        "airflow.sdk": {"dag": lambda **options: given.update(options) or (lambda function: function)},
        "airflow.providers.standard.operators.bash": {"BashOperator": Task},
    }
    for name, members in stand_ins.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("airflow.providers", "airflow.providers.standard", "airflow.providers.standard.operators"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    TASKS.clear()
    ORDER.clear()
    (text,) = blocks(SCHEDULE, "python")
    exec(compile(text, "schedule.md", "exec"), {})  # noqa: S102 (our own page)
    assert given["schedule"] == "15 3 * * *"
    assert ORDER == [("cells", "count"), ("count", "check"), ("check", "fit")]
    write_days(place)
    for task in TASKS:
        command = jinja2.Template(task.bash_command).render(ds="2026-11-14").replace("/data", str(place))
        done = bash(command)
        assert done.returncode == 0, (task.task_id, done.stderr)
    day = place / "elute" / "2026-11-14"
    assert (day / "fit" / "fit.json").exists()
    elute.count(place / "day.parquet", place / "expected")
    found, expected = verdict(day / "counts"), verdict(place / "expected")
    kept = {"rows_filtered", "filters"}  # of a file that holds one day, nothing was left out
    assert {name: value for name, value in found.items() if name not in kept} == {
        name: value for name, value in expected.items() if name not in kept
    }


@pytest.mark.slow
def test_the_dbt_model(place: Path) -> None:
    write_days(place)
    (place / "models").mkdir()
    done = bash("set -e\n" + blocks(SCHEDULE, "bash")[1])
    assert done.returncode == 0, done.stderr
    with elute.read_log(place / "counts") as counted:
        assert counted.filters.where == "day >= DATE '2026-11-01'"
        assert counted.survey.rows == pq.read_metadata(place / "day.parquet").num_rows


def test_the_gate(tmp_path: Path) -> None:
    (text,) = blocks(SCHEDULE, "yaml")
    steps = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    check, report = (step["run"] for step in steps if step.get("run", "").startswith("elute "))
    (tmp_path / "logs").mkdir()
    for broken in (False, True):
        pq.write_table(toy.simulate(1_000, 40, broken=broken, seed=7), tmp_path / "logs" / "staging.parquet")
        assert run(check, tmp_path).exit_code == (3 if broken else 0)
    assert run(report, tmp_path).exit_code == 0
    assert (tmp_path / "report.html").exists()
