"""Where batches come from: a simulated world, online or offline, or a log on the device.

Their arrays lie on the device and batches are drawn there, inside the jitted run of steps. Which lists a batch has
depends on the seed and the number of the step alone, so that training resumes exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from elute.errors import EluteError
from elute.neural.data import (
    Batch,
    check_features,
    check_lists,
    check_numbers,
    check_propensities,
    to_device,
)
from elute.neural.learner import Learner, State, score_documents, step_key
from elute.neural.networks import Key


class BatchSource(Protocol):
    """What `train` needs of a source."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many features and positions there are."""
        ...

    def advance(self, learner: Learner, state: State, steps: int, size: int) -> tuple[State, Array]:
        """Some steps on batches of `size` lists, and their mean loss."""
        ...

    def refresh(self, learner: Learner, state: State, step: int) -> BatchSource:
        """The source after step `step`; online, what is shown changes with the ranker."""
        ...

    def changing_arrays(self) -> dict[str, Array]:
        """The arrays that `refresh` changes, to be kept in checkpoints."""
        ...

    def replace_arrays(self, arrays: dict[str, Array]) -> BatchSource:
        """The source with those arrays from a checkpoint."""
        ...


class LoggedLists(NamedTuple):
    """Logged lists and clicks; a batch takes lists at random, with replacement."""

    features: Array
    documents: Array
    clicks: Array
    logging: Array | None = None

    def draw(self, key: Key, size: int) -> Batch:
        """A batch."""
        some = draw_lists(key, size, self.documents.shape[0])
        return Batch(*jax.tree.map(lambda of_list: of_list[some], self[1:]))


def draw_lists(key: Key, size: int, lists: int) -> Array:
    """`size` of so many lists, at random with replacement."""
    return jax.random.randint(key, (size,), 0, lists)


class SimulatedLists(NamedTuple):
    """Queries with the lists shown for them, and users who click by the position-based model.

    Each list of a batch is that of a random query, with clicks drawn anew: P(click) = relevance · propensity.
    """

    features: Array
    documents: Array
    logging: Array
    relevance: Array
    """By document row."""
    propensities: Array
    """By position."""

    def draw(self, key: Key, size: int) -> Batch:
        """A batch."""
        of_query, of_click = jax.random.split(key)
        some = jax.random.randint(of_query, (size,), 0, self.documents.shape[0])
        documents = self.documents[some]
        return Batch(documents, self.draw_clicks(of_click, documents), self.logging[some])

    def draw_clicks(self, key: Key, documents: Array) -> Array:
        """Clicks on some lists."""
        chance = self.relevance[jnp.maximum(documents, 0)] * self.propensities
        return ((jax.random.uniform(key, documents.shape) < chance) & (documents >= 0)).astype(jnp.float32)

    def randomise(self, key: Key, pages: int) -> Batch:
        """Pages whose order was drawn at random, for estimates of propensities by result randomisation."""
        of_query, of_order, of_click = jax.random.split(key, 3)
        some = jax.random.randint(of_query, (pages,), 0, self.documents.shape[0])
        documents = self.documents[some]
        noise = jnp.where(documents >= 0, jax.random.uniform(of_order, documents.shape), 2.0)
        documents = jnp.take_along_axis(documents, jnp.argsort(noise, axis=1), axis=1)
        return Batch(documents, self.draw_clicks(of_click, documents))


@partial(jax.jit, static_argnames=("learner", "steps", "size"))
def _run(
    learner: Learner, data: LoggedLists | SimulatedLists, state: State, steps: int, size: int
) -> tuple[State, Array]:
    def one(state: State, _: None) -> tuple[State, Array]:
        return learner.step(state, data.features, data.draw(step_key(state, 0), size))

    state = learner.adjust_over_log(state, data.features, data.documents)
    state, losses = jax.lax.scan(one, state, None, length=steps)
    return state, losses.mean()


@dataclass(frozen=True, eq=False)
class Offline:
    """Fixed lists: a log, or a world whose logging policy stays (the paradigm Off of 5.1)."""

    data: LoggedLists | SimulatedLists

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.features.shape[1], self.data.documents.shape[1]

    def advance(self, learner: Learner, state: State, steps: int, size: int) -> tuple[State, Array]:
        """Some steps, fused into one call of the device."""
        state, loss = _run(learner, self.data, state, steps, size)
        return state, loss

    def refresh(self, learner: Learner, state: State, step: int) -> BatchSource:
        return self

    def changing_arrays(self) -> dict[str, Array]:
        return {}

    def replace_arrays(self, arrays: dict[str, Array]) -> BatchSource:
        return self


@dataclass(frozen=True, eq=False)
class Online(Offline):
    """A world that shows what the current ranker ranks highest, renewed `every` so many steps (OnD of 5.1)."""

    data: SimulatedLists
    candidates: Array
    """(queries, documents) rows: all documents of each query, with -1 after the last."""
    every: int = 2_500

    def refresh(self, learner: Learner, state: State, step: int) -> BatchSource:
        if step % self.every:
            return self
        shown = rank_lists(score_documents(learner, state, self.data.features), self.candidates, self.shape[1])
        return self.replace_arrays(dict(zip(("documents", "logging"), shown, strict=True)))

    def changing_arrays(self) -> dict[str, Array]:
        return {"documents": self.data.documents, "logging": self.data.logging}

    def replace_arrays(self, arrays: dict[str, Array]) -> BatchSource:
        return Online(self.data._replace(**arrays), self.candidates, self.every)


@partial(jax.jit, static_argnames="positions")
def rank_lists(scores: Array, candidates: Array, positions: int) -> tuple[Array, Array]:
    """The lists that a policy with these scores by row shows of some candidates, and their scores."""
    of_candidate = jnp.where(candidates >= 0, scores[jnp.maximum(candidates, 0)], -jnp.inf)
    top, where = jax.lax.top_k(of_candidate, positions)
    documents = jnp.take_along_axis(candidates, where, axis=1)
    return documents, jnp.where(documents >= 0, top, 0.0)


def build_logged_source(
    features: ArrayLike, documents: ArrayLike, clicks: ArrayLike, logging: ArrayLike | None = None
) -> Offline:
    """Logged lists, checked and put on the device."""
    table = check_features(features)
    rows = check_lists(documents, len(table))
    scores = None if logging is None else check_numbers("logging scores", logging, rows.shape)
    return Offline(LoggedLists(*to_device((table, rows, check_numbers("clicks", clicks, rows.shape), scores))))


def build_simulated_lists(
    features: ArrayLike, documents: ArrayLike, logging: ArrayLike, relevance: ArrayLike, propensities: ArrayLike
) -> SimulatedLists:
    """A world, checked and put on the device."""
    table = check_features(features)
    rows = check_lists(documents, len(table))
    seen = check_propensities(propensities, rows.shape[1])
    chance = check_numbers("relevance", relevance, (len(table),))
    if chance.min() < 0 or chance.max() * seen.max() > 1:
        raise EluteError("relevance times propensity must be a probability, between 0 and 1")
    scores = check_numbers("logging scores", logging, rows.shape)
    return SimulatedLists(*to_device((table, rows, scores, chance, seen)))
