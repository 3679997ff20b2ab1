"""Checkpoints: any tree of arrays as one npz file, an array a leaf, named by its path. No pickle, read or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from elute._util.npz import write_npz
from elute.door.arrays import read_arrays
from elute.door.fields import Damaged
from elute.errors import EluteError


def save(path: str | Path, tree: Any) -> None:
    """Write the leaves of `tree`; a file already there is replaced whole or not at all."""
    leaves = {
        jax.tree_util.keystr(where): np.asarray(leaf) for where, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }
    write_npz(path, leaves)


def load(path: str | Path, like: Any) -> Any:
    """The tree that was saved, in the shape of `like`; lengths may differ only where `like` is empty."""
    try:
        leaves = read_arrays(path)
    except Damaged as reason:
        raise EluteError(f"{path} is not a readable checkpoint ({reason}); delete it to start over") from reason
    wanted, structure = jax.tree_util.tree_flatten_with_path(like)
    named = [(jax.tree_util.keystr(where), leaf) for where, leaf in wanted]
    if {name for name, _ in named} != leaves.keys():
        raise EluteError(f"{path} is a checkpoint of another learner; use the settings it was made with, or delete it")
    for name, leaf in named:
        found, own = leaves[name], np.asarray(leaf)
        fits = found.shape == own.shape or (not own.size and found.shape[1:] == own.shape[1:])
        if not fits or found.dtype != own.dtype:
            have, want = (found.dtype, own.dtype) if fits else (found.shape, own.shape)
            raise EluteError(
                f"{path} has {have} for {name}, where this learner has {want}; use its settings, or delete it"
            )
    return jax.tree_util.tree_unflatten(structure, [_place_like(leaf, leaves[name]) for name, leaf in named])


def _place_like(leaf: Any, saved: NDArray[Any]) -> Any:
    """On the device what was there."""
    return jnp.asarray(saved) if isinstance(leaf, jax.Array) else saved[()]
