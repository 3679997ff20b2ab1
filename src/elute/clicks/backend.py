"""What the structures of click models are computed with: jax where it is installed, numpy where it is not.

Models that are fitted on counts or by EM, and what they predict, need no gradients; so they need no jax either. The
names here are those of jax that the structures use, and without it numpy does the same, one rank after the other and in
double precision. What is trained by gradients asks for jax by `require_jax`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from elute.errors import MissingExtra

__all__ = [
    "HAS_JAX",
    "compile_first_static",
    "first_key",
    "flatten",
    "jnp",
    "log_sigmoid",
    "logsumexp",
    "map_tree",
    "require_jax",
    "running_maximum",
    "scan",
    "sigmoid",
    "split_key",
    "sum_at",
]

F = TypeVar("F", bound=Callable[..., Any])

try:
    import jax

    HAS_JAX = True
except ModuleNotFoundError:
    HAS_JAX = False

if TYPE_CHECKING:
    from jax import numpy as jnp
else:
    jnp = jax.numpy if HAS_JAX else np


def require_jax(what: str = "a session click model that is trained by gradients") -> None:
    """Refuse to go on without jax and optax."""
    try:
        import jax  # noqa: F401
        import optax  # noqa: F401
    except ModuleNotFoundError as missing:
        raise MissingExtra(what, "jax and optax", "neural") from missing


def first_key(seed: int) -> Any:
    """A random key; without jax there is nothing to draw, and any will do."""
    return jax.random.key(seed) if HAS_JAX else None


def split_key(key: Any) -> Any:
    """Two of one."""
    return jax.random.split(key) if HAS_JAX else (None, None)


def compile_first_static(function: F) -> F:
    """Compiled for each value of the first argument, a structure."""
    if HAS_JAX:
        return cast(F, jax.jit(function, static_argnums=0))

    @wraps(function)
    def quiet(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return cast(F, quiet)


def scan(step: Callable[[Any, Any], tuple[Any, Any]], state: Any, inputs: Any, reverse: bool = False) -> Any:
    """`jax.lax.scan`: the last state, and what each step gives, along the first axis."""
    if HAS_JAX:
        return jax.lax.scan(step, state, inputs, reverse=reverse)
    amount = len(flatten(inputs)[0][1])
    given: list[Any] = [None] * amount
    for at in reversed(range(amount)) if reverse else range(amount):
        state, given[at] = step(state, map_tree(itemgetter(at), inputs))
    if isinstance(given[0], tuple):
        return state, tuple(np.stack(values) for values in zip(*given, strict=True))
    return state, np.stack(given)


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    """The function of every array of a tree of dicts and tuples, in the order of `flatten`."""
    if HAS_JAX:
        return jax.tree.map(function, tree)
    if isinstance(tree, dict):
        return {name: map_tree(function, tree[name]) for name in sorted(tree)}
    if isinstance(tree, tuple):
        parts = [map_tree(function, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return function(tree)


def flatten(tree: Any) -> list[tuple[str, Any]]:
    """The arrays of a tree with their names, as jax writes and orders them."""
    if HAS_JAX:
        return [(jax.tree_util.keystr(at), leaf) for at, leaf in jax.tree_util.tree_leaves_with_path(tree)]
    if isinstance(tree, dict):
        return [(f"[{key!r}]{name}", leaf) for key in sorted(tree) for name, leaf in flatten(tree[key])]
    if isinstance(tree, tuple):
        return [(f"[{place}]{name}", leaf) for place, part in enumerate(tree) for name, leaf in flatten(part)]
    return [("", tree)]


def sigmoid(logit: jax.Array) -> jax.Array:
    """Of log odds, the probability."""
    return jax.nn.sigmoid(logit) if HAS_JAX else jnp.exp(log_sigmoid(logit))


def log_sigmoid(logit: jax.Array) -> jax.Array:
    """Its logarithm."""
    return jax.nn.log_sigmoid(logit) if HAS_JAX else -jnp.logaddexp(0.0, -jnp.asarray(logit))


def logsumexp(values: jax.Array) -> jax.Array:
    """Along the last axis."""
    if HAS_JAX:
        return jax.nn.logsumexp(values, axis=-1)
    return cast("jax.Array", np.logaddexp.reduce(values, axis=-1))


def running_maximum(values: jax.Array) -> jax.Array:
    """Along the last axis."""
    if HAS_JAX:
        return jax.lax.cummax(values, axis=1)
    return cast("jax.Array", np.maximum.accumulate(values, axis=1))


def sum_at(places: jax.Array, values: jax.Array, amount: int) -> jax.Array:
    """Sums of values by place; those at `amount` are dropped."""
    if HAS_JAX:
        return jnp.zeros(amount).at[places.ravel()].add(values.ravel(), mode="drop")
    return cast("jax.Array", np.bincount(places.ravel(), values.ravel(), amount + 1)[:amount])
