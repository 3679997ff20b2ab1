"""Recurrent click models of several logs trained at once: the same network, one set of parameters a log.

Each model goes through the steps of `elute.clicks.base.trainer` (its own order of sessions, Adam, the best epoch by
held-out likelihood). Only the arithmetic is shared: one vectorised step for all, which on a GPU takes hardly longer
than a step of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from elute.clicks import Sessions, Training
from elute.clicks.base.trainer import pick
from elute.clicks.page import DevicePages, to_device_pages
from elute.clicks.structure.base import ClickStructure, log_pages
from elute.clicks.structure.towers import Params
from elute.progress import Progress

PIECE = 1 << 14
"""Sessions of a log that are gone through at a time where no gradient is needed."""


class Fits(NamedTuple):
    """Parameters of all fits, stacked on a first axis, and the best epoch of each, from 1."""

    params: Params
    best: np.ndarray[Any, np.dtype[np.int64]]


def fit_together(
    structure: ClickStructure,
    train: Sequence[Sessions],
    validation: Sequence[Sessions],
    seeds: Sequence[int],
    training: Training,
    progress: Progress,
) -> Fits:
    """Fit one model to each log. Logs must be equally long; `training.seed` gives way to `seeds`."""
    pages, held_out = _stack(train), _stack(validation)
    first = [structure.init(jax.random.key(seed), 0) for seed in seeds]
    params: Params = jax.tree.map(lambda *each: jnp.stack(each), *first)
    optimiser = jax.vmap(optax.adam(training.learning_rate).init)(params)
    kept, best, reached = params, np.zeros(len(seeds), np.int64), np.full(len(seeds), -np.inf)
    for epoch in range(training.epochs):
        learning = epoch - best < training.patience
        if not learning.any():
            break
        progress("training", epoch, training.epochs)
        order = _draw_order(seeds, epoch, len(train[0]), training.batch)
        params, optimiser = _run_epoch(structure, training.learning_rate, params, optimiser, pages, order)
        found = np.asarray(_sum_likelihood(structure, params, held_out), np.float64)
        better = learning & (found > reached)
        kept = _choose(jnp.asarray(better), params, kept)
        best[better], reached[better] = epoch + 1, found[better]
    return Fits(kept, best)


def predict_together(structure: ClickStructure, params: Params, sessions: Sequence[Sessions], *, marginal: bool) -> Any:
    """P(click) by (fit, session, place): whatever else is clicked, or given the clicks above."""
    pages = _stack(sessions)
    parts = [_predict(structure, marginal, params, part) for part in _split_sessions(pages)]
    return np.concatenate([np.asarray(part, np.float64) for part in parts], axis=1)


def _stack(logs: Sequence[Sessions]) -> DevicePages:
    each = [to_device_pages(log) for log in logs]
    return DevicePages(*(jnp.stack(values) for values in zip(*each, strict=True)))


def _draw_order(seeds: Sequence[int], epoch: int, sessions: int, batch: int) -> jax.Array:
    """Rows by (step, fit, place in the batch); the last batch is filled up with -1."""
    steps = -(-sessions // batch)
    rows = np.full((len(seeds), steps * batch), -1, np.int32)
    for fit, seed in enumerate(seeds):
        rows[fit, :sessions] = np.random.default_rng((seed, epoch, 0)).permutation(sessions)
    return jnp.asarray(rows.reshape(len(seeds), steps, batch).swapaxes(0, 1))


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=(3,))
def _run_epoch(
    structure: ClickStructure, rate: float, params: Params, optimiser: Any, pages: DevicePages, order: jax.Array
) -> tuple[Params, Any]:
    features = jnp.zeros((1, 0))

    def loss(at: Params, batch: DevicePages, rows: jax.Array) -> jax.Array:
        return -log_pages(structure, at, features, batch).sum() / (rows >= 0).sum()

    def update_one(at: Params, state: Any, own: DevicePages, rows: jax.Array) -> tuple[Params, Any]:
        slope = jax.grad(loss)(at, pick(own, rows), rows)
        change, state = optax.adam(rate).update(slope, state)
        return optax.apply_updates(at, change), state

    def step(carried: tuple[Params, Any], rows: jax.Array) -> tuple[tuple[Params, Any], None]:
        return jax.vmap(update_one)(*carried, pages, rows), None

    return jax.lax.scan(step, (params, optimiser), order)[0]


@jax.jit
def _choose(which: jax.Array, new: Params, old: Params) -> Params:
    def pick_one(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.where(which.reshape(-1, *[1] * (a.ndim - 1)), a, b)

    chosen: Params = jax.tree.map(pick_one, new, old)
    return chosen


@partial(jax.jit, static_argnums=0)
def _likelihood(structure: ClickStructure, params: Params, pages: DevicePages) -> jax.Array:
    return jax.vmap(lambda at, own: log_pages(structure, at, jnp.zeros((1, 0)), own).sum())(params, pages)


def _sum_likelihood(structure: ClickStructure, params: Params, pages: DevicePages) -> Any:
    return sum(np.asarray(_likelihood(structure, params, part), np.float64) for part in _split_sessions(pages))


@partial(jax.jit, static_argnums=(0, 1))
def _predict(structure: ClickStructure, marginal: bool, params: Params, pages: DevicePages) -> jax.Array:
    verb = structure.log_marginals if marginal else structure.log_conditionals
    return jnp.exp(jax.vmap(lambda at, own: verb(at, jnp.zeros((1, 0)), own))(params, pages))


def _split_sessions(pages: DevicePages) -> list[DevicePages]:
    """Along the sessions."""
    starts = range(0, pages.query.shape[1], PIECE)
    return [DevicePages(*(values[:, start : start + PIECE] for values in pages)) for start in starts]
