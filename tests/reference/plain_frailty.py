"""Clicks of items whose relevance is h(score)·ε: the likelihood with ε, a gamma variable, integrated out by itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def measure_frailty(item: Codes, mean: Floats, clicked: Floats, v: float) -> float:
    """log Π_items ∫ Π_rows Poisson(clicks; ε·mean) Gamma(ε; shape 1/v, mean 1) dε, less what no parameter is in."""
    shape = 1 / v
    total, expected = np.bincount(item, clicked), np.bincount(item, mean)
    of_items = gammaln(total + shape) - gammaln(shape) + shape * np.log(shape)
    of_items -= (total + shape) * np.log(shape + expected)
    return float(clicked @ np.log(mean) + of_items.sum())
