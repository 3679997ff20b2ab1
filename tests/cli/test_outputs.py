"""What is written harms nothing: no input is written over, links are followed, devices and pipes are written to, and
of two writers one wins whole."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import elute
from elute._util.files import write_text
from elute._util.folders import hold_folder, write_folder
from elute.cli import main
from elute.errors import EluteError

Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with one of everything that verbs read; only their names matter."""
    monkeypatch.chdir(tmp_path)
    number = np.arange(60)
    log = pa.table({"query_id": number % 3, "doc_id": number % 5, "position": number % 4 + 1, "click": number % 2})
    for folder in ("logs", "fit", "counts", "ranker"):
        (tmp_path / folder).mkdir()
    for name in ("log.parquet", "logs/a.parquet", "features.parquet", "scores.parquet"):
        pq.write_table(log, tmp_path / name)
    for name in ("plan.json", "audit.json", "labels.csv", "data.txt", "events.ndjson", "fit/fit.json", "db.duckdb"):
        (tmp_path / name).write_text("kept")
    (tmp_path / "ranker" / "train.json").write_text("kept")
    (tmp_path / "link.parquet").symlink_to("log.parquet")
    (tmp_path / "into").symlink_to("logs")
    return tmp_path


def ask(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, words)
    assert "Traceback" not in done.output
    return done.exit_code, done.stderr


OVER = [
    ("count log.parquet", "--out ."),
    ("count logs", "--out logs"),
    ("count logs", "--out logs/counts"),
    ("count into", "--out logs/counts"),
    ("count logs/*.parquet", "--out logs"),
    ("fit log.parquet --plan fit/fit.json", "--out fit"),
    ("fit log.parquet --model ipw --propensities fit", "--out fit"),
    ("fit log.parquet --model ipw --propensities fit", "--out fit/new"),
    ("repair log.parquet --method merge", "--out log.parquet"),
    ("repair log.parquet --method merge", "--out link.parquet"),
    ("repair link.parquet --method merge", "--out log.parquet"),
    ("repair log.parquet --method merge", "--queries log.parquet"),
    ("repair log.parquet --method swap", "--export log.parquet"),
    ("repair log.parquet --method swap --relevance scores.parquet", "--out scores.parquet"),
    ("repair log.parquet --method swap --exclude-items labels.csv", "--out labels.csv"),
    ("repair log.parquet --method merge --bias-features features.parquet", "--out features.parquet"),
    ("repair duckdb://db.duckdb#log --method merge", "--out db.duckdb"),
    ("repair --continue plan.json --log log.parquet", "--out plan.json"),
    ("repair --continue plan.json --log log.parquet", "--out log.parquet"),
    ("report log.parquet --plan plan.json --fit fit --audit audit.json", "--out log.parquet"),
    ("report log.parquet --plan plan.json --fit fit --audit audit.json", "--out plan.json"),
    ("report log.parquet --plan plan.json --fit fit --audit audit.json", "--out audit.json"),
    ("report log.parquet --plan plan.json --fit fit --audit audit.json", "--out fit/report.html"),
    ("report logs", "--out logs/report.html"),
    ("audit --fit fit --log logs --assumptions", "--charts logs/charts"),
    ("convert events.ndjson --from ubi", "--out events.ndjson"),
    ("judge fit --format trec", "--out fit/fit.json"),
    ("judge fit --format trec --labels labels.csv", "--out labels.csv"),
    ("judge fit --format lightgbm --log logs --features features.parquet", "--out ."),
    ("judge fit --format lightgbm --log logs --features features.parquet", "--out logs/bundle"),
    ("rank ranker --features features.parquet", "--out features.parquet"),
    ("rank ranker --features features.parquet", "--out ranker/train.json"),
    ("simulate --data data.txt", "--out data.txt"),
    ("simulate --data data.txt --scores scores.parquet", "--out scores.parquet"),
    ("simulate --data data.txt --swap plan.json", "--out plan.json"),
    ("train logs --features features.parquet --validation data.txt", "--out ."),
    ("train logs --features features.parquet", "--out logs"),
    ("reproduce identifiability-table1 --data logs", "--out logs/pages"),
]


