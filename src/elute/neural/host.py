"""A log whose features stay on the host: for sets too large for the device, or, in mapped files, for memory.

The lists of a batch are those that the same log on the device would draw (`sources.LoggedLists`), so that where the
features lie changes nothing but speed. A thread gathers batches ahead of their use, and a step returns before it has
run, so that reading, copying and computing overlap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.neural.data import Batch, to_device
from elute.neural.learner import Learner, State, step_key
from elute.neural.sources import BatchSource, draw_lists

_AHEAD = 3
"""Batches gathered that are not yet in use."""


@dataclass(frozen=True, eq=False)
class Host:
    """Logged lists and features in arrays of the host, or in files mapped to memory."""

    features: NDArray[np.float32]
    """(documents, features), finite."""
    documents: NDArray[np.int32]
    """(lists, positions) rows of the features; -1 after a list's last document."""
    clicks: NDArray[np.float32]
    logging: NDArray[np.float32] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.features.shape[1], self.documents.shape[1]

    def advance(self, learner: Learner, state: State, steps: int, size: int) -> tuple[State, Array]:
        """Some steps, one call of the device each."""
        if learner.whole_log:
            raise EluteError(
                "this learner adjusts over the whole log, which host batches never show; set 'over' to 'batch'"
            )
        losses = []
        for table, batch in self._gather_batches(_draw_lists(state, steps, size, len(self.documents))):
            state, loss = _step(learner, state, table, batch)
            losses.append(loss)
        return state, jnp.stack(losses).mean()

    def _gather_batches(self, draws: Array) -> Iterator[tuple[Array, Batch]]:
        """The batches of these lists on the device, each gathered while those before it are in use."""
        waiting: deque[Future[tuple[Array, Batch]]] = deque()
        with ThreadPoolExecutor(1) as reader:
            for some in np.asarray(draws):
                waiting.append(reader.submit(self._gather_batch, some))
                if len(waiting) > _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _gather_batch(self, some: NDArray[np.int32]) -> tuple[Array, Batch]:
        """Some lists with a table of their own."""
        shown = self.documents[some]
        table = self.features[np.maximum(shown, 0).ravel()]
        own = np.where(shown >= 0, np.arange(shown.size, dtype=np.int32).reshape(shown.shape), -1)
        logging = None if self.logging is None else self.logging[some]
        return to_device(table), Batch(*to_device((own, self.clicks[some], logging)))

    def refresh(self, learner: Learner, state: State, step: int) -> BatchSource:
        return self

    def changing_arrays(self) -> dict[str, Array]:
        return {}

    def replace_arrays(self, arrays: dict[str, Array]) -> BatchSource:
        return self


def device_memory() -> int | None:
    """Bytes that the device may hold; None where it shares the host's memory."""
    stats: dict[str, int] | None = jax.devices()[0].memory_stats()
    return None if stats is None else stats.get("bytes_limit")


@partial(jax.jit, static_argnames=("steps", "size", "lists"))
def _draw_lists(state: State, steps: int, size: int, lists: int) -> Array:
    """(steps, size): the lists of the next steps."""

    def of_step(step: Array) -> Array:
        return draw_lists(step_key(state._replace(step=step), 0), size, lists)

    return jax.vmap(of_step)(state.step + jnp.arange(steps))


@partial(jax.jit, static_argnames="learner")
def _step(learner: Learner, state: State, features: Array, batch: Batch) -> tuple[State, Array]:
    return learner.step(state, features, batch)
