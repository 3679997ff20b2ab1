"""How much log is enough: the probability that a sample of it is recoverable.

`sample_curve` measures it (Figure 7 a, b of the identifiability paper): each impression is kept with
probability p, independently, so a cell of n impressions survives with probability 1 − (1 − p)ⁿ, and no
second look at the log is needed. A sample is recoverable if all factors of the log are in it and form one component:
a factor that a sample lacks cannot be recovered from it. A sample of a larger share contains the one of a smaller
share that was drawn with the same seed, so that the curve never falls.

`estimate` and `estimate_paper` predict it for items and factors that meet at random (`docs/check.md` sets both against
simulation).
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts, Cells
from elute.cells.partitions import Partition
from elute.kernels.forest import merge_edges, spanning_edges
from elute.kernels.jit import jit
from elute.kernels.unionfind import find_roots, link
from elute.log import ClickLog
from elute.progress import Progress, silent

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
SAMPLES = 20

_TABLED = 1024
_ODD = np.uint64(0xD1B54A32D192ED03)


class Point(NamedTuple):
    """What samples of one size gave."""

    share: float
    impressions: float
    """Expected impressions in a sample."""
    probability: float
    """Share of samples that have all factors, in one component."""
    components: float
    """Mean over samples."""
    factors: float
    """Mean number of factors seen in a sample."""
    samples: int
    estimate: float
    """The probability for a log of this size if items met factors at random."""
    estimate_paper: float
    """The same by Example 2 of the identifiability paper, which says far too much where factors are many."""


def estimate(impressions: float, items: int, factors: int) -> float:
    """Probability that no factor is alone: exp(−|T| exp(−(|D|/|T|)(1 − exp(−|D|/|X|)))).

    A factor has |D|/|T| impressions, each of an item that occurs elsewhere too with probability 1 − exp(−|D|/|X|). It
    is alone, or absent, if none of them is such: nearly always that, and not a larger piece, keeps a graph apart."""
    if factors == 1:
        return 1.0
    return math.exp(-factors * math.exp(impressions / factors * math.expm1(-impressions / items)))


def estimate_paper(impressions: float, items: int, factors: int) -> float:
    """Probability of identifiability by Example 2. With u = 1 − exp(−|D| / (|X||T|)) the example's exponent
    −|D| + f equals |X||T| log(1 − u²), which neither overflows nor cancels."""
    if factors == 1:
        return 1.0
    cells = float(items) * factors
    u = -math.expm1(-impressions / cells)
    log_disconnected = math.log(factors) + (cells * math.log1p(-u * u) if u < 1 else -math.inf)
    return max(0.0, -math.expm1(log_disconnected))


def sample_curve(log: ClickLog, seed: int = 0, progress: Progress = silent) -> list[Point]:
    """One point for each share of the log. The same seed gives the same samples of the same cells in the same order;
    an engine that orders them otherwise draws others."""
    jobs = [(share, sample) for share in SHARES for sample in range(SAMPLES if share < 1 else 1)]
    seeds = np.random.SeedSequence(seed).generate_state(SAMPLES, np.uint64).astype(np.uint64)
    drawn_with = seeds[[sample for _, sample in jobs]]
    sampling = CurveTask(np.array([share for share, _ in jobs]), drawn_with, len(log.survey.keys))
    partitions = log.partitions(progress)
    progress("sampling the log", 0, 0)
    if partitions is None:
        counts = log.counts(progress)
        drawn = sampling(Partition(0, Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks)))
    else:
        drawn = partitions.map_reduce(sampling, CurveSamples.merge)
    found = np.array(drawn.outcomes())
    total, items = int(log.survey.impressions.sum()), log.structure(progress).items
    return [_summarise(share, found[sampling.shares == share], total, items, sampling.n_factors) for share in SHARES]


class CurveSamples(NamedTuple):
    """Samples of some items, one a row: the forest of their factors, and which factors they have."""

    root: NDArray[np.int32]
    present: NDArray[np.bool_]

    def merge(self, other: CurveSamples) -> CurveSamples:
        """The same samples of more items."""
        both = [merge_edges(mine, spanning_edges(theirs)) for mine, theirs in zip(self.root, other.root, strict=True)]
        return CurveSamples(np.stack(both), self.present | other.present)

    def outcomes(self) -> list[tuple[int, int]]:
        """Components and factors of every sample. An empty one has none."""
        own = self.root == np.arange(self.root.shape[1])
        return list(zip((own & self.present).sum(axis=1).tolist(), self.present.sum(axis=1).tolist(), strict=True))


@dataclass(frozen=True)
class CurveTask:
    """Partition to samples of it: `shares` of the impressions, drawn with `seeds`."""

    shares: NDArray[np.float64]
    seeds: NDArray[np.uint64]
    n_factors: int

    def __call__(self, partition: Partition) -> CurveSamples:
        seeds = self.seeds + np.full(1, partition.number, np.uint64) * _ODD

        def run(job: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
            return _sample(*partition.cells[:3], self.shares[job], seeds[job], self.n_factors)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            roots, present = zip(*pool.map(run, range(len(seeds))), strict=True)
        return CurveSamples(np.stack(roots), np.stack(present))


def _summarise(share: float, drawn: NDArray[np.int64], total: int, items: int, factors: int) -> Point:
    return Point(
        share=share,
        impressions=share * total,
        probability=float(np.mean((drawn[:, 0] == 1) & (drawn[:, 1] == factors))),
        components=float(drawn[:, 0].mean()),
        factors=float(drawn[:, 1].mean()),
        samples=len(drawn),
        estimate=estimate(share * total, items, factors),
        estimate_paper=estimate_paper(share * total, items, factors),
    )


@jit
def _draw_uniform(seed: np.uint64, index: int) -> float:
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
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Draw a sample: the smallest factor of each one's component, and which factors it has."""
    parent = np.arange(n_factors, dtype=np.int32)
    present = np.zeros(n_factors, dtype=np.bool_)
    lost = (1.0 - share) ** np.arange(_TABLED)  # powers are dear, and most cells have few impressions
    for item in range(offsets.shape[0] - 1):
        first = -1
        for cell in range(offsets[item], offsets[item + 1]):
            n = np.int64(impressions[cell])
            if _draw_uniform(seed, cell) >= (lost[n] if n < _TABLED else (1.0 - share) ** n):
                present[factor[cell]] = True
                if first < 0:
                    first = factor[cell]
                elif parent[first] != parent[factor[cell]]:
                    link(parent, first, factor[cell])
    return find_roots(parent), present
