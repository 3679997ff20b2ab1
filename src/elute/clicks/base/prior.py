"""What a fit on counts assumes of documents: nothing, given pseudo-counts, or a Beta distribution fitted to all."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from elute.clicks.base.beta import PseudoCounts, fit_beta
from elute.errors import EluteError

Prior = Literal["fitted"] | tuple[float, float] | None
"""None is exact maximum likelihood; (a, b) adds a clicks and b skips to every document; "fitted" chooses them."""


def check_prior(prior: Prior) -> Prior:
    """A prior as given, if it is one."""
    if prior is None or prior == "fitted":
        return prior
    if isinstance(prior, str) or len(prior) != 2 or not all(value >= 0 for value in prior):
        raise EluteError(f"`prior=` is {prior!r}; give None, 'fitted' or two pseudo-counts of 0 or more")
    return prior


def pseudo_counts(prior: Prior, happened: NDArray[np.float64], trials: NDArray[np.float64]) -> PseudoCounts:
    """The a and b to add to every document, fitted to `happened` of `trials` by document where asked for."""
    if prior is None:
        return PseudoCounts(0.0, 0.0)
    if prior == "fitted":
        return fit_beta(happened, trials)
    return PseudoCounts(*map(float, prior))


def rate(happened: NDArray[np.float64], trials: NDArray[np.float64], added: PseudoCounts) -> NDArray[np.float64]:
    """happened/trials with the pseudo-counts; NaN where there is nothing at all."""
    below = trials + added.a + added.b
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((happened + added.a) / np.where(below > 0, below, np.nan))


def typical_rate(happened: NDArray[np.float64], trials: NDArray[np.float64], added: PseudoCounts) -> float:
    """The rate of a document nothing is known of."""
    if added.a + added.b > 0:
        return added.mean
    total = float(trials.sum())
    return float(happened.sum()) / total if total > 0 else 0.5
