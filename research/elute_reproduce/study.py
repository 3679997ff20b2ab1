"""What every reproduction is handed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from elute._util.threads import use_threads
from elute.progress import Progress, silent

Found = TypeVar("Found")

_THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

SEEDS = 10
"""Runs to average over, as in the papers."""


@dataclass(frozen=True)
class Study:
    """Where the data are, how many runs to average over, whom to tell how far it is, where pages go, and on how many
    cores it runs."""

    data: Path | None = None
    seeds: int = SEEDS
    progress: Progress = silent
    out: Path | None = None
    """The folder that its page goes to, for what several pages share; None: no page is written."""
    cores: int = 1

    def command(self, name: str) -> str:
        """The command line that runs it again; the data's place is the reader's own."""
        words = ["elute reproduce", name]
        if self.seeds != SEEDS:
            words.append(f"--seeds {self.seeds}")
        return " ".join(words)

    def map(self, words: str, task: Callable[..., Found], jobs: Sequence[tuple[Any, ...]]) -> list[Found]:
        """`task(*job)` of every job, in their order, in as many processes as there are cores."""
        found: list[Found] = []
        if self.cores == 1 or len(jobs) < 2:
            for job in jobs:
                self.progress(words, len(found), len(jobs))
                found.append(task(*job))
            return found
        os.environ |= dict.fromkeys(_THREADS, "1")  # read where a process starts: the processes are all the cores
        workers = min(self.cores, len(jobs))
        with ProcessPoolExecutor(workers, get_context("spawn"), initializer=use_threads, initargs=(1,)) as pool:
            for one in [pool.submit(task, *job) for job in jobs]:
                self.progress(words, len(found), len(jobs))
                found.append(one.result())
        for name in _THREADS:
            del os.environ[name]
        return found

    def generators(self, count: int = 1) -> list[list[np.random.Generator]]:
        """For each run `count` independent random streams; the same for every method of a run."""
        runs = np.random.SeedSequence(0).spawn(self.seeds)
        return [[np.random.default_rng(stream) for stream in run.spawn(count)] for run in runs]
