"""The user browsing model: examination depends on the rank and on how far up the last click lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elute.clicks.backend import jnp, logsumexp, running_maximum, scan
from elute.clicks.base.model import Floats
from elute.clicks.exact.product_model import ProductModel
from elute.clicks.exact.tally import Keys, PairCounts, browsing_cells, tally
from elute.clicks.logspace import log1mexp, log_sigmoid
from elute.clicks.page import DevicePages
from elute.clicks.sessions import SessionSource
from elute.clicks.structure.attraction import attraction_logits, init_unseen
from elute.clicks.structure.base import ClickStructure, State, to_rank_major
from elute.clicks.structure.towers import Params, Tower

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class Browsing(ClickStructure):
    """P(click | clicks above) = attraction(document)·examination(rank, distance) (Dupret and Piwowarski 2008).

    The distance to the last click counts from 1; where nothing was clicked it is the rank, as from a click above the
    page. Examinations are the lower triangle of a table by (rank, distance), row after row.
    """

    documents: int
    ranks: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        return {
            "attraction": self.tower.init(key, self.documents, width, 1),
            "ranked": init_unseen(self.documents, self.ranks),
            "examination": jnp.zeros(self.ranks * (self.ranks + 1) // 2),
        }

    def prepare_places(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        return log_sigmoid(attraction_logits(self.tower, params, features, pages))

    def start(self, params: Params, sessions: int) -> State:
        """The rank of the last click, from 1; 0 for none."""
        return jnp.zeros(sessions, jnp.int32)

    def see(self, params: Params, state: State, place: jax.Array, rank: jax.Array) -> tuple[jax.Array, State]:
        return place + log_sigmoid(params["examination"])[_triangle_index(rank, state)], (state, rank)

    def remember(self, params: Params, seen: State, clicked: jax.Array) -> State:
        last, rank = seen
        return jnp.where(clicked, rank + 1, last)

    def log_conditionals(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        """All ranks at once: the clicks are known."""
        rank = jnp.arange(pages.doc.shape[1])
        last = running_maximum(jnp.where(pages.clicked, rank + 1, 0))
        last = jnp.pad(last, ((0, 0), (1, 0)))[:, :-1]
        return (
            self.prepare_places(params, features, pages)
            + log_sigmoid(params["examination"])[_triangle_index(rank, last)]
        )

    def log_marginals(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        """By a recursion over the distribution of the last click's rank (0 for none)."""
        width = pages.doc.shape[1]
        log_o, candidate = log_sigmoid(params["examination"]), jnp.arange(width + 1)

        def step(log_last: jax.Array, inputs: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            log_a, rank = inputs
            given = log_a[:, None] + log_o[_triangle_index(rank, jnp.minimum(candidate, rank))]
            log_p = logsumexp(log_last + given)
            stayed = log_last + log1mexp(given)
            return jnp.where(candidate == rank + 1, log_p[:, None], stayed), log_p

        first = jnp.broadcast_to(jnp.where(candidate == 0, 0.0, -jnp.inf), (pages.doc.shape[0], width + 1))
        inputs = (to_rank_major(self.prepare_places(params, features, pages)), jnp.arange(width))
        log_p: jax.Array = scan(step, first, inputs)[1]
        return log_p.T


def _triangle_index(rank: jax.Array, last: jax.Array) -> jax.Array:
    """The place in the triangle of a rank (from 0) and the last click's rank (from 1, 0 for none)."""
    return rank * (rank + 1) // 2 + rank - last


class UBM(ProductModel[Browsing]):
    """Fitted on counts of (document, rank, distance)."""

    def _build_structure(self, documents: int, ranks: int, tower: Tower) -> Browsing:
        return Browsing(documents, ranks, tower)

    def _count_cells(self, source: SessionSource) -> tuple[PairCounts, Keys]:
        rank_of = np.repeat(np.arange(self.ranks), np.arange(1, self.ranks + 1))
        return tally(source, self.documents, len(rank_of), browsing_cells), rank_of

    def _name_cell(self, cell: int) -> str:
        rank, distance = (int(index[cell]) + 1 for index in np.tril_indices(self.ranks))
        return f"at rank {rank}, " + (
            "nothing clicked above" if distance == rank else f"{distance} below the last click"
        )

    @property
    def examination_(self) -> Floats:
        """By (rank, distance), both from 1, the largest 1; NaN where the distance exceeds the rank."""
        table = np.full((self.ranks, self.ranks), np.nan)
        table[np.tril_indices(self.ranks)] = self._examination
        return table
