"""Trees of arrays in npz files: by name, without pickle, written completely or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from elute._util.npz import write_npz
from elute.clicks.backend import HAS_JAX, flatten, jnp, map_tree
from elute.door.arrays import read_arrays
from elute.door.fields import Damaged
from elute.errors import EluteError

T = TypeVar("T")

_IDENTITY = "identity"


def write(path: Path, tree: object, identity: str) -> None:
    """Keep a tree; `identity` says in words what it belongs to."""
    named: dict[str, Any] = {name: np.asarray(leaf) for name, leaf in flatten(tree)}
    named[_IDENTITY] = np.array(identity)
    write_npz(path, named)


def read(path: Path, make: Callable[[], T], identity: str, growing: str = "") -> T:
    """The tree kept at `path`, in the shape of what `make` gives; refused where it belongs to something else, before
    anything is made.

    `growing`: the leaf that may be longer than that of the shape. Leaves that are not jax arrays come back as numpy's.
    """
    try:
        arrays = read_arrays(path)
    except Damaged as problem:
        raise EluteError(
            f"{path} cannot be read as a checkpoint ({problem}); delete it or give another path"
        ) from problem
    found = str(arrays.pop(_IDENTITY, ""))
    if found != identity:
        raise EluteError(f"{path} belongs to '{found}', not to '{identity}'; delete it or give another path")
    leaves, like = [], make()
    for name, leaf in flatten(like):
        value = arrays.get(name)
        wanted = np.asarray(leaf)
        if value is None or value.dtype.kind != wanted.dtype.kind or (value.shape != wanted.shape and name != growing):
            raise EluteError(f"{path} has no {name} that fits this model; delete it or give another path")
        leaves.append(jnp.asarray(value) if isinstance(leaf, jnp.ndarray) and HAS_JAX else value)
    rest = iter(leaves)
    restored: T = map_tree(lambda _: next(rest), like)
    return restored
