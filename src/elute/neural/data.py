"""What a learner is shown: lists of document rows with clicks on them, and a table of features by row.

Lists are (lists, positions) rows of the table, in the order shown, with -1 after the last document. A log on the
device and a batch brought from the host look the same to a learner: only the table differs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from elute.errors import EluteError


class Batch(NamedTuple):
    """Some lists as shown."""

    documents: Array
    """(lists, positions) rows of the feature table; -1: no document."""
    clicks: Array
    """(lists, positions), 0 or 1."""
    logging: Array | None = None
    """(lists, positions): the scores the logging policy ranked by, where they are known."""


class View(NamedTuple):
    """A batch with its features looked up, and nothing where there is no document."""

    x: Array
    """(lists, positions, features)."""
    mask: Array
    clicks: Array
    logging: Array | None


def look_up(features: Array, batch: Batch) -> View:
    """Look the features of a batch up."""
    mask = batch.documents >= 0
    x = features[jnp.where(mask, batch.documents, 0)]
    logging = None if batch.logging is None else jnp.where(mask, batch.logging, 0.0)
    return View(x, mask, jnp.where(mask, batch.clicks, 0.0).astype(features.dtype), logging)


def check_features(features: ArrayLike) -> NDArray[np.float32]:
    """A finite (documents, features) table, or an error."""
    table = np.asarray(features, np.float32)
    if table.ndim != 2 or 0 in table.shape:
        raise EluteError(f"features must be a table of documents × features; their shape is {table.shape}")
    if not np.isfinite(table).all():
        bad = int((~np.isfinite(table)).any(axis=1).sum())
        raise EluteError(f"{bad:,} documents have features that are not finite; fill them in or leave them out")
    return table


def check_lists(documents: ArrayLike, n_documents: int) -> NDArray[np.int32]:
    """Lists of rows of a table of `n_documents`, or an error."""
    rows = np.asarray(documents)
    if rows.ndim != 2 or 0 in rows.shape or not np.issubdtype(rows.dtype, np.integer):
        raise EluteError(f"lists must be whole numbers, lists × positions; they are {rows.dtype} of shape {rows.shape}")
    if rows.max() >= n_documents or rows.min() < -1:
        raise EluteError(
            f"lists name documents from {rows.min():,} to {rows.max():,}, but there are {n_documents:,}, counted from 0"
        )
    gap = (rows[:, :-1] < 0) & (rows[:, 1:] >= 0)
    if gap.any() or (rows[:, 0] < 0).any():
        raise EluteError(
            f"list {int((gap.any(axis=1) | (rows[:, 0] < 0)).argmax())} has a gap; use -1 only after its last document"
        )
    return rows.astype(np.int32)


def check_numbers(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Finite numbers of a given shape, or an error."""
    numbers = np.asarray(values, np.float32)
    if numbers.shape != shape:
        raise EluteError(f"{name} must have the shape {shape}; theirs is {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise EluteError(f"{int((~np.isfinite(numbers)).sum()):,} values of {name} are not finite")
    return numbers


def check_propensities(values: ArrayLike, positions: int | None = None) -> NDArray[np.float32]:
    """Propensities by position: finite and above 0, or an error."""
    numbers = np.asarray(values, np.float32)
    if numbers.ndim != 1 or len(numbers) == 0 or not (np.isfinite(numbers) & (numbers > 0)).all():
        raise EluteError("propensities must be numbers above 0, one for each position; a position never seen has none")
    if positions is not None and len(numbers) != positions:
        raise EluteError(f"there are {len(numbers)} propensities for lists of {positions} positions; give one for each")
    return numbers


def to_device(tree: Any) -> Any:
    """The same tree on the device."""
    return jax.tree.map(jnp.asarray, tree)
