"""One link looked at again and again, as arrays: an item under two factors, with independent and dependent clicks.

Through one item the ratio is that of two click rates, p̂_s/p̂_t, and its variance (1/p̂_s - 1)/n_s + (1/p̂_t - 1)/n_t; with
clusters each part is Σ (c - n·p̂)²/(N·p̂)², times G/(G - 1). So a thousand runs are a few matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from elute.repair.looks.sequence import ConfidenceSequence, plan_sequence

Floats = NDArray[np.float64]
Generator = np.random.Generator

TARGET_SE = 0.1
Z = float(ndtri(0.975))


@dataclass(frozen=True)
class LinkWorld:
    """`source`, `target`: click probabilities. `tastes`: variance of what a query's clicks are multiplied by, at each
    factor anew; 0: clicks are independent. `size`: impressions of a query at a look. `before`: impressions at the
    source before the plan that are used, too; `picked`: it was for its clicks there that the plan took the item, the
    most of so many alike."""

    source: float
    target: float
    before: int = 0
    tastes: float = 0.0
    size: int = 1
    picked: int = 1


@dataclass(frozen=True)
class Looks:
    """Shares of runs. `ever_out`: the sequence excluded the truth at some look; `naive_ever_out`: so did intervals of
    ±1.96 standard errors; `stopped`; `held_at_stop`, `naive_held_at_stop`: of those that stopped, the interval at that
    look held the truth. `used`: impressions of the new pair until the stop, over those until ±1.96 standard errors are
    as narrow."""

    runs: int
    ever_out: float
    naive_ever_out: float
    stopped: float
    held_at_stop: float
    naive_held_at_stop: float
    used: float

    def __str__(self) -> str:
        return f"{self.ever_out:.1%} with the sequence, {self.naive_ever_out:.1%} with ±1.96 standard errors"


def watch_link(world: LinkWorld, runs: int, looks: int, rng: Generator, with_clusters: bool = True) -> Looks:
    """Look so many times, the last when twice the impressions are in that the sequence is expected to take.
    `with_clusters`: variances take in that clicks of a query depend on each other."""
    sequence = plan_sequence(TARGET_SE, 1)
    ratios, variances, shown = [], [], np.empty(0)
    for p, before in ((world.source, world.before), (world.target, 0)):
        effect = 1 + (world.size - 1) * world.tastes * p / (1 - p)
        step = int(np.ceil(2 * (1 / p - 1) * effect / (sequence.goal / 2) / looks / world.size))
        new = np.full(looks, step)
        total, squares = _draw(world, p, runs, new, rng)
        clusters = before // world.size + np.cumsum(new)
        if before:
            first = [_draw(world, p, runs, np.array([before // world.size]), rng) for _ in range(world.picked)]
            best = np.argmax([clicks[:, 0] for clicks, _ in first], axis=0)
            total, squares = (
                part + np.stack([one[which] for one in first])[best, np.arange(runs)]
                for which, part in enumerate((total, squares))
            )
        shown = clusters * world.size
        rate = total / shown
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = (1 / rate - 1) / shown
            if with_clusters and world.tastes:
                spread = (squares - clusters * (world.size * rate) ** 2) / total**2
                variance = np.maximum(spread * clusters / np.maximum(clusters - 1, 1), variance)
        variances.append(np.where(total > 0, variance, np.inf))
        ratios.append(np.log(np.maximum(total, 1) / shown))
    error = ratios[0] - ratios[1] - np.log(world.source / world.target)
    return sum_up(error, variances[0] + variances[1], shown, sequence)


def sum_up(error: Floats, variance: Floats, shown: NDArray[np.number], sequence: ConfidenceSequence) -> Looks:
    """From errors and variances by run and look, and impressions of the new pair by look."""
    half, naive = sequence.find_half_widths(variance), Z * np.sqrt(variance)
    finite = np.isfinite(variance)
    out, naive_out = (finite & (np.abs(error) > width) for width in (half, naive))
    every = np.arange(len(error))
    done, naive_done = half <= sequence.target, naive <= sequence.target
    at, naive_at = done.argmax(axis=1), naive_done.argmax(axis=1)
    stopped, naive_stopped = done.any(axis=1), naive_done.any(axis=1)
    return Looks(
        runs=len(error),
        ever_out=float(out.any(axis=1).mean()),
        naive_ever_out=float(naive_out.any(axis=1).mean()),
        stopped=float(stopped.mean()),
        held_at_stop=float(1 - out[every, at][stopped].mean()),
        naive_held_at_stop=float(1 - naive_out[every, naive_at][naive_stopped].mean()),
        used=float(shown[at][stopped].mean() / shown[naive_at][naive_stopped].mean()),
    )


def _draw(world: LinkWorld, p: float, runs: int, queries: NDArray[np.int64], rng: Generator) -> tuple[Floats, Floats]:
    """Clicks so far by run and look, of so many queries new at each, and the sum of squares of those of each query (0
    where clicks are independent)."""
    if world.tastes == 0:
        clicks = rng.binomial(queries * world.size, p, (runs, len(queries)))
        return np.cumsum(clicks, axis=1).astype(float), np.zeros((runs, len(queries)))
    own = rng.gamma(1 / world.tastes, world.tastes, (runs, int(queries.sum())))
    drawn = rng.binomial(world.size, np.minimum(p * own, 1.0)).astype(float)
    ends = np.cumsum(queries) - 1
    return np.cumsum(drawn, axis=1)[:, ends], np.cumsum(drawn**2, axis=1)[:, ends]
