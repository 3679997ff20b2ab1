"""What a budget is to lower: the mean of standard errors, or about the largest of them.

The largest is taken as the norm (Σ se^q)^(1/q) with a large q, which has a gradient. Errors that no candidate can lower
count for nothing: otherwise all is spent for crumbs on the one factor that nothing reaches.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Objective = Literal["max", "mean"]

POWER = {"max": 24.0, "mean": 1.0}
"""q."""

WORTHWHILE = 0.98
"""A standard error that cannot come below this share of itself is left as it is."""


def compute_gradient(variance: Floats, floor: Floats, power: float) -> Floats:
    """Of the objective by variance, up to a factor; `floor`: the variances if candidates were given all they can
    take. Where nothing can be lowered any more, that of the mean."""
    error = np.sqrt(variance)
    lowers = (error > 0) & (floor < WORTHWHILE**2 * variance)
    if not lowers.any():
        lowers, power = error > 0, POWER["mean"]
    largest = float(error.max(where=lowers, initial=0.0))
    share = np.where(lowers, error / max(largest, np.finfo(float).tiny), 1.0)
    return np.where(lowers, share ** (power - 2.0), 0.0)


def compute_norm(errors: Floats, weights: NDArray[np.bool_], power: float) -> Floats:
    """The objective of the rows of `errors`, over the factors that count."""
    counted = errors[:, weights]
    largest = counted.max(axis=1, keepdims=True, initial=np.finfo(float).tiny)
    return np.asarray(largest[:, 0] * ((counted / largest) ** power).sum(axis=1) ** (1 / power))
