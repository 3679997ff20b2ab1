"""What a click model is, mathematically: P(click at a rank | the clicks above it), rank after rank.

A structure holds sizes and kinds only; parameters, features and pages are arguments. It is hashable, so that models
alike in structure share what is compiled. The likelihood of a page is the product of these conditional
probabilities whatever the model is; a model says how it sees a rank and what it remembers of a click.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from elute.clicks.backend import compile_first_static, jnp, map_tree, scan
from elute.clicks.logspace import log_outcome
from elute.clicks.page import DevicePages
from elute.clicks.structure.towers import Params

if TYPE_CHECKING:
    import jax

State = Any
"""What the model remembers of the ranks above, by session; any tree of arrays."""


class ClickStructure(ABC):
    """Subclasses are frozen dataclasses."""

    @abstractmethod
    def init(self, key: jax.Array, width: int) -> Params:
        """First parameters; `width` is the number of features."""

    @abstractmethod
    def prepare_places(self, params: Params, features: jax.Array, pages: DevicePages) -> Any:
        """What is known of every place before any click: a tree of arrays by (session, place, …)."""

    @abstractmethod
    def start(self, params: Params, sessions: int) -> State:
        """The memory before the first rank."""

    @abstractmethod
    def see(self, params: Params, state: State, place: Any, rank: jax.Array) -> tuple[jax.Array, State]:
        """log P(click) at a rank (from 0), and the memory with that rank taken in."""

    @abstractmethod
    def remember(self, params: Params, seen: State, clicked: jax.Array) -> State:
        """The memory after a click, or none, at the rank just seen."""

    @abstractmethod
    def log_marginals(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        """log P(click) by (session, place), whatever else is clicked."""

    def log_conditionals(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        """log P(click | the page's clicks above) by (session, place)."""

        def step(state: State, inputs: tuple[Any, jax.Array, jax.Array]) -> tuple[State, jax.Array]:
            place, rank, clicked = inputs
            log_p, seen = self.see(params, state, place, rank)
            return self.remember(params, seen, clicked), log_p

        ranks = jnp.arange(pages.doc.shape[1])
        inputs = (to_rank_major(self.prepare_places(params, features, pages)), ranks, pages.clicked.T)
        log_p: jax.Array = scan(step, self.start(params, pages.doc.shape[0]), inputs)[1]
        return log_p.T


def to_rank_major(places: Any) -> Any:
    """Places with ranks on the first axis, as a scan wants them."""
    return map_tree(lambda values: jnp.swapaxes(values, 0, 1), places)


def log_pages(structure: ClickStructure, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
    """log P(exactly these clicks) by session."""
    log_p = structure.log_conditionals(params, features, pages)
    return jnp.where(pages.mask, log_outcome(log_p, pages.clicked), 0.0).sum(axis=1)


def draw_uniforms(pages: DevicePages, key: jax.Array) -> jax.Array:
    """By (session, place); those of a session depend on the key and its row alone."""
    import jax

    width = pages.doc.shape[1]
    return jax.vmap(lambda row: jax.random.uniform(jax.random.fold_in(key, row), (width,)))(pages.row)


def draw(
    structure: ClickStructure, params: Params, features: jax.Array, pages: DevicePages, uniforms: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Clicks drawn from the model, and the log P(click | clicks drawn above) they were drawn with. A place is clicked
    where its uniform number is below that probability."""

    def step(state: State, inputs: tuple[Any, jax.Array, jax.Array]) -> tuple[State, tuple[jax.Array, jax.Array]]:
        place, rank, uniform = inputs
        log_p, seen = structure.see(params, state, place, rank)
        clicked = uniform < jnp.exp(log_p)
        return structure.remember(params, seen, clicked), (clicked, log_p)

    ranks = jnp.arange(pages.doc.shape[1])
    inputs = (to_rank_major(structure.prepare_places(params, features, pages)), ranks, uniforms.T)
    _, (clicked, log_p) = scan(step, structure.start(params, pages.doc.shape[0]), inputs)
    return clicked.T & pages.mask, log_p.T


@compile_first_static
def likelihoods(structure: ClickStructure, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
    """`log_pages`, compiled."""
    return log_pages(structure, params, features, pages)


@compile_first_static
def conditionals(structure: ClickStructure, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
    """P(click | clicks above), 0 on the padding."""
    return jnp.where(pages.mask, jnp.exp(structure.log_conditionals(params, features, pages)), 0.0)


@compile_first_static
def marginals(structure: ClickStructure, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
    """P(click), 0 on the padding."""
    return jnp.where(pages.mask, jnp.exp(structure.log_marginals(params, features, pages)), 0.0)


@compile_first_static
def sample_clicks(
    structure: ClickStructure, params: Params, features: jax.Array, pages: DevicePages, uniforms: jax.Array
) -> jax.Array:
    """Clicks from the model, 0 on the padding."""
    return draw(structure, params, features, pages, uniforms)[0].astype(jnp.uint8)