@pytest.mark.parametrize(("words", "out"), OVER, ids=lambda words: str(words))
def test_no_input_is_written_over(world: Path, words: str, out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is read: opening a log would fail here."""
    monkeypatch.setattr("elute.log.require_names", None)
    before = {path: path.read_bytes() for path in world.rglob("*") if path.is_file()}
    code, said = ask(*words.split(), *out.split())
    option, target = out.split()
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith(f"elute: {option}: '{target}' ")
    assert said.endswith(", and would be written over; write to another place\n")
    assert {path: path.read_bytes() for path in world.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("words", "option"), sorted({(words, out.split()[0]) for words, out in OVER}))
def test_an_address_is_no_place_on_disk(world: Path, words: str, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elute.log.require_names", None)
    for store in ("https", "gs", "s3"):
        if (words.split()[0], store) == ("count", "s3"):  # it writes there
            continue
        code, said = ask(*words.split(), option, f"{store}://bucket/new")
        assert code == 1
        said = said.replace("://", ":/")  # a Path has one stroke left
        assert said == f"elute: {option}: '{store}:/bucket/new' is an address; write to disk, and copy it from there\n"
        assert not list(world.glob(f"{store}*"))


def test_results_may_lie_beside_what_is_spilled(world: Path) -> None:
    assert ask("count", "log.parquet", "--spill", ".", "--out", "new")[0] == 0
    assert ask("repair", "log.parquet", "--method", "merge", "--spill", ".", "--out", "new.json")[0] == 0


def test_two_results_go_to_two_places(world: Path) -> None:
    code, said = ask("repair", "log.parquet", "--method", "swap", "--out", "new.json", "--export", "./new.json")
    assert (code, said) == (1, "elute: --out and --export both write to 'new.json'; name two places\n")


@pytest.mark.parametrize("option", ["--plan", "--out", "LOG"])
def test_names_that_name_nothing(world: Path, option: str) -> None:
    for name in ("", "a\udcff"):
        words = ["report", "log.parquet" if option != "LOG" else name, "--out", "new.html"]
        code, said = ask(*(words if option == "LOG" else [*words, option, name]))
        assert code == 2
        assert f"{name!r} is no name of a file or folder" in said
        assert not (world / "new.html").exists()


def test_the_library_refuses_too(world: Path) -> None:
    refused: list[Callable[[], object]] = [
        lambda: elute.count("log.parquet", "."),
        lambda: elute.report("log.parquet", "log.parquet"),
        lambda: elute.rank("ranker", "features.parquet", "features.parquet"),
        lambda: elute.train("logs", ["features.parquet"], "logs"),
        lambda: elute.simulate("data.txt", "data.txt"),
        lambda: elute.simulate("data.txt", "new.parquet", scores="new.truth.parquet"),
        lambda: elute.convert("events.ndjson", "ubi", "events.ndjson"),
    ]
    (world / "new.truth.parquet").write_text("kept")
    for call in refused:
        with pytest.raises(EluteError, match=r"^`out=`: .* would be written over; write to another place$"):
            call()
    with pytest.raises(EluteError, match=r"^`out=`: 'gs:/bucket/new' is an address"):
        elute.count("log.parquet", Path("gs://bucket/new"))
    with pytest.raises(EluteError, match=r"^`out=`: 's3:/bucket/new' is an address"):
        elute.report("log.parquet", Path("s3://bucket/new"))
    assert elute.count("log.parquet", "counts").cells
    with elute.read_log("counts") as counts, pytest.raises(EluteError, match="is read as 'counts' too"):
        elute.count(counts, "counts")


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link.txt").symlink_to("far/target.txt")
    for text in ("new", "newer"):
        write_text(tmp_path / "link.txt", text)
        assert (tmp_path / "far" / "target.txt").read_text() == text
    assert (tmp_path / "link.txt").is_symlink()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        write_text(tmp_path / "loop", "lost")
    assert (tmp_path / "loop").is_symlink()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "link.txt", "loop", "target.txt"]


def test_permissions_are_kept(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old")
    umask = os.umask(0o022)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~umask
    (tmp_path / "a.txt").chmod(0o640)
    write_text(tmp_path / "a.txt", "new")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_what_must_not_be_written_to_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text(tmp_path / "a.txt", "old")
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)  # as for anybody but root
    with pytest.raises(PermissionError):
        write_text(tmp_path / "a.txt", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "old")]


def test_devices_and_pipes_are_written_to(tmp_path: Path) -> None:
    """What is open already is written from where it is, not from its beginning."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "through")
    reader.join()
    assert read == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    write_text("/dev/null", "nothing")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(OSError, match="No space left on device"):
        write_text("/dev/full", "much")
    script = "from elute._util.files import write_text as w; print('a'); w('/dev/stdout', 'b\\n'); print('c')"
    for target in ("file", None):
        with (tmp_path / "file").open("wb") as file:
            out = file if target else subprocess.PIPE
            done = subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
        assert (done.stdout or (tmp_path / "file").read_bytes()) == b"a\nb\nc\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pipe"]


