"""Verbs that are killed in the middle: nothing is left that a reader would take for a result, and a second run starts
cleanly, gives the answer of an undisturbed one and removes what the first has left.

The processes are real. They stop at a given point, say so and wait there to be killed, which does not depend on how
fast the machine is; one more is killed while a server keeps it waiting.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from file_server import serving

from conftest import Outcome
from elute._util import locks, scratch
from elute._util.files import write_text
from elute.cli import main
from elute.engines.duckdb.source import DuckDBSource
from elute.errors import EluteError
from elute.fits.fit import Fit

HALTING = """
import signal, sys, time
import elute._util.files
from elute.cli import main
from elute.cli.progress import Reporter

point = sys.argv.pop(1)
whole, told = elute._util.files.write_atomically, Reporter.__call__

def halt(here):
    if point in here:
        print("halted", flush=True)
        time.sleep(600)

class Halting:
    def __init__(self, target):
        self.target, self.inner = target, whole(target)

    def __enter__(self):
        return self.inner.__enter__()

    def __exit__(self, *error):
        halt("written " + self.target.name)
        return self.inner.__exit__(*error)

def tell(self, stage, done, total):
    halt("stage " + stage)
    told(self, stage, done, total)

elute._util.files.write_atomically, Reporter.__call__ = Halting, tell
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CSV, which goes through a scratch table."""
    random, rows = np.random.default_rng(7), 4000
    columns = {"query_id": 40, "doc_id": 10, "position": 5}
    values = [random.integers(0, limit, rows) for limit in columns.values()]
    lines = [f"{q},{d},{p},{c}" for q, d, p, c in zip(*values, random.integers(0, 2, rows), strict=True)]
    path = tmp_path_factory.mktemp("log") / "log.csv"
    path.write_text("\n".join([",".join([*columns, "click"]), *lines]) + "\n")
    return path


def ask(*arguments: object) -> Outcome:
    """The command line in this process."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return Outcome(done.exit_code, done.stdout, done.stderr)


