"""The carousel user: picks one row of results, then reads that row as a dynamic Bayesian user."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.options.kinds import PROBABILITY, Whole
from elute.options.takes import declares
from elute.simulation.shown import ShownPages
from elute.simulation.users.base import (
    Clicks,
    Floats,
    User,
    as_booleans,
    attraction,
    check_probabilities,
    require_ranks,
    safe_log,
)
from elute.simulation.users.chain import Flags, click_marginals, log_patterns
from elute.simulation.users.dbn import dbn_habits
from elute.simulation.users.kernels import read_one_row

T = TypeVar("T", bound=np.generic)

ROW_BIAS = (1.0, 2**-0.5, 3**-0.5, 0.5, 5**-0.5)
"""Position bias k^-1/2 of row k, as in the CMIP paper's public code."""


class _CutRows(NamedTuple):
    """Pages cut into rows; leading axis (page·rows), then the place in the row."""

    attraction: Floats
    onward: Floats
    mask: Flags
    log_share: Floats
    """log P(row is picked) by (page, row)."""


@declares(row_length=Whole(1, 32_767), continuation=PROBABILITY)
class Carousel(User):
    """Rows of `row_length` results, of which the user picks one (Section 5.1.4 of the CMIP paper: 5 rows of 5).

    The text has one row chosen by a position-based model in which a row's relevance is the mean of its results'.
    Independent examinations, row by row, could choose no row or several; so here row i is picked with probability
    proportional to b_i times its mean relevance, and one always is. (The public code picks none: it multiplies
    clicks by b_i.) A row cut short by the page's end has the mean of what it shows. Where no row has any weight,
    because nothing is relevant, the first is picked.

    `row_bias`: b by row. `continuation`: γ, 0.75 in the public code. Satisfaction as in `DynamicBayesian`.
    """

    def __init__(self, row_length: int = 5, row_bias: ArrayLike = ROW_BIAS, continuation: float = 0.75) -> None:
        self.row_length = row_length
        self.row_bias = check_probabilities(row_bias, "row_bias")
        self.continuation = continuation

    def draw_clicks(self, shown: ShownPages, rng: np.random.Generator) -> Clicks:
        self._check(shown)
        habits = dbn_habits(shown, self.continuation)
        row = self.row_bias, self.row_length, habits.skip
        return read_one_row(rng, shown.relevance, shown.length, *row, habits.satisfaction, habits.share)

    def probabilities(self, shown: ShownPages) -> Floats:
        rows = self._cut_rows(shown)
        p = click_marginals(rows.attraction, self.continuation, rows.onward) * np.exp(rows.log_share).reshape(-1, 1)
        return p.reshape(shown.pages, self._count_rows(shown.width) * self.row_length)[:, : shown.width]

    def log_probability(self, shown: ShownPages, clicks: ArrayLike) -> Floats:
        rows = self._cut_rows(shown)
        cut = self._cut(as_booleans(shown, clicks))
        inside = log_patterns(rows.attraction, self.continuation, rows.onward, rows.mask, cut)
        in_row = cut.sum(axis=1).reshape(rows.log_share.shape)
        elsewhere = in_row < in_row.sum(axis=1, keepdims=True)
        each = np.where(elsewhere, -np.inf, rows.log_share + inside.reshape(rows.log_share.shape))
        return np.asarray(np.logaddexp.reduce(each, axis=1))

    def _cut_rows(self, shown: ShownPages) -> _CutRows:
        self._check(shown)
        habits = dbn_habits(shown, self.continuation)
        a, mask = self._cut(attraction(shown)), self._cut(shown.mask)
        mean = (a.sum(axis=1) / np.maximum(mask.sum(axis=1), 1)).reshape(shown.pages, self._count_rows(shown.width))
        bias = np.zeros(mean.shape[1])
        known = min(len(bias), len(self.row_bias))
        bias[:known] = self.row_bias[:known]
        weight = mean * bias
        weight[weight.sum(axis=1) == 0.0, 0] = 1.0
        share = weight / weight.sum(axis=1, keepdims=True)
        return _CutRows(a, self._cut(habits.onward(shown.mask)), mask, safe_log(share))

    def _cut(self, values: NDArray[T]) -> NDArray[T]:
        """(pages, width) to (pages·rows, row length)."""
        pages, width = values.shape
        rows = self._count_rows(width)
        padded = np.pad(values, ((0, 0), (0, rows * self.row_length - width)))
        return padded.reshape(pages * rows, self.row_length)

    def _count_rows(self, width: int) -> int:
        """Rows of a page; at least one."""
        return max(-(-width // self.row_length), 1)

    def _check(self, shown: ShownPages) -> None:
        require_ranks(len(self.row_bias) * self.row_length, shown, "row biases")
