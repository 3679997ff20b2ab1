"""Health of a log: what does not stop a check but should be known before its answer is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.cells.factors import describe, is_position
from elute.cells.structure import Structure
from elute.log import ClickLog

THIN = 100
"""Impressions below which a factor's click rate says little."""

RISKY_COLLISION = 1e-3


@dataclass(frozen=True)
class Concern:
    """A warning: a code to look up, a sentence, and how many rows, factors or items it is about."""

    code: str
    message: str
    count: int


def warnings(log: ClickLog, structure: Structure) -> list[Concern]:
    """Every warning that applies, in a fixed order."""
    return [
        *_nulls(log),
        *_positions_from_zero(log),
        *_repeats(log),
        *_factors(log),
        *_queries(log, structure),
        *_items(structure),
        *_collisions(structure),
    ]


def _nulls(log: ClickLog) -> Iterator[Concern]:
    survey = log.survey
    if survey.nulls:
        columns = ", ".join(f"{column} ({n:,})" for column, n in survey.nulls.items())
        dropped = survey.rows - survey.usable - survey.unshown
        yield Concern("null_ids", f"{dropped:,} of {survey.rows:,} rows dropped: null in {columns}", dropped)
    if survey.unshown:
        message = f"{survey.unshown:,} of {survey.rows:,} rows dropped: no impression"
        yield Concern("no_impression", message, survey.unshown)


def _positions_from_zero(log: ClickLog) -> Iterator[Concern]:
    for column in log.roles.bias:
        if not is_position(log.survey.factors, column):
            continue
        values = log.survey.factors[column]
        at_zero = values.to_numpy() == 0
        if at_zero.any() and pc.min(values).as_py() == 0:
            count = int(log.survey.impressions[at_zero].sum())
            message = f"{column} starts at 0 ({count:,} impressions): do all parts of the log count alike?"
            yield Concern("position_from_zero", message, count)


def _repeats(log: ClickLog) -> Iterator[Concern]:
    count = log.engine.repeats_on_page(log.roles)
    if count:
        message = f"{count:,} rows show an item again on one result page (column {log.roles.session})"
        yield Concern("repeated_on_page", message, count)


def _factors(log: ClickLog) -> Iterator[Concern]:
    survey = log.survey
    thin = np.flatnonzero(survey.impressions < THIN)
    if len(thin):
        yield Concern("thin_factors", f"{_some(log, thin)} below {THIN} impressions", len(thin))
    unclicked = np.flatnonzero(survey.clicks == 0)
    if len(unclicked) and log.roles.click is not None:
        yield Concern("factors_without_clicks", f"{_some(log, unclicked)} without a click", len(unclicked))


def _some(log: ClickLog, factors: NDArray[np.int64]) -> str:
    example = describe(log.survey.factors.slice(int(factors[0]), 1).to_pylist()[0])
    of = f"{len(factors):,} of {log.survey.factors.num_rows:,} factors"
    return f"{of} ({example})" if len(factors) == 1 else f"{of} (for instance {example})"


def _queries(log: ClickLog, structure: Structure) -> Iterator[Concern]:
    if structure.queries is None or structure.queries < 2:
        return
    most = structure.busiest
    total = int(log.survey.impressions.sum())
    if most > total / 2:
        name = log.engine.busiest_query(log.roles)
        message = f"query {name!r} holds {most / total:.0%} of the impressions: weight or cluster by query"
        yield Concern("dominant_query", message, most)


def _items(structure: Structure) -> Iterator[Concern]:
    once = structure.items_once
    if once:
        yield Concern("items_seen_once", f"{once:,} of {structure.items:,} items were shown only once", once)


def _collisions(structure: Structure) -> Iterator[Concern]:
    if structure.collision_bound > RISKY_COLLISION:
        message = f"two items share a hash with probability up to {structure.collision_bound:.1g}: run with --exact"
        yield Concern("hash_collisions", message, 1)
