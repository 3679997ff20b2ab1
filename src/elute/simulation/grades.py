"""From grades to probabilities of relevance, and the examination of positions that studies commonly assume."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.errors import EluteError

Floats = NDArray[np.float64]

PROPENSITIES = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)
"""Examination of ranks 1 to 10 in an eye-tracking study (Joachims et al. 2005), as the identifiability paper and
the UPE paper use them."""


_MOST = 1_000


def reciprocal_propensities(positions: int) -> Floats:
    """Examination 1/k of ranks k = 1, 2, …, as in Section 5.1.4 of the CMIP paper."""
    return 1.0 / np.arange(1, positions + 1)


def relevance_of_grades(grades: ArrayLike, top: int, noise: float = 0.1) -> Floats:
    """P(relevant) = ε + (1 - ε)(2^y - 1)/(2^top - 1), Eq. C.1 of the identifiability paper.

    `top` is the grade that is surely relevant: the highest of the scale, usually, but 5 on the grades 0 to 4 of
    that paper's fully simulated sets, which keeps relevance below .54. `noise` is ε: what draws clicks to
    documents of grade 0.
    """
    if top < 1:
        raise EluteError(f"the top grade is {top}; relevance needs a scale from 0 to at least 1")
    if not 0.0 <= noise <= 1.0:
        raise EluteError(f"click noise is {noise}; give a probability between 0 and 1")
    if top > _MOST:
        raise EluteError(f"the top grade is {top}, and relevance grows as 2 to its power; use grades up to {_MOST}")
    y = np.asarray(grades, np.float64)
    wrong = y[~((y >= 0) & (y <= top))]
    if len(wrong):
        raise EluteError(
            f"{len(wrong):,} of {y.size:,} grades lie outside 0 to {top} (the first is {wrong[0]:g}); "
            "correct the grades, or pass the top grade of their scale"
        )
    return np.asarray(noise + (1.0 - noise) * (np.exp2(y) - 1.0) / (2.0**top - 1.0), np.float64)
