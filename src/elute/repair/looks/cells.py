"""The cells of a plan in a log: how often each pair of item and factor was shown and clicked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Counts

Ints = NDArray[np.int64]


class SeenCells(NamedTuple):
    """Impressions and clicks of some cells, 0 where the log has none."""

    impressions: Ints
    clicks: Ints


def look_up(counts: Counts, item: Ints, factor: Ints) -> SeenCells:
    """Of these pairs; a code of -1 is what the log does not have."""
    out = np.zeros((2, len(item)), np.int64)
    for at, (x, t) in enumerate(zip(item.tolist(), factor.tolist(), strict=True)):
        if x < 0 or t < 0:
            continue
        own = slice(counts.offsets[x], counts.offsets[x + 1])
        here = counts.factor[own] == t
        out[:, at] = counts.impressions[own][here].sum(), counts.clicks[own][here].sum()
    return SeenCells(out[0], out[1])
