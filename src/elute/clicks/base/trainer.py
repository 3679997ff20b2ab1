"""The one training loop: Adam on mini-batches, early stopping on held-out likelihood, checkpoints that resume exactly.

An epoch's order depends on the seed and the epoch's number alone, and a checkpoint is written between epochs, so that
a run that was interrupted ends where an uninterrupted one does. The best state is a copy: the arrays that training
goes on with are overwritten in place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from elute.clicks.base import checkpoint
from elute.clicks.page import DevicePages, split_pages, to_device_pages
from elute.clicks.sessions import Sessions, SessionSource, iterate_sessions
from elute.clicks.structure.base import ClickStructure, likelihoods, log_pages
from elute.clicks.structure.towers import Params
from elute.errors import EluteError
from elute.progress import Progress


@dataclass(frozen=True, kw_only=True)
class Training:
    """`patience`: epochs without a better held-out likelihood before training stops; without validation sessions all
    `epochs` are run. The CMIP paper's experiment: 10 epochs, batch 256, learning rate 0.001, patience 1.
    """

    epochs: int = 50
    batch: int = 4096
    learning_rate: float = 0.01
    patience: int = 1
    seed: int = 0


class Epoch(NamedTuple):
    """Mean log-likelihood of a session, in training (as it went) and of the validation sessions after it (or NaN)."""

    training: float
    validation: float


class TrainedParams(NamedTuple):
    """The best parameters (without validation: the last), all epochs, and the number of the best from 1."""

    params: Params
    history: list[Epoch]
    best: int


class _TrainingState(NamedTuple):
    """All that a run needs to go on; a row of `history` an epoch."""

    params: Params
    optimiser: Any
    best_params: Params
    best: int
    done: int
    history: NDArray[np.float64]


def train(
    structure: ClickStructure,
    params: Params,
    features: jax.Array,
    source: SessionSource,
    validation: Sessions | None,
    training: Training,
    progress: Progress,
    kept: Path | None,
) -> TrainedParams:
    """Fit `params`. `kept`: the checkpoint's file; where it exists, training goes on from there."""
    if training.epochs < 1 or training.batch < 1 or training.patience < 1 or not training.learning_rate > 0:
        raise EluteError("epochs, batch and patience must be at least 1, and the learning rate above 0")
    own = jax.tree.map(jnp.array, params)
    first = optax.adam(training.learning_rate).init(own)
    at = _TrainingState(own, first, _copy(own), 0, 0, np.zeros((0, 2)))
    identity = f"{structure} batch={training.batch} rate={training.learning_rate} seed={training.seed}"
    if kept is not None and kept.exists():
        at = _restore(kept, at, identity)
    resident = to_device_pages(source) if isinstance(source, Sessions) else None
    while at.done < training.epochs and at.done - at.best < training.patience:
        at = _run_epoch(structure, at, features, source, resident, validation, training)
        progress("training", at.done, training.epochs)
        if kept is not None:
            checkpoint.write(kept, at, identity)
    history = [Epoch(float(a), float(b)) for a, b in at.history]
    return TrainedParams(at.best_params, history, at.best)


def _run_epoch(
    structure: ClickStructure,
    at: _TrainingState,
    features: jax.Array,
    source: SessionSource,
    resident: DevicePages | None,
    validation: Sessions | None,
    training: Training,
) -> _TrainingState:
    params, optimiser = at.params, at.optimiser
    losses, sessions = [], 0
    for pages, amount in _draw_batches(source, resident, training.batch, (training.seed, at.done)):
        params, optimiser, loss = _step(
            structure, params, optimiser, features, pages, training.learning_rate, 1.0 / amount
        )
        losses.append(loss * amount)
        sessions += amount
    if not sessions:
        raise EluteError("there are no sessions to train on")
    reached = -float(np.sum(np.asarray(losses, np.float64))) / sessions
    if not math.isfinite(reached):
        raise EluteError(f"the likelihood is {reached} in epoch {at.done + 1}; lower the learning rate")
    held_out = math.nan if validation is None else mean_log_likelihood(structure, params, features, validation)
    done = at.done + 1
    earlier = at.history[:, 1]
    better = validation is None or held_out > earlier.max(initial=-math.inf)
    return _TrainingState(
        params,
        optimiser,
        _copy(params) if better else at.best_params,
        done if better else at.best,
        done,
        np.concatenate((at.history, [[reached, held_out]])),
    )


def _copy(params: Params) -> Params:
    copied: Params = jax.tree.map(jnp.copy, params)
    return copied


def _restore(kept: Path, like: _TrainingState, identity: str) -> _TrainingState:
    found = checkpoint.read(kept, lambda: like, identity, growing=".history")
    best, done = int(found.best), int(found.done)
    if not 0 <= best <= done or found.history.shape != (done, like.history.shape[1]):
        raise EluteError(f"{kept} does not fit together; delete it or give another path")
    return found._replace(best=best, done=done)


def _draw_batches(
    source: SessionSource, resident: DevicePages | None, size: int, order: tuple[int, int]
) -> Iterator[tuple[DevicePages, int]]:
    """Mini-batches of one shape and how many sessions they hold; each part is shuffled by itself."""
    for number, part in enumerate(iterate_sessions(source)):
        pages = resident if resident is not None else to_device_pages(part)
        rows = np.random.default_rng((*order, number)).permutation(len(part)).astype(np.int32)
        width = min(size, 1 << max(len(part) - 1, 0).bit_length())
        for start in range(0, len(part), width):
            chosen = rows[start : start + width]
            yield pick(pages, jnp.asarray(np.pad(chosen, (0, width - len(chosen)), constant_values=-1))), len(chosen)


@jax.jit
def pick(pages: DevicePages, rows: jax.Array) -> DevicePages:
    """Some rows; a row of -1 is a session without documents."""
    picked = DevicePages(*(jnp.take(values, rows, axis=0, mode="clip") for values in pages))
    return picked._replace(length=jnp.where(rows < 0, 0, picked.length))


@partial(jax.jit, static_argnums=0, donate_argnums=(1, 2))
def _step(
    structure: ClickStructure,
    params: Params,
    optimiser: Any,
    features: jax.Array,
    pages: DevicePages,
    learning_rate: jax.Array,
    share: jax.Array,
) -> tuple[Params, Any, jax.Array]:
    """One step of Adam on the cross-entropy summed over ranks, the mean over sessions."""

    def loss(at: Params) -> jax.Array:
        return -share * log_pages(structure, at, features, pages).sum()

    value, slope = jax.value_and_grad(loss)(params)
    change, optimiser = optax.adam(learning_rate).update(slope, optimiser)
    return optax.apply_updates(params, change), optimiser, value


def mean_log_likelihood(structure: ClickStructure, params: Params, features: jax.Array, sessions: Sessions) -> float:
    """Mean log-likelihood of a session."""
    total = 0.0
    for where, pages in split_pages(sessions.trim()):
        values = np.asarray(likelihoods(structure, params, features, pages), np.float64)
        total += float(values[: where.stop - where.start].sum())
    return total / max(len(sessions), 1)