def interrupted(point: str, by: signal.Signals, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A process that was sent a signal where it halted."""
    command = [sys.executable, "-c", HALTING, point, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(by)
        out, err = process.communicate(timeout=60)
    assert first == "halted\n", err
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def alike(one: Path, two: Path) -> bool:
    """Whether two folders hold the same files, and the same values in their tables."""
    names = sorted(path.name for path in one.iterdir())
    tables = [[pq.read_table(folder / name) for folder in (one, two)] for name in names if name.endswith(".parquet")]
    return names == sorted(path.name for path in two.iterdir()) and all(
        first.column_names == second.column_names
        and all(a.to_pylist() == pytest.approx(b.to_pylist(), nan_ok=True) for a, b in zip(first, second, strict=True))
        for first, second in tables
    )


@pytest.mark.parametrize(
    ("point", "by"),
    [
        ("written cells.parquet", signal.SIGKILL),
        ("written counts.json", signal.SIGTERM),
        ("written counts.json", signal.SIGINT),
    ],
)
def test_count(log: Path, tmp_path: Path, point: str, by: signal.Signals) -> None:
    out, spill, whole = tmp_path / "counts", tmp_path / "spill", tmp_path / "whole"
    spill.mkdir()
    words = ("count", log, "--spill", spill, "--out")
    done = interrupted(point, by, *words, out)
    assert done.returncode == (130 if by == signal.SIGINT else -by)
    assert "Traceback" not in done.stderr
    assert not (out / "counts.json").exists()
    assert ask("check", out).code == 1
    assert bool(list(spill.iterdir())) == (by != signal.SIGINT)
    assert ask(*words, whole).code == 0
    assert list(spill.iterdir()) == []
    assert ask(*words, out).code == 0
    assert alike(out, whole)
    assert ask("check", out, "--json").out == ask("check", log, "--json").out


def test_check(log: Path, tmp_path: Path) -> None:
    words = ("check", log, "--memory", "512MB", "--spill", tmp_path, "--json")
    done = interrupted("stage reading", signal.SIGKILL, *words)
    assert done.stdout == ""
    assert [path.name.partition("-")[0] for path in tmp_path.iterdir()] == ["elute"]
    assert ask(*words).out == ask("check", log, "--json").out
    assert list(tmp_path.iterdir()) == []


def test_fit(log: Path, tmp_path: Path) -> None:
    """While it is written over an older fit, which stays as it was: whole, and told from the new one by its model."""
    out, spill, whole = tmp_path / "fit", tmp_path / "spill", tmp_path / "whole"
    spill.mkdir()
    words = ("fit", log, "--memory", "512MB", "--spill", spill, "--out")
    assert ask("fit", log, "--model", "naive", "--out", out).code == 0
    older = {path.name: path.read_bytes() for path in out.iterdir()}
    interrupted("written relevance.parquet", signal.SIGKILL, *words, out)
    assert {name: (out / name).read_bytes() for name in older} == older
    assert (Fit.load(out).model, Fit.load(out).relevance.num_rows) == ("naive", 400)
    assert len(list(spill.iterdir())) == 1
    assert ask(*words, out).code == 0
    assert list(spill.iterdir()) == []
    assert ask(*words, whole).code == 0
    assert alike(out, whole)


def test_while_a_log_is_fetched(tmp_path: Path) -> None:
    """The server keeps the process waiting; its scratch folder is there by then."""
    sink = io.BytesIO()
    table = pa.table({name: np.arange(20_000) % 7 for name in ("query_id", "doc_id", "position")})
    pq.write_table(table.append_column("click", pa.array(np.zeros(20_000, int))), sink, use_dictionary=False)
    with serving() as http:
        http.files["/log.parquet"] = sink.getvalue()
        http.stalls_before = len(sink.getvalue()) // 2
        words = ["count", f"{http.url}/log.parquet", "--spill", str(tmp_path), "--out", str(tmp_path / "counts")]
        command = [sys.executable, "-c", "from elute.cli import main; main()", *words]
        with subprocess.Popen(command) as process:
            assert http.stalled.wait(60)
            process.kill()
        assert len(list(tmp_path.glob("elute-*"))) == 1
        assert not (tmp_path / "counts").exists()
        http.stalls_before = None
        assert ask(*words).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["counts"]


def test_ctrl_c_during_a_query_is_ctrl_c() -> None:
    """DuckDB makes this error of it, which would be shown with a traceback."""
    source = DuckDBSource(pa.table({"n": [1]}))
    with pytest.raises(KeyboardInterrupt), source.translate_errors():
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="another"), source.translate_errors():
        raise RuntimeError("another")
    source.close()


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    """Also what is somebody's own and only has such a name."""
    (tmp_path / "elute-mine").mkdir()
    (tmp_path / "elute-mine" / "diary").write_text("dear")
    one, remove_one = scratch.make_folder(tmp_path)
    two, remove_two = scratch.make_folder(tmp_path)
    assert one.exists()
    remove_one()
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "elute-mine", two])
    remove_two()
    assert [path.name for path in tmp_path.rglob("*")] == ["elute-mine", "diary"]
    with pytest.raises(EluteError, match=r"cannot write to '.*missing': No such file or directory; name a folder"):
        scratch.make_folder(tmp_path / "missing")


def test_unfinished_files_of_dead_processes_are_removed(tmp_path: Path) -> None:
    """Of processes of this machine, in whichever container; of other machines, whose locks may not be seen here, after
    a week. Files of others that only look alike stay."""
    here, elsewhere = locks.name_machine(), "0" * 8
    names = {
        f".a[1].txt.{here}{1:08x}.tmp": False,
        f".a[1].txt.{here}{2:08x}.tmp": True,
        f".a[1].txt.{elsewhere}{3:08x}.tmp": True,
        f".a[1].txt.{elsewhere}{4:08x}.tmp": False,
        ".a[1].txt.mine.tmp": True,
        f".a1.txt.{here}{1:08x}.tmp": True,
        f".b.txt.{here}{1:08x}.tmp": True,
    }
    for name in names:
        (tmp_path / name).write_text("half")
    *_, old = (path for path in sorted(tmp_path.glob(f".a*{elsewhere}*")))
    os.utime(old, (0, 0))
    at_work = locks.take(tmp_path / f".a[1].txt.{here}{2:08x}.tmp")
    assert at_work is not None
    write_text(tmp_path / "a[1].txt", "whole")
    os.close(at_work)
    assert {name: (tmp_path / name).exists() for name in names} == names
    assert (tmp_path / "a[1].txt").read_text() == "whole"
