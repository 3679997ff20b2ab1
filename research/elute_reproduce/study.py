"""What every reproduction is handed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elute.progress import Progress, silent

SEEDS = 10
"""Runs to average over, as in the papers."""


@dataclass(frozen=True)
class Study:
    """Where the data are, how many runs to average over, whom to tell how far it is, and where pages go."""

    data: Path | None = None
    seeds: int = SEEDS
    progress: Progress = silent
    out: Path | None = None
    """The folder that its page goes to, for what several pages share; None: no page is written."""

    def command(self, name: str) -> str:
        """The command line that runs it again; the data's place is the reader's own."""
        words = ["elute reproduce", name]
        if self.seeds != SEEDS:
            words.append(f"--seeds {self.seeds}")
        return " ".join(words)

    def generators(self, count: int = 1) -> list[list[np.random.Generator]]:
        """For each run `count` independent random streams; the same for every method of a run."""
        runs = np.random.SeedSequence(0).spawn(self.seeds)
        return [[np.random.default_rng(stream) for stream in run.spawn(count)] for run in runs]
