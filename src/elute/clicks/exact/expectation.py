"""What a chain's hidden reading is expected to have been, given the clicks: the E-step that all chains share.

At and above the last click everything was read; so hidden is only how far below it the user went. For the places
below, β is the probability that nothing is clicked from there on if the place is read, τ the probability of having
come there from the last click without another, and the place was read with τ·β over the probability of the tail.
These are products of a few probabilities, so that here, other than in the likelihood, logarithms gain nothing.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from elute.clicks.page import DevicePages
from elute.clicks.structure.chain import ChainStructure, Chances
from elute.clicks.structure.towers import Params

Floats = NDArray[np.float64]

_LEAST = 1e-37
"""The smallest probability whose logarithm is taken."""


class Expected(NamedTuple):
    """Sums over sessions. Going on is counted only where there was a place to go on to.

    `read` and `on`: by document, how often it was read, and how often the user went on after clicking it.
    `on_by_rank`: the latter by rank. `skips` and `on_skip`: documents read and not clicked, and going on from them.
    """

    read: Floats
    on: Floats
    on_by_rank: Floats
    skips: float
    on_skip: float
    log_likelihood: float

    def add(self, other: Expected) -> Expected:
        """Both together."""
        return Expected(
            self.read + other.read,
            self.on + other.on,
            self.on_by_rank + other.on_by_rank,
            self.skips + other.skips,
            self.on_skip + other.on_skip,
            self.log_likelihood + other.log_likelihood,
        )


def infer_readings(chances: Chances, clicked: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """P(read | all clicks) by (session, place), 0 on the padding; and log P(clicks) by session."""
    click, on_click, on_skip = chances
    rank = jnp.arange(mask.shape[1])
    last = jnp.max(jnp.where(clicked, rank + 1, 0), axis=1)
    tail = mask & (rank >= last[:, None])

    def step(below: jax.Array, inputs: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        skip, shown = inputs
        here = jnp.where(shown, skip * (1.0 - on_skip + on_skip * below), 1.0)
        return here, here

    skip = 1.0 - click
    beta = jax.lax.scan(step, jnp.ones(len(mask)), (skip.T, mask.T), reverse=True)[1].T
    at_last = jnp.maximum(last - 1, 0)[:, None]
    entered = jnp.where(last > 0, jnp.take_along_axis(on_click, at_last, axis=1)[:, 0], 1.0)
    first_beta = jnp.take_along_axis(jnp.pad(beta, ((0, 0), (0, 1)), constant_values=1.0), last[:, None], axis=1)[:, 0]
    tail_chance = jnp.maximum(1.0 - entered + entered * first_beta, _LEAST)
    passed = jnp.where(tail, skip * on_skip, 1.0)
    come = jnp.pad(jnp.cumprod(passed, axis=1), ((0, 0), (1, 0)), constant_values=1.0)[:, :-1]
    below = jnp.minimum(entered[:, None] * come * beta / tail_chance[:, None], 1.0)
    read = jnp.where(mask, jnp.where(tail, below, 1.0), 0.0)
    onward = jnp.where(rank + 1 < last[:, None], jnp.where(clicked, on_click, on_skip), 1.0)
    known = jnp.where(mask & ~tail, jnp.where(clicked, click, skip) * onward, 1.0)
    return read, jnp.log(jnp.maximum(known, _LEAST)).sum(axis=1) + jnp.log(tail_chance)


@partial(jax.jit, static_argnums=0)
def _sum_readings(
    structure: ChainStructure, params: Params, features: jax.Array, pages: DevicePages
) -> tuple[jax.Array, ...]:
    mask, clicked = pages.mask, pages.clicked
    read, log_p = infer_readings(structure.chances(params, features, pages), clicked, mask)
    following = jnp.pad(read, ((0, 0), (0, 1)))[:, 1:]
    has_next = jnp.pad(mask, ((0, 0), (0, 1)))[:, 1:]
    after_click = jnp.where(clicked & has_next, following, 0.0)
    after_skip = jnp.where(clicked, 0.0, following)
    skips = jnp.where(~clicked & has_next, read, 0.0)
    documents = features.shape[0]
    doc = jnp.where(mask, pages.doc, documents).ravel()
    nothing = jnp.zeros(documents)
    return (
        nothing.at[doc].add(read.ravel(), mode="drop"),
        nothing.at[doc].add(after_click.ravel(), mode="drop"),
        after_click.sum(axis=0),
        skips.sum(),
        after_skip.sum(),
        jnp.where(pages.length > 0, log_p, 0.0).sum(),
    )


def expectations(
    structure: ChainStructure, params: Params, features: jax.Array, pages: DevicePages, ranks: int
) -> Expected:
    """Of some pages, in double precision, so that many of them can be added up."""
    read, on, by_place, *numbers = (
        np.asarray(x, np.float64) for x in _sum_readings(structure, params, features, pages)
    )
    on_by_rank = np.zeros(ranks)
    on_by_rank[: len(by_place)] = by_place
    return Expected(read, on, on_by_rank, *map(float, numbers))
