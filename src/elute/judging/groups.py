"""Pages of clicks as the groups that pairwise rankers compare documents in.

Inverse propensity weighting wants, for every click on document i under factor t, all pairs of i with the other
documents of its page, each pair weighing 1/o(t): in expectation i and j then pull at each other by r_i and r_j,
whatever their places (Joachims et al. 2017). Neither library takes a weight for a pair. LightGBM multiplies each row's
gradient by the row's weight, and XGBoost takes one weight a group. So a group here is *one click* with the page around
it, the clicked document alone labelled 1, and all of the group has the click's weight: then every pair has it. With a
group a page and weights by row, an unclicked document would be pushed down by its own place's weight, which debiases
nothing.

The libraries' own ways of debiasing learn positions themselves: for these a group is a page, labels are its clicks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.training.pages import TrainingPages

GROUPS_AT_A_TIME = 1 << 16
"""Groups made at a time."""


class GroupRows(NamedTuple):
    """Rows of some groups, one group after the other, each in the order shown."""

    document: NDArray[np.int32]
    """Rows of the features."""
    label: NDArray[np.int8]
    factor: NDArray[np.int32]
    size: NDArray[np.int64]
    """Rows by group."""
    weight: NDArray[np.float64]
    """By group."""


class Usable(NamedTuple):
    """Pages with something to compare, and how many have not."""

    pages: TrainingPages
    without_click: int
    of_one: int
    """Pages that show one document."""


def select_usable(pages: TrainingPages) -> Usable:
    """Pages with a click and another document."""
    clicked = (pages.clicks > 0).any(axis=1)
    several = (pages.documents >= 0).sum(axis=1) > 1
    return Usable(take_pages(pages, clicked & several), int((~clicked).sum()), int((clicked & ~several).sum()))


def take_pages(pages: TrainingPages, some: NDArray[np.bool_]) -> TrainingPages:
    """Some pages, by a mask."""
    return pages._replace(documents=pages.documents[some], clicks=pages.clicks[some], factor=pages.factor[some])


def group_by_click(
    pages: TrainingPages, weight: NDArray[np.float64], chunk: int = GROUPS_AT_A_TIME
) -> Iterator[GroupRows]:
    """A group for each click; `weight` is by factor."""
    page, place = np.nonzero(pages.clicks > 0)
    for first in range(0, len(page), chunk):
        p, k = page[first : first + chunk], place[first : first + chunk]
        label = np.arange(pages.clicks.shape[1]) == k[:, None]
        yield _make_groups(pages.documents[p], label, pages.factor[p], weight[pages.factor[p, k]])


def group_by_page(pages: TrainingPages, chunk: int = GROUPS_AT_A_TIME) -> Iterator[GroupRows]:
    """A group for each page, each with weight 1."""
    for first in range(0, len(pages.documents), chunk):
        here = slice(first, first + chunk)
        yield _make_groups(
            pages.documents[here], pages.clicks[here] > 0, pages.factor[here], np.ones(len(pages.documents[here]))
        )


def _make_groups(
    documents: NDArray[np.int32], label: NDArray[np.bool_], factor: NDArray[np.int32], weight: NDArray[np.float64]
) -> GroupRows:
    shown = documents >= 0
    return GroupRows(documents[shown], label[shown].astype(np.int8), factor[shown], shown.sum(axis=1), weight)


def find_gapless(pages: TrainingPages, position: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which pages have rows at positions 1, 2, 3, … (or all from 0): there the order of rows is the position.

    `position` is by factor."""
    first = 0 if position.min() == 0 else 1
    right = position[pages.factor] == np.arange(pages.documents.shape[1]) + first
    return np.asarray((right | (pages.documents < 0)).all(axis=1))
