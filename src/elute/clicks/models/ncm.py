"""The neural click model: a recurrent network reads the page and predicts each click from what came before."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.clicks.base.model import Floats
from elute.clicks.base.recurrent_model import RecurrentModel
from elute.clicks.logspace import log_sigmoid
from elute.clicks.page import DevicePages
from elute.clicks.sessions import Sessions
from elute.clicks.structure.base import State
from elute.clicks.structure.recurrent import CLICK_SIZE, STATE_SIZE, RecurrentStructure, gru_inputs, gru_step, init_gru
from elute.clicks.structure.towers import Embedding, Params, Tower, apply_layer, init_layer
from elute.errors import EluteError

_VECTOR = 64
"""Size of query and document vectors in the CMIP paper's experiment."""


@dataclass(frozen=True)
class Reader(RecurrentStructure):
    """At every rank the network takes in query, document and the click above it (Borisov et al. 2016).

    The click above is none yet, no click or a click.
    """

    documents: int
    queries: int
    tower: Tower
    samples: int

    def init(self, key: jax.Array, width: int) -> Params:
        keys = jax.random.split(key, 5)
        return {
            "document": self.tower.init(keys[0], self.documents, width, _VECTOR),
            "query": jax.random.normal(keys[1], (self.queries, _VECTOR)) / _VECTOR**0.5,
            "click": jax.random.normal(keys[2], (3, CLICK_SIZE)),
            "network": init_gru(keys[3], 2 * _VECTOR + CLICK_SIZE, STATE_SIZE),
            "output": init_layer(keys[4], STATE_SIZE, 1),
        }

    def prepare_places(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        """What query and document add to the gates; the click is added when it is known."""
        document = self.tower.vectors(params["document"], features, pages.doc)
        query = jnp.take(params["query"], pages.query, axis=0, mode="clip")
        query = jnp.broadcast_to(query[:, None], document.shape)
        nothing = jnp.zeros((*pages.doc.shape, CLICK_SIZE))
        return gru_inputs(params["network"], jnp.concatenate((query, document, nothing), axis=-1))

    def start(self, params: Params, sessions: int) -> State:
        return jnp.zeros((sessions, STATE_SIZE)), jnp.zeros(sessions, jnp.int32)

    def see(self, params: Params, state: State, place: jax.Array, rank: jax.Array) -> tuple[jax.Array, State]:
        memory, above = state
        click = params["click"][above] @ params["network"]["input"][-CLICK_SIZE:]
        memory = gru_step(params["network"], memory, place + click)
        return log_sigmoid(apply_layer(params["output"], memory)[:, 0]), memory

    def remember(self, params: Params, seen: State, clicked: jax.Array) -> State:
        return seen, jnp.where(clicked, 2, 1)


class NCM(RecurrentModel[Reader]):
    """Trained by gradients. `samples`: patterns a marginal probability is made of (see `RecurrentStructure`)."""

    def __init__(
        self,
        documents: int,
        ranks: int,
        *,
        queries: int = 1,
        tower: Tower | None = None,
        features: ArrayLike | None = None,
        samples: int = 128,
    ) -> None:
        if queries < 1 or samples < 1:
            raise EluteError(f"NCM needs at least one query and one sample, not {queries} and {samples}")
        self.tower, self.samples = tower or Embedding(), samples
        shape = Reader(documents, queries, self.tower, samples)
        super().__init__(shape, documents, ranks, features=features, queries=queries)
        self._query_of: NDArray[np.int32] = np.zeros(documents, np.int32)

    def _prepare(self, sessions: Sessions) -> Sessions:
        """Remember each document's query, for `relevance_values_`."""
        mask = sessions.mask
        self._query_of[sessions.doc[mask]] = np.repeat(sessions.query, sessions.length)
        return sessions

    @property
    def relevance_values_(self) -> Floats:
        """P(click) of a document on top of the page (Section 5.2.2 of the CMIP paper), under the query of the sessions
        that the model was fitted to."""
        return self.estimate_relevance(self._query_of)

    def estimate_relevance(self, query: ArrayLike) -> Floats:
        """P(click) of a document on top of the page, under a query of its own; `query`: ids by document."""
        asked = jnp.asarray(np.asarray(query, np.int32))
        return np.asarray(_score_on_top(self.structure, self.params_, self._features, asked), np.float64)


@partial(jax.jit, static_argnums=0)
def _score_on_top(structure: Reader, params: Params, features: jax.Array, query: jax.Array) -> jax.Array:
    doc = jnp.arange(structure.documents)
    ones = jnp.ones_like(doc)
    pages = DevicePages(doc, query, doc[:, None], jnp.zeros_like(doc)[:, None], ones)
    return jnp.exp(structure.log_conditionals(params, features, pages)[:, 0])
