"""How much log is enough: the probability that a sample of it is recoverable.

`curve` measures it (Figure 7 a, b of the identifiability paper): each impression is kept with
probability p, independently, so a cell of n impressions survives with probability 1 − (1 − p)ⁿ, and no
second look at the log is needed. A sample is recoverable if the factors that are left form one component.

`estimate` predicts it (Example 2) for items and factors that meet at random. With u = 1 − exp(−|D| / (|X||T|))
the example's exponent −|D| + f equals |X||T| log(1 − u²), which neither overflows nor cancels.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.counts import Amounts, Counts
from elute.kernels.jit import jit
from elute.kernels.unionfind import link
from elute.progress import Progress, silent

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
SAMPLES = 20

_TABLED = 1024


class Point(NamedTuple):
    """What samples of one size gave."""

    share: float
    impressions: float
    """Expected impressions in a sample."""
    probability: float
    """Share of samples that were recoverable."""
    components: float
    """Mean over samples."""
    factors: float
    """Mean number of factors seen in a sample."""
    samples: int
    estimate: float
    """Example 2's probability for a log of this size."""


def estimate(impressions: float, items: int, factors: int) -> float:
    """Probability of identifiability by Example 2."""
    if factors == 1:
        return 1.0
    cells = float(items) * factors
    u = -math.expm1(-impressions / cells)
    log_disconnected = math.log(factors) + (cells * math.log1p(-u * u) if u < 1 else -math.inf)
    return max(0.0, -math.expm1(log_disconnected))


def curve(counts: Counts, seed: int = 0, progress: Progress = silent) -> list[Point]:
    """One point for each share of the log; the same seed gives the same samples."""
    total = int(counts.item_impressions.sum())
    jobs = [(share, sample) for share in SHARES for sample in range(SAMPLES if share < 1 else 1)]
    seeds = np.random.SeedSequence(seed).generate_state(len(jobs), np.uint64)

    def run(job: int) -> tuple[int, int]:
        return _sample(counts.offsets, counts.factor, counts.impressions, jobs[job][0], seeds[job], counts.n_factors)

    outcomes: dict[float, list[tuple[int, int]]] = {share: [] for share in SHARES}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, outcome in enumerate(pool.map(run, range(len(jobs)))):
            progress("sampling the log", done, len(jobs))
            outcomes[jobs[done][0]].append(outcome)
    return [_point(share, np.array(drawn), total, counts) for share, drawn in outcomes.items()]


def _point(share: float, drawn: NDArray[np.int64], total: int, counts: Counts) -> Point:
    return Point(
        share=share,
        impressions=share * total,
        probability=float(np.mean(drawn[:, 0] == 1)),
        components=float(drawn[:, 0].mean()),
        factors=float(drawn[:, 1].mean()),
        samples=len(drawn),
        estimate=estimate(share * total, counts.n_items, counts.n_factors),
    )


@jit
def _uniform(seed: np.uint64, index: int) -> float:
    """A uniform number in [0, 1) that depends on seed and index only (SplitMix64)."""
    z = seed + np.uint64(index + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@jit
def _sample(
    offsets: NDArray[np.int64],
    factor: NDArray[np.int32],
    impressions: Amounts,
    share: float,
    seed: np.uint64,
    n_factors: int,
) -> tuple[int, int]:
    """Draw a sample; returns its components and how many factors it has. An empty sample has none."""
    parent = np.arange(n_factors, dtype=np.int32)
    present = np.zeros(n_factors, dtype=np.bool_)
    lost = (1.0 - share) ** np.arange(_TABLED)  # powers are dear, and most cells have few impressions
    for item in range(offsets.shape[0] - 1):
        first = -1
        for cell in range(offsets[item], offsets[item + 1]):
            n = np.int64(impressions[cell])
            if _uniform(seed, cell) >= (lost[n] if n < _TABLED else (1.0 - share) ** n):
                present[factor[cell]] = True
                if first < 0:
                    first = factor[cell]
                elif parent[first] != parent[factor[cell]]:
                    link(parent, first, factor[cell])
    found = 0
    for node in range(n_factors):
        found += present[node] and parent[node] == node
    return found, present.sum()
