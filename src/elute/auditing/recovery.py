"""How well known truth was recovered: the identifiability paper's MCC and click MSE (its section 6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.errors import EluteError


def mcc(true: ArrayLike, estimated: ArrayLike) -> float:
    """Pearson's correlation of true and estimated relevance, one value a distinct document.

    1: recovered up to scale and shift. NaN where either is constant: then there is no correlation.
    """
    x, y = _check_pair(true, estimated)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    # Scaled by their width, so that tiny values do not underflow when squared.
    x, y = (x - x.mean()) / np.ptp(x), (y - y.mean()) / np.ptp(y)
    return float(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))


def click_mse(true: ArrayLike, predicted: ArrayLike, impressions: ArrayLike | None = None) -> float:
    """Mean squared error of predicted against true click probabilities; a mean over `impressions` where given."""
    x, y = _check_pair(true, predicted)
    if impressions is None:
        return float(np.mean((x - y) ** 2))
    weight = np.asarray(impressions, np.float64)
    if weight.shape != x.shape or not (weight >= 0).all() or weight.sum() == 0:
        raise EluteError(f"impressions must be {len(x):,} counts that are not all 0")
    return float(weight @ (x - y) ** 2 / weight.sum())


def _check_pair(true: ArrayLike, estimated: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = np.asarray(true, np.float64), np.asarray(estimated, np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) == 0:
        raise EluteError(f"true and estimated values must be flat and equally long; they are {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise EluteError("true and estimated values must be finite; leave out documents without an estimate")
    return x, y
