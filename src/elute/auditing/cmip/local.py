"""What an estimator of information within a grade gives: a value for each document, and how noisy their mean is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Local(NamedTuple):
    """The log ratio of joint to independent density at every document; the information is its mean.

    The mean's variance is (variance of `log_ratio` + `extra`) / n. The log ratio less its mean is the influence
    function of mutual information, so its variance is what any good estimator has. Nearest-neighbour values carry
    noise beside it, which neighbours share: `extra` is what that adds. Resampling would not do: a bootstrap's
    duplicates are each other's nearest neighbours.
    """

    log_ratio: Floats
    extra: float = 0.0


def standardise(values: Floats) -> Floats:
    """Mean 0 and variance 1."""
    centred = values - values.mean()
    return np.asarray(centred / np.sqrt(np.mean(centred**2)), np.float64)
