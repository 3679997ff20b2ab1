"""Fits written by hand, and a world in which the logging policy misleads."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

POPULATION = (1.0, 3.0)
"""Shape and rate of all relevances."""


class Row(NamedTuple):
    """An item of a fit."""

    query: Any
    doc: Any
    relevance: float = 0.5
    component: int = 0
    log_se: float = 0.1
    impressions: int = 100
    exposure: float = 1e5
    """How much its posterior rests on: by default enough to be certain."""


def write_fit(
    folder: Path,
    rows: Sequence[Row],
    item: tuple[str, str] = ("query_id", "doc_id"),
    propensities: Sequence[tuple[int, int, float]] = ((1, 0, 1.0), (2, 0, 0.5)),
    posteriors: bool = True,
    **summary: object,
) -> Path:
    """A folder as `elute fit` leaves it; propensities are (position, component, propensity). `posteriors`: of count
    models; session click models have none."""
    folder.mkdir(exist_ok=True)
    columns = {
        item[0]: [row.query for row in rows],
        item[1]: [row.doc for row in rows],
        "component": pa.array([row.component for row in rows], pa.int32()),
        "relevance": [row.relevance for row in rows],
        "log_se": [row.log_se for row in rows],
        "impressions": [row.impressions for row in rows],
        "clicks": [0 if math.isnan(row.relevance) else round(row.relevance * row.impressions) for row in rows],
    }
    if posteriors:
        columns["shape"] = [POPULATION[0] + row.relevance * row.exposure for row in rows]
        columns["rate"] = [POPULATION[1] + row.exposure for row in rows]
        columns["evidence"] = [row.exposure / (POPULATION[1] + row.exposure) for row in rows]
        summary["posterior"] = dict(zip(("shape", "rate"), POPULATION, strict=True))
    pq.write_table(pa.table(columns), folder / "relevance.parquet")
    position, component, propensity = zip(*propensities, strict=True)
    errors = [0.1] * len(position)
    table = {"position": position, "component": component, "propensity": propensity, "log_se": errors}
    pq.write_table(pa.table(table), folder / "propensities.parquet")
    provenance = {"log": "log.parquet", "item": list(item), "bias": ["position"]}
    known = {
        "model": "pbm",
        "converged": True,
        "reason": None,
        "components": max(*component, *(row.component for row in rows)) + 1,
    }
    fields = {**known, **summary, "provenance": provenance}
    (folder / "fit.json").write_text(json.dumps(fields))
    return folder


class World(NamedTuple):
    """Documents have two features: `signal` makes relevance, `policy` is what pages are mostly ranked by."""

    log: pa.Table
    features: pa.Table
    propensity: NDArray[np.float64]


def misleading(sessions: int, seed: int, queries: int = 60, places: int = 6) -> World:
    """Position-based clicks with o = 1/k on pages that are ranked by what has nothing to do with relevance."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, (queries, places, 2)).astype(np.float32)
    o = 1 / np.arange(1, places + 1)
    query = rng.integers(0, queries, sessions)
    shown = np.argsort(-(x[query, :, 1] + 2 * rng.gumbel(size=(sessions, places))), axis=1)
    relevance = np.take_along_axis((0.1 + 0.15 * x[..., 0])[query], shown, 1)
    click = rng.random((sessions, places)) < relevance * o
    log = {
        "session_id": np.repeat(np.arange(sessions), places),
        "query_id": np.repeat(query, places),
        "doc_id": shown.ravel(),
        "position": np.tile(np.arange(1, places + 1), sessions),
        "click": click.ravel().astype(np.int8),
    }
    features = {
        "query_id": np.repeat(np.arange(queries), places),
        "doc_id": np.tile(np.arange(places), queries),
        "signal": x[..., 0].ravel(),
        "policy": x[..., 1].ravel(),
    }
    return World(pa.table(log), pa.table(features), o)
