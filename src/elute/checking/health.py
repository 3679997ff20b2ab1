"""Health of a log: what does not stop a check but should be known before its answer is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.cells.factors import describe, is_position, to_json_value
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


def find_concerns(log: ClickLog, structure: Structure) -> list[Concern]:
    """Every warning that applies, in a fixed order."""
    return [
        *_check_nulls(log),
        *_check_positions(log),
        *_check_repeats(log),
        *_check_factors(log),
        *_check_queries(log, structure),
        *_check_items(structure),
        *_check_collisions(structure),
    ]


def _check_nulls(log: ClickLog) -> Iterator[Concern]:
    survey = log.survey
    if survey.nulls:
        columns = ", ".join(f"{column} ({n:,})" for column, n in survey.nulls.items())
        dropped = survey.rows - survey.usable - survey.unshown
        yield Concern("null_ids", f"{dropped:,} of {survey.rows:,} rows dropped: null in {columns}", dropped)
    if survey.unshown:
        message = f"{survey.unshown:,} of {survey.rows:,} rows dropped: no impression"
        yield Concern("no_impression", message, survey.unshown)


def _check_positions(log: ClickLog) -> Iterator[Concern]:
    for column in log.roles.bias:
        if not is_position(log.survey.factors, column):
            continue
        values = log.survey.factors[column]
        at_zero = values.to_numpy() == 0
        if at_zero.any() and pc.min(values).as_py() == 0:
            count = int(log.survey.impressions[at_zero].sum())
            message = f"{column} starts at 0 ({count:,} impressions): check that all parts of the log count from 0"
            yield Concern("position_from_zero", message, count)


def _check_repeats(log: ClickLog) -> Iterator[Concern]:
    count = log.engine.count_repeats_on_page(log.roles)
    if count:
        message = f"{count:,} rows repeat an item on one result page (column {log.roles.session})"
        yield Concern("repeated_on_page", message, count)


def _check_factors(log: ClickLog) -> Iterator[Concern]:
    survey = log.survey
    thin = np.flatnonzero(survey.impressions < THIN)
    if len(thin):
        yield Concern("thin_factors", f"{_name_some(log, thin)} with fewer than {THIN} impressions", len(thin))
    unclicked = np.flatnonzero(survey.clicks == 0)
    if len(unclicked) and log.roles.click is not None:
        yield Concern("factors_without_clicks", f"{_name_some(log, unclicked)} without a click", len(unclicked))


def _name_some(log: ClickLog, factors: NDArray[np.int64]) -> str:
    example = describe(log.survey.factors.slice(int(factors[0]), 1).to_pylist()[0])
    of = f"{len(factors):,} of {log.survey.factors.num_rows:,} factors"
    return f"{of} ({example})" if len(factors) == 1 else f"{of} (for instance {example})"


def _check_queries(log: ClickLog, structure: Structure) -> Iterator[Concern]:
    if structure.queries is None or structure.queries < 2:
        return
    most = structure.busiest
    total = int(log.survey.impressions.sum())
    if most > total / 2:
        name = to_json_value(log.engine.find_busiest_query(log.roles))
        message = f"query {name!r} accounts for {most / total:.0%} of the impressions; weight or cluster by query"
        yield Concern("dominant_query", message, most)


def _check_items(structure: Structure) -> Iterator[Concern]:
    once = structure.items_once
    if once:
        yield Concern("items_seen_once", f"{once:,} of {structure.items:,} items were shown only once", once)


def _check_collisions(structure: Structure) -> Iterator[Concern]:
    if structure.collision_bound > RISKY_COLLISION:
        chance = f"two items share a hash with probability up to {structure.collision_bound:.1g}"
        message = f"{chance}; read the log with ids compared by value (exact)"
        yield Concern("hash_collisions", message, 1)
