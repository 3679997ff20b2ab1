"""Models of a user who reads from the top and, after each document, goes on or stops: cascade, DCM, CCM, SDBN, DBN.

A chain is attraction by place, and the probability of going on after a click and after none. P(click | clicks above)
follows from filtering: e is the probability that this rank is read, given the clicks above. A click proves that it
was read, so that e = on_click next; after no click, e becomes on_skip·e(1 - a)/(1 - ea). Of e and 1 - e both
logarithms are kept: where one is as good as 1, the other still says how far from it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from elute.clicks.backend import jnp, scan
from elute.clicks.logspace import LOG_NEVER, log1mexp
from elute.clicks.page import DevicePages
from elute.clicks.structure.base import ClickStructure, State, to_rank_major
from elute.clicks.structure.towers import Params

if TYPE_CHECKING:
    import jax


class LogChances(NamedTuple):
    """Logarithms, by (session, place): attraction and its complement, going on after a click, and going on and leaving
    after none."""

    click: jax.Array
    skip: jax.Array
    on_click: jax.Array
    on_skip: jax.Array
    off_skip: jax.Array


class Chances(NamedTuple):
    """Probabilities: attraction and going on after a click by (session, place), going on after none for all."""

    click: jax.Array
    on_click: jax.Array
    on_skip: jax.Array


class Readings(NamedTuple):
    """What happened, as far as it is known, by (session, place): probabilities given all clicks of the page.

    `turn`: a click with a place below to go on to; `on`: going on from there. `skip`: read, not clicked, with a place
    below; `on_skip`: going on from there.
    """

    read: jax.Array
    clicked: jax.Array
    turn: jax.Array
    on: jax.Array
    skip: jax.Array
    on_skip: jax.Array


Counted = dict[str, tuple["jax.Array", "jax.Array"]]
"""By rate: how often what it stands for happened, of how many times it could have."""


class ChainStructure(ClickStructure):
    """Subclasses say what the links are."""

    @abstractmethod
    def log_chances(self, params: Params, features: jax.Array, pages: DevicePages) -> LogChances:
        """The chain of every page, in logarithms."""

    @abstractmethod
    def chances(self, rates: dict[str, jax.Array]) -> Chances:
        """From probabilities, those of documents by (session, place): for EM."""

    @abstractmethod
    def count(self, rates: dict[str, jax.Array], found: Readings) -> Counted:
        """What EM adds up: rates of documents by (session, place), the others in the shape of the rate."""

    def prepare_places(self, params: Params, features: jax.Array, pages: DevicePages) -> LogChances:
        return self.log_chances(params, features, pages)

    def start(self, params: Params, sessions: int) -> State:
        """log e and log(1 - e): the first rank is always read."""
        return jnp.zeros(sessions), jnp.full(sessions, LOG_NEVER)

    def see(self, params: Params, state: State, place: LogChances, rank: jax.Array) -> tuple[jax.Array, State]:
        return state[0] + place.click, (*state, place)

    def remember(self, params: Params, seen: State, clicked: jax.Array) -> State:
        log_e, log_not_e, place = seen
        passed = log_e + place.skip
        no_click = jnp.logaddexp(passed, log_not_e)
        reads = passed + place.on_skip - no_click
        stopped = jnp.logaddexp(passed + place.off_skip, log_not_e) - no_click
        return jnp.where(clicked, place.on_click, reads), jnp.where(clicked, log1mexp(place.on_click), stopped)

    def log_marginals(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        """Attraction times the probability of having read that far."""

        def step(log_e: jax.Array, place: LogChances) -> tuple[jax.Array, jax.Array]:
            on = jnp.logaddexp(place.click + place.on_click, place.skip + place.on_skip)
            return log_e + on, log_e + place.click

        links = self.log_chances(params, features, pages)
        log_p: jax.Array = scan(step, jnp.zeros(pages.doc.shape[0]), to_rank_major(links))[1]
        return log_p.T


def proportion(one: jax.Array, other: jax.Array) -> jax.Array:
    """one/(one + other), and 0 where both are 0."""
    both = one + other
    return jnp.where(both > 0, one / jnp.where(both > 0, both, 1.0), 0.0)
