"""The files of a fit's folder.

| file | what it holds |
|---|---|
| `fit.json` | the summary, and where the fit comes from; written last: a folder with it is complete |
| `propensities.parquet` | the bias columns, `component, propensity, log_se`, what a model adds, `impressions, clicks`;
  not for session click models |
| `relevance.parquet` | the item columns, `component, relevance, log_se, impressions, clicks` |
| `bounds.parquet` | with bounds: `component`, the bias columns of its reference, `low, high` of its scale relative to
  that of the largest component |
| `model.npz`, `queries.parquet` | session click models: parameters, and the queries in the order of their numbers |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeGuard

import pyarrow as pa
import pyarrow.parquet as pq

from elute._util.files import write_text
from elute.errors import EluteError
from elute.results.provenance import Provenance

MARK, PROPENSITIES, RELEVANCE, BOUNDS = "fit.json", "propensities.parquet", "relevance.parquet", "bounds.parquet"


def is_fit(source: object) -> TypeGuard[str | Path]:
    """Whether this is a folder with a fit, finished or not."""
    if not isinstance(source, str | Path):
        return False
    place = Path(source)
    return (place / MARK).is_file() or (place / PROPENSITIES).is_file()


def read_summary(folder: Path) -> tuple[dict[str, Any], Provenance]:
    """What `fit.json` says; refuses a folder that is not a fit, or not a finished one."""
    if not (folder / MARK).is_file():
        if is_fit(folder):
            raise EluteError(f"'{folder}' is an unfinished fit: it has no fit.json; fit again and save it there")
        raise EluteError(f"'{folder}' is not a fit: it has no fit.json; write one with `elute.fit`")
    try:
        summary = json.loads((folder / MARK).read_text(encoding="utf-8"))
        found = Provenance.from_fields(summary.pop("provenance"))
        str(summary["model"])
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise EluteError(f"{folder / MARK} is not what `elute.fit` writes ({problem!r}); fit again") from None
    return summary, found


def write_summary(folder: Path, summary: Mapping[str, Any], provenance: Provenance) -> None:
    """Finish a folder."""
    write_text(folder / MARK, json.dumps({**summary, "provenance": asdict(provenance)}, indent=1) + "\n")


def read_table(path: Path, columns: tuple[str, ...]) -> pa.Table:
    """A table of a fit's folder; it must have these columns."""
    try:
        table = pq.read_table(path)
    except (FileNotFoundError, pa.ArrowInvalid):
        raise EluteError(f"{path} is missing or not a Parquet file; fit again and save to {path.parent}") from None
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise EluteError(f"{path} has no column '{missing[0]}'; fit again and save to {path.parent}")
    return table
