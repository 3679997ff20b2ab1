"""Raw results of trainings in one small Parquet file a data set, so that tables and figures can be made again without
hours of training. A row is one seed of one learner under one paradigm; `key` says what made it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from elute._util.files import write_parquet
from elute.errors import EluteError

Floats = NDArray[np.float64]

AT = (1, 3, 5, 10)
METRICS = (*(f"nDCG@{k}" for k in AT), *(f"ERR@{k}" for k in AT))

_CURVE = pa.list_(pa.float32())
_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("paradigm", pa.string()),
        ("learner", pa.string()),
        ("seed", pa.int32()),
        ("steps", pa.list_(pa.int32())),
        ("log_ratio", pa.list_(_CURVE)),
        ("validation", _CURVE),
        ("test", _CURVE),
        ("log_se", _CURVE),
        ("merges", pa.int32()),
        ("seconds", pa.float32()),
        ("device", pa.string()),
        *((metric, _CURVE) for metric in METRICS),
    ]
)


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """One seed of one learner under one paradigm."""

    key: str
    paradigm: str
    learner: str
    seed: int
    steps: list[int]
    log_ratio: list[list[float]]
    """At each of the steps: log propensities against the last position."""
    validation: list[float]
    test: list[float]
    """nDCG@10 at each of the steps."""
    log_se: list[float]
    """Of the last log ratios; NaN where the learner has none."""
    merges: int
    seconds: float
    """Of all seeds together, divided among them."""
    device: str
    metrics: dict[str, list[float]]
    """By name of the metric: its value for every test query."""

    @property
    def ratios(self) -> Floats:
        """(steps, positions): propensities against the last position, as the paper plots them."""
        return np.exp(np.asarray(self.log_ratio, np.float64))

    def mean(self, metric: str) -> float:
        """Over test queries."""
        return float(np.mean(self.metrics[metric]))


def load(path: Path) -> list[TrainingRun]:
    """The runs in a file; none where there is no file."""
    if not path.exists():
        return []
    try:
        table = pq.read_table(path, schema=_SCHEMA)
    except (OSError, pa.ArrowInvalid, ValueError) as error:
        raise EluteError(f"{path} does not contain results of trainings ({error}); delete it to train anew") from error
    return [TrainingRun(**_read_fields(row)) for row in table.to_pylist()]


def save(path: Path, runs: list[TrainingRun]) -> None:
    """Write the runs, whole or not at all."""
    rows = [asdict(run) for run in runs]
    for row in rows:
        row |= row.pop("metrics")
    write_parquet(path, pa.Table.from_pylist(rows, _SCHEMA))


def _read_fields(row: dict[str, Any]) -> dict[str, Any]:
    metrics = {name: row.pop(name) for name in METRICS}
    return {**row, "metrics": metrics}