def test_nothing_stands_beside_a_pipe(world: Path) -> None:
    (world / "letor.txt").write_text("".join(f"{n % 3} qid:{n // 4} 1:0.{n}\n" for n in range(40)))
    code, _ = ask("simulate", "--data", "letor.txt", "--sessions", "50", "--out", "/dev/null", "--json")
    assert code == 0
    assert not list(Path("/dev").glob("*.parquet"))


def test_a_folder_is_written_all_or_none(tmp_path: Path) -> None:
    def put(*names: str) -> Generator[None, None, None]:
        with write_folder(tmp_path / "out", "mark.json", ("a", "b")) as new:
            for name in names:
                (new / name).write_text(name)
            yield

    list(put("a", "b", "mark.json"))
    (tmp_path / "out" / "own").write_text("somebody's")
    half = put("a")
    next(half)
    with pytest.raises(ZeroDivisionError):
        half.throw(ZeroDivisionError())
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "b", "mark.json", "own"]
    list(put("a", "mark.json"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "mark.json", "own"]
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "new"):
        with pytest.raises(ZeroDivisionError), hold_folder(tmp_path / folder, "mark.json"):
            raise ZeroDivisionError
    assert (tmp_path / "empty").exists()
    assert not (tmp_path / "new").exists()


COUNT = """
import sys, time
import elute, elute.engines.counts_folder.writing as writing
whole = writing._cell_table
def slowly(chunk):
    print("writing", flush=True)
    sys.stdin.read()
    return whole(chunk)
writing._cell_table = slowly
elute.count(sys.argv[1], "out")
"""


@pytest.mark.parametrize("killed", [False, True])
def test_of_two_writers_one_wins_whole(world: Path, killed: bool) -> None:
    """The second says so; one that was killed does not stand in the way, and leaves nothing."""
    command = [sys.executable, "-c", COUNT, "log.parquet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "writing\n"
        code, said = ask("count", "logs", "--out", "out")
        assert (code, said.splitlines()[-1]) == (
            1,
            f"elute: '{world / 'out'}' is being written by another process; wait for it, or name another folder",
        )
        assert ask("check", "out")[0] == 1
        if killed:
            first.kill()
        first.communicate("")
    if killed:
        assert not (world / "out" / "counts.json").exists()
        assert ask("count", "logs", "--out", "out")[0] == 0
    assert json.loads((world / "out" / "counts.json").read_text())["log"] == ("logs" if killed else "log.parquet")
    names = ["cells.parquet", "counts.json", "factors.parquet", "items.parquet"]
    assert sorted(path.name for path in (world / "out").iterdir()) == names
    assert elute.read_log("out").counts().n_cells == 60
