"""The trainings of `upe-readings`: which there are, made once and kept."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from elute._util.files import write_parquet
from elute.errors import EluteError
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment.worlds import STRONG, WEAK, Graded
from elute_reproduce.upe.untried.trainings import (
    AFTER_CODE,
    AT_REST,
    FIRST,
    NOW,
    RANDOM_START,
    SEPARATE,
    SMALL,
    STAGED,
    TARGET,
    TEXT,
    FoundReading,
    Size,
    train_reading,
)

RATES = (0.01, 0.05)
"""The ends of what the paper's 5.1 tunes within, by learner."""
OWN_RATE = 0.005
"""The public code's."""
TUNED = (TARGET, TEXT, STAGED, AFTER_CODE)


class ReadingCell(NamedTuple):
    """What is trained once a seed."""

    paradigm: str
    reading: str
    rate: float


CELLS = (
    *(ReadingCell(STRONG, name, RATES[1]) for name in (*TUNED, SEPARATE)),
    *(ReadingCell(STRONG, name, RATES[0]) for name in TUNED),
    *(ReadingCell(RANDOM_START, name, RATES[1]) for name in TUNED),
    *(ReadingCell(WEAK, name, RATES[1]) for name in (*TUNED, SEPARATE)),
    *(ReadingCell(policy, FIRST, OWN_RATE) for policy in (STRONG, RANDOM_START)),
    *(ReadingCell(policy, AT_REST, RATES[1]) for policy in (STRONG, WEAK)),
    *(ReadingCell(policy, NOW, OWN_RATE) for policy in (STRONG, WEAK)),
    ReadingCell(WEAK, FIRST, OWN_RATE),
)

_VERSION = 1
"""Of what a training means here: raise it with every change of a reading that changes results."""
_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("paradigm", pa.string()),
        ("reading", pa.string()),
        ("rate", pa.float64()),
        ("seed", pa.int32()),
        *(
            (name, pa.float64())
            for name in ("trained", "target", "exact", "own", "reached", "ndcg", "validation", "seconds")
        ),
    ]
)


@dataclass(frozen=True)
class KeptReading:
    """One training, as it is kept."""

    key: str
    paradigm: str
    reading: str
    rate: float
    seed: int
    trained: float
    target: float
    exact: float
    own: float
    reached: float
    ndcg: float
    validation: float
    seconds: float


ReadingGrid = Mapping[ReadingCell, list[KeptReading]]
"""Seed by seed."""


def collect(study: Study, graded: Graded, most: int, size: Size = SMALL) -> ReadingGrid:
    """All cells: those that are kept, and the others trained now, and kept."""
    path = None if study.out is None else study.out / "data" / "upe-readings.parquet"
    kept = {run.key: run for run in _load(path)}
    found: dict[ReadingCell, list[KeptReading]] = {cell: [] for cell in CELLS}
    jobs = [(seed, cell) for seed in range(min(study.seeds, most)) for cell in CELLS]
    for done, (seed, cell) in enumerate(jobs):
        study.progress(f"{cell.paradigm}: {cell.reading} at {cell.rate:g}", done, len(jobs))
        key = key_of(graded, cell, seed, size)
        if key not in kept:
            began = time.perf_counter()
            own: FoundReading = train_reading(graded, *cell, seed, size)
            kept[key] = KeptReading(key, *cell, seed, **asdict(own), seconds=time.perf_counter() - began)
            if path is not None:
                write_parquet(path, pa.Table.from_pylist([asdict(run) for run in kept.values()], _SCHEMA))
        found[cell].append(kept[key])
    return found


def key_of(graded: Graded, cell: ReadingCell, seed: int, size: Size) -> str:
    """What decides a training, short."""
    words = (_VERSION, graded.digest, tuple(cell), seed, size)
    return hashlib.sha256(repr(words).encode()).hexdigest()[:16]


def _load(path: Path | None) -> list[KeptReading]:
    if path is None or not path.exists():
        return []
    try:
        rows = pq.read_table(path, schema=_SCHEMA).to_pylist()
    except (OSError, pa.ArrowInvalid, ValueError) as error:
        raise EluteError(f"{path} does not contain trainings of readings ({error}); delete it to train anew") from error
    return [KeptReading(**row) for row in rows]
