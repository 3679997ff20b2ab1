"""A folder for XGBoost: Parquet, as its text reader is deprecated, with `label`, `qid` and a column a feature.

XGBoost takes one weight a group, so weights are in a table of groups. With `lambdarank_unbiased` the place of a row in
its group is its position, whatever else is known: rows are in the order shown, and pages with gaps are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elute._util.files import whole, write_parquet
from elute.errors import EluteError
from elute.io.features import Features
from elute.judging.groups import Groups

WEIGHTED, WEIGHTS, POSITIONS = "weighted.parquet", "weighted.groups.parquet", "positions.parquet"
FILES = (WEIGHTED, WEIGHTS, POSITIONS)

LABEL, QID = "label", "qid"


def refuse_names(features: Features) -> None:
    """Feature names that XGBoost, or the file, has no room for."""
    bad = [name for name in features.names if name in (LABEL, QID) or set(name) & set("[]<")]
    if bad:
        raise EluteError(
            f"{features.label}: feature '{bad[0]}' cannot keep its name; XGBoost's data have '{LABEL}' and '{QID}' "
            "of their own and take no name with [ ] or <; rename the column"
        )


def write_weighted(folder: Path, parts: Iterable[Groups], features: Features) -> tuple[int, int]:
    """A group a click, and the table of their weights; returns groups and rows."""
    weights: list[np.ndarray] = []

    def noting() -> Iterable[Groups]:
        for part in parts:
            weights.append(part.weight)
            yield part

    sizes = _write(folder / WEIGHTED, noting(), features)
    weight = np.concatenate(weights)
    write_parquet(folder / WEIGHTS, pa.table({QID: np.arange(1, len(weight) + 1), "weight": weight}))
    return sizes


def write_positions(folder: Path, parts: Iterable[Groups], features: Features) -> tuple[int, int]:
    """A group a page."""
    return _write(folder / POSITIONS, parts, features)


def _write(path: Path, parts: Iterable[Groups], features: Features) -> tuple[int, int]:
    schema = pa.schema([(LABEL, pa.int8()), (QID, pa.int64()), *((name, pa.float32()) for name in features.names)])
    groups = rows = 0
    with whole(path) as temporary, pq.ParquetWriter(temporary, schema) as file:
        for part in parts:
            qid = np.repeat(np.arange(groups, groups + len(part.size)) + 1, part.size)
            values = features.values[part.document]
            file.write_table(pa.table([part.label, qid, *(pa.array(column) for column in values.T)], schema=schema))
            groups, rows = groups + len(part.size), rows + len(part.label)
    return groups, rows
