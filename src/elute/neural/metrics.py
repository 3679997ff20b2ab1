"""nDCG on the device, for early stopping. Reports use the exact treatment of ties in `elute.auditing`."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.neural.data import check_features, to_device
from elute.ranking.data import RankingData


class GradedDocuments(NamedTuple):
    """Documents with grades, on the device."""

    features: Array
    rows: Array
    """(queries, documents) rows; -1 after a query's last."""
    grades: Array
    """(queries, documents)."""


def to_graded_documents(data: RankingData) -> GradedDocuments:
    """Ranking data on the device."""
    if data.n_queries == 0:
        raise EluteError("there is no query to validate on; give at least one with its documents")
    rows = list_candidates(data)
    grades = np.where(rows >= 0, data.grades[np.maximum(rows, 0)], 0).astype(np.float32)
    return GradedDocuments(*to_device((check_features(data.features), rows, grades)))


def list_candidates(data: RankingData) -> NDArray[np.int32]:
    """(queries, documents): the rows of each query, with -1 after the last."""
    sizes = np.diff(data.offsets)
    place = np.arange(sizes.max())
    return np.where(place < sizes[:, None], data.offsets[:-1, None] + place, -1).astype(np.int32)


@partial(jax.jit, static_argnames="k")
def ndcg(scores: Array, held: GradedDocuments, k: int = 10) -> Array:
    """Mean over queries of DCG@k over its ideal; gain 2^grade - 1; 0 for a query without a relevant document.

    `scores`: by document row. Tied documents stay in the order of their rows.
    """
    of_document = jnp.where(held.rows >= 0, scores[jnp.maximum(held.rows, 0)], -jnp.inf)
    gains = jnp.exp2(held.grades) - 1
    discount = 1 / jnp.log2(jnp.arange(gains.shape[1]) + 2.0)
    discount = jnp.where(jnp.arange(gains.shape[1]) < k, discount, 0.0)
    ranked = jnp.take_along_axis(gains, jnp.argsort(-of_document, axis=1, stable=True), axis=1)
    ideal = (-jnp.sort(-gains, axis=1) * discount).sum(axis=1)
    return jnp.where(ideal > 0, (ranked * discount).sum(axis=1) / jnp.where(ideal > 0, ideal, 1.0), 0.0).mean()
