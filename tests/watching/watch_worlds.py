"""Small folders of daily parts."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

import elute

POSITIONS, QUERIES, DOCS = 4, 8, 6


def name_day(day: int) -> str:
    return str(date(2026, 10, 1) + timedelta(days=day))


def log_of(day: int, pages: int = 500, **planted: object) -> pa.Table:
    """A day of pages. `planted`: `lost` clicks of a position, `pinned` results, another `layout`, `new` ids."""
    rng = np.random.default_rng([9, day])
    relevance = np.random.default_rng(8).beta(2, 4, (QUERIES, DOCS))
    query = rng.integers(0, QUERIES, pages)
    luck = 0.0 if planted.get("pinned") else 0.5
    docs = np.argsort(-relevance[query] - luck * rng.gumbel(size=(pages, DOCS)), axis=1)[:, :POSITIONS]
    chance = relevance[query[:, None], docs] / np.arange(1, POSITIONS + 1) ** 0.7
    click = (rng.random((pages, POSITIONS)) < chance).astype(int)
    if "lost" in planted:
        click[:, int(str(planted["lost"])) - 1] = 0
    return pa.table(
        {
            "query_id": np.repeat(query, POSITIONS),
            "doc_id": (docs + (1000 * day if planted.get("new") else 0)).ravel(),
            "position": np.tile(np.arange(1, POSITIONS + 1) + (100 if planted.get("layout") else 0), pages),
            "click": click.ravel(),
        }
    )


def add_day(folder: Path, day: int, table: pa.Table, key: str | None = None) -> None:
    elute.count(table, folder, append=True, key=key or f"day={name_day(day)}")


def make_folder(folder: Path, days: int) -> Path:
    for day in range(days):
        add_day(folder, day, log_of(day))
    return folder


def copy(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to
