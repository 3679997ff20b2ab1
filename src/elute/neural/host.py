"""Batches brought from the host, for sets of features too large for the device.

Every batch carries a table of its own. Batches are put on the device ahead of their use, and a step returns before
it has run, so that reading, copying and computing overlap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.neural.data import Batch, checked_lists, to_device
from elute.neural.learner import Learner, State
from elute.neural.sources import Source

_AHEAD = 2
"""Batches on the device that are not yet in use."""


class HostBatch(NamedTuple):
    """Some lists and the features they need; `documents` are rows of `features`."""

    features: NDArray[np.float32]
    documents: NDArray[np.int32]
    clicks: NDArray[np.float32]
    logging: NDArray[np.float32] | None = None


@dataclass(frozen=True, eq=False)
class Host:
    """Batches from an iterator that can be started at any step, so that training can be resumed.

    `batches(step, size)` iterates over the batches of `size` lists from step `step` on, one a step. All must have one
    shape, as each new shape is compiled anew.
    """

    batches: Callable[[int, int], Iterator[HostBatch]]
    shape: tuple[int, int]
    """How many features and positions there are."""

    def advance(self, learner: Learner, state: State, steps: int, size: int) -> tuple[State, Array]:
        """Some steps, one call of the device each."""
        if learner.whole_log:
            raise EluteError("this learner adjusts over the whole log, which host batches never show; use over='batch'")
        losses = []
        for table, batch in _ahead(islice(self.batches(int(state.step), size), steps)):
            state, loss = _step(learner, state, table, batch)
            losses.append(loss)
        if len(losses) < steps:
            raise EluteError(f"batches ended after {int(state.step):,} steps; repeat them, or train for fewer steps")
        return state, jnp.stack(losses).mean()

    def refreshed(self, learner: Learner, state: State, step: int) -> Source:
        return self

    def changing(self) -> dict[str, Array]:
        return {}

    def changed(self, arrays: dict[str, Array]) -> Source:
        return self


@partial(jax.jit, static_argnames="learner")
def _step(learner: Learner, state: State, features: Array, batch: Batch) -> tuple[State, Array]:
    return learner.step(state, features, batch)


def _ahead(batches: Iterator[HostBatch]) -> Iterator[tuple[Array, Batch]]:
    """The batches on the device, each put there two before its turn."""
    waiting: deque[tuple[Array, Batch]] = deque()
    for batch in batches:
        checked_lists(batch.documents, len(batch.features))
        waiting.append((jnp.asarray(batch.features), Batch(*to_device(batch[1:]))))
        if len(waiting) > _AHEAD:
            yield waiting.popleft()
    yield from waiting


def from_table(
    features: NDArray[np.float32],
    documents: NDArray[np.int32],
    clicks: NDArray[np.float32],
    logging: NDArray[np.float32] | None = None,
    *,
    seed: int = 0,
) -> Host:
    """Logged lists over a table that stays on the host (a memory-mapped file, say); lists come in random order,
    each once before any comes again."""
    rows = checked_lists(documents, len(features))

    def batches(step: int, size: int) -> Iterator[HostBatch]:
        an_epoch = len(rows) // size
        if an_epoch == 0:
            raise EluteError(f"a batch of {size:,} lists needs as many; there are {len(rows):,}")
        while True:
            epoch, start = divmod(step, an_epoch)
            order = np.random.default_rng((seed, epoch)).permutation(len(rows))
            for number in range(start, an_epoch):
                some = np.sort(order[number * size : (number + 1) * size])
                shown = rows[some]
                table = features[np.maximum(shown, 0).ravel()]
                own = np.where(shown >= 0, np.arange(shown.size).reshape(shown.shape), -1).astype(np.int32)
                yield HostBatch(table, own, clicks[some], None if logging is None else logging[some])
                step += 1

    return Host(batches, (features.shape[1], rows.shape[1]))
