"""The shape all learners share: a state that is one tree of arrays, and pure functions on it.

A learner says which parameters it has and what its loss is; the step, the optimiser and the seeds are the same for
all. Parameters come in named groups ("ranker", "dual", …), each with an optimiser state and a gradient norm of its
own, because the towers of a model differ in size and should not clip one another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from elute.errors import EluteError
from elute.neural.data import Batch, View, look_up
from elute.neural.networks import PAPER, Key, Network
from elute.neural.optimise import ADAGRAD, Optimiser

Groups = dict[str, Any]
"""Parameters, by the name of their group."""
Memory = dict[str, Array]
"""What a learner carries from step to step beside its parameters."""


class State(NamedTuple):
    """Everything that decides how training goes on."""

    params: Groups
    optimiser: Groups
    memory: Memory
    key: Key
    """Of the whole training; each step folds its number in."""
    step: Array


@dataclass(frozen=True, kw_only=True)
class Learner(ABC):
    """A ranker learnt from clicks, and what it takes the propensities to be."""

    network: Network = PAPER
    optimiser: Optimiser = ADAGRAD

    note: ClassVar[str] = ""
    """What whoever reads its propensities must know."""

    @property
    def prepares(self) -> int:
        """Steps before the ranker learns as its learner is named for."""
        return 0

    @property
    def whole_log(self) -> bool:
        """Whether `adjust_over_log` must see the lists of the log."""
        return False

    @abstractmethod
    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        """First parameters; the group "ranker" is the network that scores documents."""

    @abstractmethod
    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        """The loss to differentiate, and the memory after this batch; without a `key` nothing is dropped."""

    @abstractmethod
    def log_propensities(self, state: State) -> Array:
        """By position, up to a constant."""

    def init_memory(self, n_features: int, positions: int) -> Memory:
        """The memory before the first step."""
        return {}

    def active_groups(self, step: Array) -> dict[str, Array]:
        """Groups that are trained only at some steps, and whether this is one; the others always are."""
        return {}

    def adjust_over_log(self, state: State, features: Array, documents: Array) -> State:
        """What has to be recomputed over all lists of the log, between runs of steps."""
        return state

    def base_vector(self, state: State) -> Array | None:
        """Where a document's score is a product of two vectors: the one that is the same for all documents."""
        return None

    def init(self, key: Key, n_features: int, positions: int) -> State:
        """The state before the first step."""
        first, key = jax.random.split(key)
        params = self.init_parameters(first, n_features, positions)
        rule = self.optimiser.transformation()
        groups = {name: rule.init(group) for name, group in params.items()}
        return State(params, groups, self.init_memory(n_features, positions), key, jnp.int32(0))

    def step(self, state: State, features: Array, batch: Batch) -> tuple[State, Array]:
        """One step on one batch, and its loss. Pure: jit it, or scan over it."""
        seen = look_up(features, batch)
        key = step_key(state, 1)
        value_and_gradient = jax.value_and_grad(self.loss, has_aux=True)
        (loss, memory), gradients = value_and_gradient(state.params, state.memory, seen, key, state.step)
        rule, active = self.optimiser.transformation(), self.active_groups(state.step)
        params, rules = dict(state.params), dict(state.optimiser)
        for name, group in state.params.items():
            updates, after = rule.update(gradients[name], state.optimiser[name], group)
            moved = (optax.apply_updates(group, updates), after)
            if name in active:
                moved = _select(active[name], moved, (group, state.optimiser[name]))
            params[name], rules[name] = moved
        return State(params, rules, memory, state.key, state.step + 1), loss

    def scores(self, state: State, features: Array) -> Array:
        """By document row; a higher score ranks higher."""
        layers = state.params["ranker"]
        scores: Array = jax.lax.map(lambda row: self.network.scores(layers, row), features, batch_size=ROWS)
        return scores

    def propensities(self, state: State, against: int = 1) -> Array:
        """By position, with that of position `against` set to 1 (the UPE paper plots against position 10)."""
        logs = self.log_propensities(state)
        if not 1 <= against <= len(logs):
            raise EluteError(f"there is no position {against} to set to 1; positions go from 1 to {len(logs)}")
        return jnp.exp(logs - logs[against - 1])


ROWS = 16_384
"""Documents scored at a time, so that hidden layers of a large set need not fit in memory together."""


@partial(jax.jit, static_argnames="learner")
def score_documents(learner: Learner, state: State, features: Array) -> Array:
    """The learner's scores, compiled once."""
    return learner.scores(state, features)


def step_key(state: State, purpose: int) -> Key:
    """The key of this step for one purpose: 0 draws the batch, 1 goes to the loss."""
    return jax.random.fold_in(jax.random.fold_in(state.key, state.step), purpose)


def _select(condition: Array, one: Any, other: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)
