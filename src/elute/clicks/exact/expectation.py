"""What a chain's hidden reading is expected to have been, given the clicks: the E-step that all chains share.

At and above the last click everything was read; so hidden is only how far below it the user went. For the places
below, β is the probability that nothing is clicked from there on if the place is read, τ the probability of having
come there from the last click without another, and the place was read with τ·β over the probability of the tail.
These are products of a few probabilities, so that here, other than in the likelihood, logarithms gain nothing.

Where documents have a prior, a place is judged by what the *other* places say of its document: the posterior mean
without what is only guessed of this one (collapsed variational Bayes of order 0, Asuncion et al. 2009). Otherwise the
guess would confirm itself, and with one impression a document there is nothing else to confirm it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.clicks.backend import compile_first_static, jnp, scan, sum_at
from elute.clicks.exact.satisfaction import LastClicks
from elute.clicks.page import DevicePages
from elute.clicks.structure.chain import ChainStructure, Chances, Counted, Readings

if TYPE_CHECKING:
    import jax

Floats = NDArray[np.float64]

_LEAST = 1e-37
"""The smallest probability whose logarithm is taken."""


class Weights(NamedTuple):
    """Of a rate of documents, by document: as it were, how often it happened and how often not, prior and all."""

    yes: Floats
    no: Floats


class ChainSums(NamedTuple):
    """Over sessions: `tallies`, by rate, how often it happened and of how many times (documents on the last axis)."""

    tallies: dict[str, Floats]
    log_likelihood: float
    last: LastClicks

    def add(self, other: ChainSums) -> ChainSums:
        """Both together."""
        tallies = {name: values + other.tallies[name] for name, values in self.tallies.items()}
        doc, further = (np.concatenate(both) for both in zip(self.last, other.last, strict=True))
        return ChainSums(tallies, self.log_likelihood + other.log_likelihood, LastClicks(doc, further))


class Inferred(NamedTuple):
    """P(read | all clicks) by (session, place), 0 on the padding; by session, log P(clicks), and P(a click further
    down | the place below the last click is read)."""

    read: jax.Array
    log_p: jax.Array
    further: jax.Array


def infer_readings(chances: Chances, clicked: jax.Array, mask: jax.Array) -> Inferred:
    """What is hidden, from what is seen."""
    click, on_click, on_skip = chances
    rank = jnp.arange(mask.shape[1])
    last = jnp.max(jnp.where(clicked, rank + 1, 0), axis=1)
    tail = mask & (rank >= last[:, None])

    def step(below: jax.Array, inputs: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        skip, shown = inputs
        here = jnp.where(shown, skip * (1.0 - on_skip + on_skip * below), 1.0)
        return here, here

    skip = 1.0 - click
    beta = scan(step, jnp.ones(len(mask)), (skip.T, mask.T), reverse=True)[1].T
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
    log_p = jnp.log(jnp.maximum(known, _LEAST)).sum(axis=1) + jnp.log(tail_chance)
    return Inferred(read, log_p, 1.0 - first_beta)


def _count_pages(
    structure: ChainStructure, rates: dict[str, jax.Array], pages: DevicePages
) -> tuple[Counted, Inferred]:
    """What EM adds up, by place, and what that was made from."""
    mask, clicked = pages.mask, pages.clicked
    inferred = infer_readings(structure.chances(rates), clicked, mask)
    read = inferred.read
    following = jnp.pad(read, ((0, 0), (0, 1)))[:, 1:]
    has_next = jnp.pad(mask, ((0, 0), (0, 1)))[:, 1:]
    turn = clicked & has_next
    found = Readings(
        read,
        jnp.where(clicked, 1.0, 0.0),
        jnp.where(turn, 1.0, 0.0),
        jnp.where(turn, following, 0.0),
        jnp.where(~clicked & has_next, read, 0.0),
        jnp.where(clicked, 0.0, following),
    )
    return structure.count(rates, found), inferred


@compile_first_static
def _sum_pages(
    kind: tuple[ChainStructure, bool], weights: dict[str, Weights], rest: dict[str, jax.Array], pages: DevicePages
) -> tuple[dict[str, tuple[jax.Array, jax.Array]], jax.Array, tuple[jax.Array, jax.Array]]:
    structure, leaves_out = kind
    yes, no = ({name: jnp.take(one[way], pages.doc, mode="clip") for name, one in weights.items()} for way in (0, 1))
    counted, found = _count_pages(structure, {name: yes[name] / (yes[name] + no[name]) for name in yes} | rest, pages)
    if leaves_out:
        others = {}
        for name in yes:
            known = jnp.where(pages.clicked, 1.0, 0.0) if name == "attraction" else 0.0
            happened, trials = (values - known for values in counted[name])
            some = jnp.maximum(yes[name] - happened, 1e-6 * yes[name])
            none = jnp.maximum(no[name] - (trials - happened), 1e-6 * no[name])
            others[name] = some / (some + none)
        counted, found = _count_pages(structure, others | rest, pages)
    amount = len(next(iter(weights.values())).yes)
    doc = jnp.where(pages.mask, pages.doc, amount)
    sums = {
        name: (_sum_shown(doc, one, pages, amount), _sum_shown(doc, two, pages, amount)) if name in yes else (one, two)
        for name, (one, two) in counted.items()
    }
    rank = jnp.arange(pages.doc.shape[1])
    last = jnp.max(jnp.where(pages.clicked, rank, -1), axis=1)
    at = jnp.take_along_axis(pages.doc, jnp.maximum(last, 0)[:, None], axis=1)[:, 0]
    ends = jnp.where((last >= 0) & (last + 1 < pages.length), at, amount), found.further
    return sums, jnp.where(pages.length > 0, found.log_p, 0.0).sum(), ends


def _sum_shown(doc: jax.Array, values: jax.Array, pages: DevicePages, amount: int) -> jax.Array:
    return sum_at(doc, jnp.where(pages.mask, values, 0.0), amount)


def expect(
    structure: ChainStructure, leaves_out: bool, weights: dict[str, Weights], rest: dict[str, Any], pages: DevicePages
) -> ChainSums:
    """Of some pages, in double precision, so that many of them can be added up. `leaves_out`: see above; without it,
    this is the E-step of maximum likelihood."""
    sums, log_p, ends = _sum_pages((structure, leaves_out), weights, rest, pages)
    tallies = {name: np.stack([np.asarray(values, np.float64) for values in both]) for name, both in sums.items()}
    doc, further = np.asarray(ends[0], np.int64), np.asarray(ends[1], np.float64)
    some = doc < len(next(iter(weights.values())).yes)
    return ChainSums(tallies, float(log_p), LastClicks(doc[some], further[some]))
