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

from elute._util.atomic import write_atomically
from elute._util.files import write_parquet
from elute.errors import EluteError
from elute.io.features import Features
from elute.judging.groups import GroupRows

WEIGHTED, WEIGHTS, POSITIONS = "weighted.parquet", "weighted.groups.parquet", "positions.parquet"
FILES = (WEIGHTED, WEIGHTS, POSITIONS)

LABEL, QID = "label", "qid"


def refuse_names(features: Features) -> None:
    """Feature names that XGBoost, or the file, has no room for."""
    bad = [name for name in features.names if name in (LABEL, QID) or set(name) & set("[]<")]
    if bad:
        raise EluteError(
            f"{features.label}: feature '{bad[0]}' cannot keep its name; XGBoost reserves '{LABEL}' and '{QID}' "
            "and takes no name with [ ] or <; rename the column"
        )


def write_weighted(folder: Path, chunks: Iterable[GroupRows], features: Features) -> tuple[int, int]:
    """A group a click, and the table of their weights; returns groups and rows."""
    weights: list[np.ndarray] = []

    def note_weights() -> Iterable[GroupRows]:
        for chunk in chunks:
            weights.append(chunk.weight)
            yield chunk

    sizes = _write(folder / WEIGHTED, note_weights(), features)
    weight = np.concatenate(weights)
    write_parquet(folder / WEIGHTS, pa.table({QID: np.arange(1, len(weight) + 1), "weight": weight}))
    return sizes


def write_positions(folder: Path, chunks: Iterable[GroupRows], features: Features) -> tuple[int, int]:
    """A group a page."""
    return _write(folder / POSITIONS, chunks, features)


def _write(path: Path, chunks: Iterable[GroupRows], features: Features) -> tuple[int, int]:
    schema = pa.schema([(LABEL, pa.int8()), (QID, pa.int64()), *((name, pa.float32()) for name in features.names)])
    groups = rows = 0
    with write_atomically(path) as temporary, pq.ParquetWriter(temporary, schema) as file:
        for chunk in chunks:
            qid = np.repeat(np.arange(groups, groups + len(chunk.size)) + 1, chunk.size)
            values = features.values[chunk.document]
            file.write_table(pa.table([chunk.label, qid, *(pa.array(column) for column in values.T)], schema=schema))
            groups, rows = groups + len(chunk.size), rows + len(chunk.label)
    return groups, rows
