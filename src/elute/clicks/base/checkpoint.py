"""Trees of arrays in npz files: by name, without pickle, written completely or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np

from elute._util.npz import write_npz
from elute.clicks.backend import HAS_JAX, flatten, jnp, map_tree
from elute.errors import EluteError

T = TypeVar("T")

_IDENTITY = "identity"


def write(path: Path, tree: object, identity: str) -> None:
    """Keep a tree; `identity` says in words what it belongs to."""
    named: dict[str, Any] = {name: np.asarray(leaf) for name, leaf in flatten(tree)}
    named[_IDENTITY] = np.array(identity)
    write_npz(path, named)


def read(path: Path, like: T, identity: str, growing: str = "") -> T:
    """The tree kept at `path`, in the shape of `like`; refused where it belongs to something else.

    `growing`: the leaf that may be longer than that of `like`. Leaves that are not jax arrays come back as numpy's.
    """
    try:
        with np.load(path, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in kept.files}
    except (OSError, ValueError, BadZipFile, EOFError) as problem:
        raise EluteError(
            f"{path} cannot be read as a checkpoint ({problem}); delete it or give another path"
        ) from problem
    found = str(arrays.pop(_IDENTITY, ""))
    if found != identity:
        raise EluteError(f"{path} belongs to '{found}', not to '{identity}'; delete it or give another path")
    leaves = []
    for name, leaf in flatten(like):
        value = arrays.get(name)
        if value is None or (value.shape != np.shape(leaf) and name != growing):
            raise EluteError(f"{path} has no {name} that fits this model; delete it or give another path")
        leaves.append(jnp.asarray(value) if isinstance(leaf, jnp.ndarray) and HAS_JAX else value)
    rest = iter(leaves)
    restored: T = map_tree(lambda _: next(rest), like)
    return restored
