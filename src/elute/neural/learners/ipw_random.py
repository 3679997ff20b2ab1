"""Propensities from result randomisation (Joachims et al. 2017, Wang et al. 2016), and the learner that uses them.

Where chance alone decides which document stands where, relevance is the same at every position on average, and click
rates are propensities up to scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.errors import EluteError
from elute.neural.data import check_numbers
from elute.neural.learners.ipw import IPW

Floats = NDArray[np.float64]


def from_random_pages(documents: ArrayLike, clicks: ArrayLike) -> Floats:
    """Propensities from pages in random order: click rates by position, position 1 = 1.

    A rate is over the pages that are long enough; lengths should not go with relevance.
    """
    shown = np.asarray(documents) >= 0
    clicked = check_numbers("clicks", clicks, shown.shape) * shown
    return _to_ratios(clicked.sum(axis=0, dtype=np.float64) / np.maximum(shown.sum(axis=0), 1))


def from_swaps(clicks: ArrayLike, partner: ArrayLike) -> Floats:
    """Propensities from pages where a coin decided whether positions 1 and `partner` (2, 3, …) were swapped.

    `clicks`: (pages, positions), whichever way the coin fell; over both ways the two positions show the same
    documents, so that their clicks stand as their propensities do.
    """
    clicked, other = np.asarray(clicks, np.float64), np.asarray(partner)
    if clicked.ndim != 2 or other.shape != clicked.shape[:1]:
        raise EluteError(
            f"clicks must be pages × positions and partners one for each page; their shapes are {clicked.shape} and "
            f"{other.shape}"
        )
    rates = [1.0]
    for position in range(2, clicked.shape[1] + 1):
        pages = clicked[other == position]
        if pages[:, 0].sum() == 0:
            raise EluteError(f"no click on position 1 where position {position} was its partner; swap more pages")
        rates.append(pages[:, position - 1].sum() / pages[:, 0].sum())
    return _to_ratios(np.array(rates))


def build_ipw_random(documents: ArrayLike, clicks: ArrayLike, **settings: Any) -> IPW:
    """Inverse propensity weighting with the propensities that pages in random order show."""
    return IPW(given=tuple(from_random_pages(documents, clicks).tolist()), **settings)


def _to_ratios(rates: Floats) -> Floats:
    if not (rates > 0).all():
        raise EluteError(
            f"position {int((rates <= 0).argmax()) + 1} has no click on randomised pages; collect more of them"
        )
    return np.asarray(rates / rates[0])
