"""What the logging policy ranked by: the expected rank of an item (the CMIP paper's r_l), from the log or as given.
And what clicks alone would rank by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute._util.matching import id_columns, match
from elute.auditing.labels import Labels, Scores
from elute.cells.counts import Counts, sum_by_item
from elute.cells.factors import is_position

Floats = NDArray[np.float64]


def rank_by_log(counts: Counts, place: str) -> Scores | None:
    """The mean position of every item, as a score: the first has the highest. None where no bias column is a
    position."""
    expected = _expect_ranks(counts)
    if expected is None:
        return None
    return Scores(f"the positions of {place}", id_columns(counts.items, counts.items.column_names), -expected)


def rate_by_log(counts: Counts, labels: Labels) -> Floats:
    """Click rates by label, NaN where the log does not show an item: how it ranks for whom clicks are relevance."""
    clicks = sum_by_item(counts.offsets, counts.clicks)
    at = match(labels.items, id_columns(counts.items, counts.items.column_names))
    return np.where(at < 0, np.nan, (clicks / counts.item_impressions)[at])


def orient(scores: Scores, labels: Labels, counts: Counts) -> tuple[Floats, bool]:
    """Scores by label such that high means first, and whether they were ranks: those rise with the log's positions."""
    given = scores.look_up(labels)
    expected = _expect_ranks(counts)
    if expected is None:
        return given, False
    at = match(labels.items, id_columns(counts.items, counts.items.column_names))
    known = (at >= 0) & np.isfinite(given)
    if not known.any():
        return given, False
    query = np.zeros(len(given), np.int64) if labels.query is None else labels.query
    apart = [_centre(values[known], query[known]) for values in (given, np.where(at >= 0, expected[at], np.nan))]
    is_rank = bool(np.sum(apart[0] * apart[1]) > 0)
    return (-given if is_rank else given), is_rank


def _expect_ranks(counts: Counts) -> Floats | None:
    column = next((name for name in counts.factors.column_names if is_position(counts.factors, name)), None)
    if column is None:
        return None
    position = counts.factors[column].to_numpy().astype(np.float64)
    shown = counts.impressions.astype(np.float64)
    total = np.add.reduceat(shown * position[counts.factor], counts.offsets[:-1])
    return np.asarray(total / counts.item_impressions, np.float64)


def _centre(values: Floats, query: NDArray[np.int64]) -> Floats:
    """Less the mean of the query, at a scale of 1."""
    code = np.unique(query, return_inverse=True)[1]
    centred = values - (np.bincount(code, values) / np.bincount(code))[code]
    spread = float(np.abs(centred).max())
    return centred / spread if spread > 0 else centred
