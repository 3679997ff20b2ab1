"""Ctrl-C ends a command in one line, within two seconds and with exit code 130, whatever runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WAYS = {
    "in Python": "while True: pass",
    "in a kernel": "import numpy as np, spin; print('spinning', flush=True); spin.spin(np.zeros(1))",
    "in threads": "import numpy as np, spin; from elute._util.threads import map_threads\n"
    "    print('spinning', flush=True); map_threads(spin.spin, [np.zeros(1)] * 2, 2)",
    "in a library that swallows it": "import time\n    while True:\n        try: time.sleep(60)\n"
    "        except BaseException: pass",
    "while unwinding takes long": "import time, contextlib\n    try: time.sleep(60)\n    finally: time.sleep(60)",
}

KERNEL = """
from numba import njit

@njit(nogil=True)
def spin(x):
    while x[0] < 1e18:
        x[0] += 1e-9
"""

VERB = """
import os, sys
sys.path.insert(0, {folder!r})
import click
import elute.cli.verbs.explain as verb
from elute._util import leaving
from pathlib import Path

@click.command()
def explain():
    left = Path({folder!r}) / "left"
    left.mkdir()
    leaving.note(left)
    print("ready", flush=True)
    {body}

verb.explain = explain
from elute.cli import main
sys.argv = ["elute", "explain"]
main(prog_name="elute")
"""


@pytest.mark.parametrize("way", WAYS)
def test_it_ends_at_once(way: str, tmp_path: Path) -> None:
    (tmp_path / "spin.py").write_text(KERNEL)
    script = VERB.format(folder=str(tmp_path), body=WAYS[way])
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        until = "spinning" if "spinning" in WAYS[way] else "ready"
        while process.stdout.readline().strip() != until:
            assert process.poll() is None
        time.sleep(1.5 if until == "spinning" else 0.2)  # while the kernel compiles, Python could still unwind
        began = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=20)
        seconds = time.monotonic() - began
    assert process.returncode == 130, err
    assert err == "elute: interrupted\n"
    assert seconds < 2.5  # two, and what a busy machine adds


def test_what_was_temporary_is_removed_where_nothing_unwinds(tmp_path: Path) -> None:
    script = VERB.format(folder=str(tmp_path), body="import time\n    try: time.sleep(60)\n    finally: time.sleep(60)")
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert (tmp_path / "left").is_dir()
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=20)
    assert not (tmp_path / "left").exists()


def test_no_virtual_machine_is_left_behind(tmp_path: Path) -> None:
    """A Spark whose machine takes forever to start; like the real one, it does not hear of Ctrl-C."""
    pytest.importorskip("pyspark")
    started = tmp_path / "started"
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(f"#!/bin/sh\ntouch {started}\nexec sleep 600\n")
    submit.chmod(0o755)
    command = [sys.executable, "-c", "from elute.cli import main; main()", "check", "log.parquet", "--engine", "spark"]
    environment = {**os.environ, "SPARK_HOME": str(tmp_path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        while not started.exists():
            assert process.poll() is None, process.stderr
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)  # ends when nobody holds the other end any more
    assert process.returncode == 130
    assert said.endswith("elute: interrupted\n")
