"""Models in which a click at one rank says nothing about another: DCTR, RDCTR, PBM."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from elute.clicks.backend import jnp
from elute.clicks.page import DevicePages
from elute.clicks.structure.base import ClickStructure, State
from elute.clicks.structure.towers import Params

if TYPE_CHECKING:
    import jax


class IndependentStructure(ClickStructure):
    """Subclasses give log P(click) by place; conditional and marginal probabilities are that."""

    @abstractmethod
    def log_clicks(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        """log P(click) by (session, place)."""

    def prepare_places(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        return self.log_clicks(params, features, pages)

    def start(self, params: Params, sessions: int) -> State:
        return jnp.zeros(0)

    def see(self, params: Params, state: State, place: jax.Array, rank: jax.Array) -> tuple[jax.Array, State]:
        return place, state

    def remember(self, params: Params, seen: State, clicked: jax.Array) -> State:
        return seen

    def log_marginals(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        return self.log_clicks(params, features, pages)

    def log_conditionals(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        """Without going rank by rank."""
        return self.log_clicks(params, features, pages)
