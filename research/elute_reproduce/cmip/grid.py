"""The grid of fits that the CMIP paper's tables and figures are all read from (section 5.3), kept in one Parquet file.

4 users × 2 logging policies × 7 models, for every seed and both readings (the text's and the public code's), each
measured under 3 test policies at 2 temperatures. It takes hours on a laptop, so it is kept beside the pages
(`data/cmip-grid.parquet` in the folder of `--out`) and used again while data and settings are the same.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elute._util.files import write_parquet
from elute_reproduce.cmip import world as worlds
from elute_reproduce.cmip.documents import GradedSet, load
from elute_reproduce.cmip.fits import (
    MODELS,
    LogKey,
    Logs,
    Row,
    Sizes,
    measure_counted_models,
    measure_recurrent_models,
    simulate,
)
from elute_reproduce.cmip.world import LOGGING, READINGS, USERS, PolicyName, Reading, UserName
from elute_reproduce.study import Study

Floats = NDArray[np.float64]

FILE = Path("data") / "cmip-grid.parquet"
PAPER = Sizes()
SMALL = Sizes(epochs=40, rate=0.003)
"""A small set has few batches an epoch: the paper's 10 epochs at 0.001 would end far from the best likelihood."""
_KEY = b"elute"


@dataclass(frozen=True)
class Choice:
    """Where the text and the public code differ: which fits, and what of them is read."""

    name: str
    reading: Reading = "text"
    temperature: float = worlds.TEMPERATURE
    """Of the test rankings under the other policy."""
    inside: float = worlds.TEMPERATURE
    """Of the test rankings under the logging policy."""
    perplexity: str = "perplexity"
    """Or "conditional": given the session's clicks above."""
    cmip: str = "cmip"
    """Against the policy's expected rank; or "cmip_score": against its raw score."""
    centred: bool = False
    """Perplexities less the mean of the run's seven models: without what runs, not models, differ by."""


TEXT = Choice("text")
CODE = Choice("code", "code", 0.0, 0.0, "conditional", "cmip_score")
CHOICES = (
    TEXT,
    Choice("text, test rankings at temperature 0", temperature=0.0, inside=0.0),
    Choice("text, conditional perplexity", perplexity="conditional"),
    Choice("text, CMIP against the policy's raw score", cmip="cmip_score"),
    Choice("text, users and oracle of the code", "code"),
    CODE,
)
"""The text, each difference by itself, and all of them, which is the code."""


@dataclass(frozen=True, eq=False)
class Cell:
    """The fits of one user, logging and test policy: arrays by (model, seed)."""

    user: UserName
    logging: PolicyName
    test: PolicyName
    inside: Floats
    """Perplexity under the logging policy."""
    ndcg: Floats
    cmip: Floats
    outside: Floats
    """Perplexity under the test policy."""


@dataclass(frozen=True, eq=False)
class FitGrid:
    """All rows, and what they were made of."""

    graded: GradedSet
    sizes: Sizes
    seeds: int
    table: pa.Table

    def cells(self, choice: Choice = TEXT) -> list[Cell]:
        """The 16 configurations in the order of Table 1."""
        return [
            self._cell(choice, user, logging, test)
            for user in USERS
            for logging in LOGGING
            for test in (*(p for p in LOGGING if p != logging), "Uniform")
        ]

    def _cell(self, choice: Choice, user: UserName, logging: PolicyName, test: PolicyName) -> Cell:
        fits = {"reading": choice.reading, "user": user, "logging": logging}
        own = self._rows(**fits, test=logging, temperature=choice.inside)
        other = self._rows(**fits, test=test, temperature=choice.temperature)
        inside, outside = own[choice.perplexity], other[choice.perplexity]
        if choice.centred:
            inside, outside = (values - values.mean(axis=0) for values in (inside, outside))
        return Cell(user, logging, test, inside, own["ndcg"], own[choice.cmip], outside)

    def _rows(self, **where: object) -> dict[str, Floats]:
        """Figures by (model, seed) of the rows that agree with `where`."""
        keep = np.ones(self.table.num_rows, np.bool_)
        for name, value in where.items():
            keep &= self.table[name].to_numpy(zero_copy_only=False) == value
        part = self.table.filter(pa.array(keep))
        model = [MODELS.index(name) for name in part["model"].to_pylist()]
        seed = part["seed"].to_numpy()
        out = {}
        for name in ("perplexity", "conditional", "ndcg", "cmip", "cmip_score"):
            values = np.full((len(MODELS), self.seeds), np.nan)
            values[model, seed] = part[name].to_numpy()
            out[name] = values
        return out


def load_grid(study: Study) -> FitGrid:
    """Read the grid where it was kept, if it is of the same data and settings; else make it, and keep it."""
    graded = load(study.data)
    sizes = PAPER if graded.is_papers else SMALL
    made_of: dict[str, object] = {"data": graded.digest, "sizes": asdict(sizes)}
    kept = None if study.out is None else study.out / FILE
    table = None if kept is None else _read_kept(kept, made_of, study.seeds)
    if table is None:
        table = pa.Table.from_pylist(make(graded, sizes, study))
        if kept is not None:
            write_parquet(kept, table.replace_schema_metadata({_KEY: json.dumps(made_of | {"seeds": study.seeds})}))
    return FitGrid(graded, sizes, study.seeds, table)


def _read_kept(path: Path, made_of: dict[str, object], seeds: int) -> pa.Table | None:
    """The rows of the seeds asked for; None where the file is not there or not of this data and these settings."""
    if not path.exists():
        return None
    table = pq.read_table(path)
    found = json.loads((table.schema.metadata or {}).get(_KEY, b"{}"))
    if found.pop("seeds", 0) < seeds or found != made_of:
        return None
    return table.filter(pa.array(table["seed"].to_numpy() < seeds))


def make(graded: GradedSet, sizes: Sizes, study: Study) -> list[Row]:
    """Every fit. Logs of one user and policy are fitted together, all seeds at once."""
    kinds = [(reading, user, logging) for reading in READINGS for user in USERS for logging in LOGGING]
    rows: list[Row] = []
    for done, (reading, user, logging) in enumerate(kinds):
        study.progress(f"{user} users, {logging} logging ({reading})", done, len(kinds))
        jobs = [LogKey(reading, user, logging, seed) for seed in range(study.seeds)]
        logs = [simulate(graded.documents[worlds.list_length(reading, user)], job, sizes) for job in jobs]
        rows += fit_logs(jobs, logs, sizes)
    return rows


def fit_logs(jobs: list[LogKey], logs: list[Logs], sizes: Sizes) -> list[Row]:
    """The rows of several logs of one kind."""
    out = [row for job, own in zip(jobs, logs, strict=True) for row in measure_counted_models(job, own, sizes)]
    return out + list(measure_recurrent_models(jobs, logs, sizes))
