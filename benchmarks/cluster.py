"""`elute check` and `elute fit` on a standalone Spark cluster: a master and two workers, processes of their own.

    python -m benchmarks.cluster            # BENCH_ROWS=200000 by default

elute travels to the executors as an archive, as docs/how-to/spark-cluster.md says; their Python has its dependencies. A
worker is killed while the check runs. The whole JSON must be that of the embedded engine, and so must the propensities
of the fit. Prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks import logs

HOST = "127.0.0.1"
MASTER, WORKER = (f"org.apache.spark.deploy.{name}" for name in ("master.Master", "worker.Worker"))
SECONDS = 300
"""That a process gets to start."""


def find_spark() -> Path:
    import pyspark

    return Path(os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent))


@contextmanager
def running(what: str, *options: str, says: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of Spark's, once its log says that it is ready; ended afterwards, with what it has started."""
    said = folder / f"{what.rsplit('.', 1)[-1]}-{len(list(folder.glob('*.log')))}.log"
    environment = {**os.environ, "SPARK_HOME": str(find_spark()), "SPARK_LOCAL_IP": HOST}
    environment |= {"SPARK_LOCAL_DIRS": str(folder), "SPARK_WORKER_DIR": str(folder / said.stem)}
    command = [str(find_spark() / "bin" / "spark-class"), what, "--host", HOST, *options]
    with said.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        wait_for(lambda: says in said.read_text(errors="replace"), f"{what} did not start: {said}")
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """It and its children, without asking."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(ready: Any, failed: str) -> None:
    until = time.monotonic() + SECONDS
    while not ready():
        if time.monotonic() > until:
            sys.exit(failed)
        time.sleep(0.2)


def find_port() -> int:
    with socket.socket() as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])


def pack_elute(folder: Path) -> Path:
    """elute as it is here, to be unpacked beside the executors."""
    import elute

    target = folder / "elute.tar.gz"
    with tarfile.open(target, "w:gz", compresslevel=1) as archive:
        archive.add(
            Path(elute.__file__).parent,
            "elute",
            filter=lambda entry: None if entry.name.endswith(".pyc") else entry,
        )
    return target


def run_elute(words: list[str], settings: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """The command, with settings of Spark where they are given."""
    environment = {**os.environ, "SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable}
    if settings is not None:
        options = " ".join(f"--conf {name}={value}" for name, value in settings.items())
        environment["PYSPARK_SUBMIT_ARGS"] = f"{options} pyspark-shell"
        words = [*words, "--engine", "spark"]
    command = [sys.executable, "-c", "from elute.cli import main; main()", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read_json(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate()
    if process.returncode not in (0, 3):
        sys.exit(f"elute failed ({process.returncode}): {err[-2000:]}")
    found: dict[str, Any] = json.loads(out)
    return found


def main() -> None:
    path = str(logs.click_log(int(os.environ.get("BENCH_ROWS", "200000"))))
    with tempfile.TemporaryDirectory(prefix="elute-cluster-") as place:
        folder = Path(place)
        address = f"spark://{HOST}:{(port := find_port())}"
        settings = {
            "spark.master": address,
            "spark.archives": f"{pack_elute(folder)}#packed",
            "spark.executorEnv.PYTHONPATH": "packed",
            "spark.executor.memory": "1g",
        }
        worker = ("--cores", "1", "--memory", "1500m", address)
        with (
            running(MASTER, "--port", str(port), says="New state: ALIVE", folder=folder),
            running(WORKER, *worker, says="Successfully registered", folder=folder) as victim,
            running(WORKER, *worker, says="Successfully registered", folder=folder),
        ):
            check = ["check", path, "--bias", "position,context", "--json"]
            begun = run_elute([*check, "--spill", place], settings)
            try:
                killed = kill_once_it_works(victim, folder, begun)
                found, expected = read_json(begun), read_json(run_elute(check))
            finally:
                begun.kill()
            fits = [folder / name for name in ("there", "here")]
            fit = ["fit", path, "--relevance-prior", "none", "--json", "--out"]
            read_json(run_elute([*fit, str(fits[0]), "--memory", "512MB", "--spill", place], settings))
            read_json(run_elute([*fit, str(fits[1])]))
        there, here = (pq.read_table(one / "propensities.parquet").sort_by("position") for one in fits)
        apart = float(np.abs(np.log(there["propensity"].to_numpy() / here["propensity"].to_numpy())).max())
    said = {"same": found == expected, "killed": killed, "fit_apart": apart}
    print(json.dumps(said))
    sys.exit(0 if said["same"] and killed and apart < 1e-3 else 1)


def kill_once_it_works(victim: subprocess.Popen[bytes], folder: Path, check: subprocess.Popen[str]) -> bool:
    """A worker, as soon as it has an executor whose Python has begun."""

    def has_begun() -> bool:
        started = [log.read_text(errors="replace") for log in folder.glob("Worker-1*/app-*/*/stderr")]
        return check.poll() is not None or any(re.search(r"Running task", said) for said in started)

    wait_for(has_begun, "no executor began")
    if check.poll() is not None:
        return False
    end(victim)
    return True


if __name__ == "__main__":
    main()
