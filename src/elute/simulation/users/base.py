"""What every simulated user can do, and the checks their settings share.

A user is a click model read as a generator. Each knows its own likelihood, exactly, so that the simulator can be
held to it and a fitted model can be compared with the truth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute._util.text import to_one_line
from elute.errors import EluteError
from elute.simulation.shown import ShownPages

Floats = NDArray[np.float64]
Clicks = NDArray[np.uint8]


class User(ABC):
    """Clicks on result pages.

    Pages are independent of each other, and draws go page by page: simulating a log in parts, with one generator,
    gives the clicks of simulating it at once. Padding takes no draws.
    """

    @abstractmethod
    def draw_clicks(self, shown: ShownPages, rng: np.random.Generator) -> Clicks:
        """0 or 1 by (page, place); 0 beyond a page's length."""

    @abstractmethod
    def probabilities(self, shown: ShownPages) -> Floats:
        """P(click) by (page, place), whatever else is clicked; 0 beyond a page's length."""

    @abstractmethod
    def log_probability(self, shown: ShownPages, clicks: ArrayLike) -> Floats:
        """log P(exactly these clicks) by page; -inf for what this user cannot do."""

    @property
    def propensities(self) -> Floats | None:
        """o(t) by factor where P(click) = r(x)·o(t): (positions), or (contexts, positions). None for other users."""
        return None


def check_probabilities(values: ArrayLike, what: str) -> Floats:
    """A setting by rank (or one number) as a vector of probabilities."""
    array = np.atleast_1d(to_floats(values, what))
    if array.ndim != 1 or not array.size:
        raise EluteError(f"{what} of shape {array.shape}; give a list of probabilities, one a rank")
    wrong = array[~((array >= 0.0) & (array <= 1.0))]
    if wrong.size:
        raise EluteError(f"{what}: {wrong[0]:g} is not a probability; give values between 0 and 1")
    return array


def to_floats(values: ArrayLike, what: str) -> Floats:
    """A setting as an array of numbers."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise EluteError(f"{what} is {to_one_line(repr(values), 60)}; give numbers") from None


def require_ranks(ranks: int, shown: ShownPages, what: str) -> None:
    """Refuse pages longer than a setting by rank goes."""
    if shown.longest > ranks:
        raise EluteError(
            f"a page shows {shown.longest} results, but there are {what} for {ranks} ranks only; "
            "give one for every rank or show fewer results"
        )


def attraction(shown: ShownPages) -> Floats:
    """Relevance, and 0 beyond a page's length."""
    return np.where(shown.mask, shown.relevance, 0.0)


def as_booleans(shown: ShownPages, clicks: ArrayLike) -> NDArray[np.bool_]:
    """Given clicks as booleans."""
    array = np.asarray(clicks)
    if array.shape != shown.relevance.shape:
        raise EluteError(f"clicks have shape {array.shape}, the pages shown {shown.relevance.shape}; they must agree")
    return array.astype(np.bool_)


def safe_log(probability: Floats) -> Floats:
    """log, with -inf at 0 and no warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probability))
