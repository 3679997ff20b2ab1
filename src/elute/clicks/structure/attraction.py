"""What documents that attract clicks have in common: a tower, and what is known of those never seen in training.

A ranker puts good documents on top, so a document nothing is known of is likelier to be good where it stands high. Fits
by marginal likelihood learn how much (`elute.clicks.base.ranked_prior`): `offset`, by rank, is added to the log odds of
documents marked in `unseen`. A fit by gradients has no such marks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elute.clicks.backend import jnp
from elute.clicks.page import DevicePages
from elute.clicks.structure.towers import Params, Tower

if TYPE_CHECKING:
    import jax


def init_unseen(documents: int, ranks: int) -> Params:
    """No marks and no offsets. Their product is 0, and so is its slope: training leaves them as they are."""
    return {"unseen": jnp.zeros(documents), "offset": jnp.zeros(ranks)}


def mark_unseen(unseen: NDArray[np.bool_], offset: NDArray[np.float64]) -> Params:
    """The marks of documents, and the offsets of ranks."""
    return {"unseen": jnp.asarray(unseen.astype(np.float32)), "offset": jnp.asarray(offset.astype(np.float32))}


def attraction_logits(tower: Tower, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
    """By (session, place)."""
    unseen = jnp.take(params["ranked"]["unseen"], pages.doc, mode="clip")
    offset = params["ranked"]["offset"][: pages.doc.shape[1]]
    found: jax.Array = tower.logits(params["attraction"], features, pages.doc) + unseen * offset
    return found
