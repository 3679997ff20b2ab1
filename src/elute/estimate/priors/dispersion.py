"""How much more clicks vary than independent ones would."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts
from elute.estimate.solve.problem import Codes, Floats
from elute.kernels.jit import jit


@jit
def measure_dispersion(
    offsets: NDArray[np.int64], factor: Codes, impressions: Amounts, clicks: Amounts, o: Floats
) -> float:
    """Given an item's clicks C, those under factor t have expectation C·s, s = n·o/Σ n·o, and variance C·s·(1 - s) if
    they are independent. The sum of squares over that of variances, at least 1."""
    squares = 0.0
    expected = 0.0
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = 0.0
        reach = 0.0
        for cell in range(begin, end):
            total += clicks[cell]
            reach += impressions[cell] * o[factor[cell]]
        if end - begin < 2 or total == 0.0 or reach == 0.0:
            continue
        for cell in range(begin, end):
            share = impressions[cell] * o[factor[cell]] / reach
            squares += (clicks[cell] - total * share) ** 2
            expected += total * share * (1.0 - share)
    return max(1.0, squares / expected) if expected > 0.0 else 1.0
