"""The files of a fit's folder.

| file | what it holds |
|---|---|
| `fit.json` | the summary, where the fit comes from, seals of the files; written last: a folder with it is complete |
| `propensities.parquet` | the bias columns, `component, propensity, log_se`, what a model adds, `impressions, clicks`;
  not for session click models |
| `effects.parquet` | under a formula for bias: `term`, the bias columns, `effect, log_se, reference, determined` |
| `relevance.parquet` | the item columns, `component, relevance, log_se, impressions, clicks` |
| `bounds.parquet` | with bounds: `component`, the bias columns of its reference, `low, high` of its scale relative to
  that of the largest component |
| `model.npz`, `queries.parquet` | session click models: parameters, and the queries in the order of their numbers |
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeGuard

import pyarrow as pa

from elute._util.files import write_text
from elute.door.fields import Damaged
from elute.door.json_file import read_json
from elute.door.seals import require_sealed, seal
from elute.door.tables import Column, Ids, check_columns, read_table, refusing
from elute.errors import EluteError
from elute.fits.kinds import AMOUNTS, COMPONENT_COLUMNS, EFFECT_COLUMNS, MORE, SUMMARY, factor_columns, item_columns
from elute.results.provenance import Provenance
from elute.sessions.folder import MODEL, QUERIES

MARK, PROPENSITIES, RELEVANCE, BOUNDS = "fit.json", "propensities.parquet", "relevance.parquet", "bounds.parquet"
EFFECTS = "effects.parquet"
FILES = (PROPENSITIES, RELEVANCE, EFFECTS, BOUNDS, MODEL, QUERIES)
"""All but the mark."""
_AGAIN = "fit again and save it there"


def is_fit(source: object) -> TypeGuard[str | Path]:
    """Whether this is a folder with a fit, finished or not."""
    if not isinstance(source, str | Path):
        return False
    place = Path(source)
    return (place / MARK).is_file() or (place / PROPENSITIES).is_file()


def read_summary(folder: Path) -> tuple[dict[str, Any], Provenance]:
    """What `fit.json` says; refuses a folder that is not a fit, or not a finished one, or not as it was written."""
    if not (folder / MARK).is_file():
        if is_fit(folder):
            raise EluteError(f"'{folder}' is an unfinished fit: it has no fit.json; fit again and save it there")
        raise EluteError(f"'{folder}' is not a fit: it has no fit.json; write one with `elute.fit`")
    fields = read_json(folder / MARK, SUMMARY, "what `elute.fit` writes", _AGAIN)
    require_sealed(folder, fields.pop("files", None), MARK, _AGAIN)
    return fields, Provenance.from_fields(fields.pop("provenance"))


def write_summary(folder: Path, summary: Mapping[str, Any], provenance: Provenance) -> None:
    """Finish a folder."""
    fields = {**summary, "provenance": asdict(provenance), "files": seal(folder, FILES)}
    write_text(folder / MARK, json.dumps(fields, indent=1) + "\n")


def read_propensities(folder: Path, bias: Sequence[str], components: int) -> pa.Table:
    """By factor; there are at least as many as components."""
    path = folder / PROPENSITIES
    table = _read(path, bias, factor_columns(components))
    with refusing(path, _AGAIN):
        if table.num_rows < components:
            raise Damaged(f"it has {table.num_rows:,} factors, but {MARK} says {components:,} components")
    return table


def read_relevance(folder: Path, item: Sequence[str], components: int) -> pa.Table:
    """By item."""
    return _read(folder / RELEVANCE, item, item_columns(components))


def read_effects(folder: Path, bias: Sequence[str]) -> pa.Table:
    """By term and value."""
    return read_table(folder / EFFECTS, {**dict.fromkeys(bias, Ids()), **EFFECT_COLUMNS}, _AGAIN)


def read_bounds(folder: Path, bias: Sequence[str]) -> pa.Table:
    """By component."""
    return _read(folder / BOUNDS, bias, COMPONENT_COLUMNS)


def _read(path: Path, names: Sequence[str], columns: Mapping[str, Column]) -> pa.Table:
    table = read_table(path, {**dict.fromkeys(names, Ids()), **columns}, _AGAIN)
    with refusing(path, _AGAIN):
        check_columns(table, {name: column for name, column in MORE.items() if name in table.column_names})
        if AMOUNTS.keys() <= set(table.column_names):
            shown, clicked = (table[name].to_numpy() for name in AMOUNTS)
            if (clicked > shown).any():
                raise Damaged("it has more clicks than impressions")
    return table
