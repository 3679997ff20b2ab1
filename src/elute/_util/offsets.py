"""Rows that stand group by group: group `i` owns `offsets[i]` to `offsets[i + 1]`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def take_groups(offsets: NDArray[np.integer], groups: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Where the rows of these groups stand, in the order of the groups; and the offsets that they then have."""
    sizes = np.diff(offsets)[groups]
    taken = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    return np.arange(taken[-1]) + np.repeat(offsets[groups] - taken[:-1], sizes), taken
