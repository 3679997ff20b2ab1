"""The CMIP paper's variant of the context-aware click model: a network predicts examination, not clicks."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

from elute.clicks.base.model import Floats
from elute.clicks.base.recurrent_model import RecurrentModel
from elute.clicks.logspace import log_sigmoid
from elute.clicks.page import DevicePages
from elute.clicks.structure.base import State
from elute.clicks.structure.recurrent import CLICK_SIZE, STATE_SIZE, RecurrentStructure, gru_inputs, gru_step, init_gru
from elute.clicks.structure.scores import score_documents
from elute.clicks.structure.towers import Embedding, Params, Tower, apply_layer, init_layer
from elute.errors import EluteError

_RANK_SIZE = 4


@dataclass(frozen=True)
class Examiner(RecurrentStructure):
    """P(click | clicks above) = relevance(document)·examination (Section 5.2.2; Eq. 14 of Deffayet et al. 2023).

    The network takes in the rank and the click above it: none yet, no click or a click. It never sees documents.
    """

    documents: int
    ranks: int
    tower: Tower
    samples: int

    def init(self, key: jax.Array, width: int) -> Params:
        keys = jax.random.split(key, 5)
        return {
            "relevance": self.tower.init(keys[0], self.documents, width, 1),
            "rank": jax.random.normal(keys[1], (self.ranks, _RANK_SIZE)),
            "click": jax.random.normal(keys[2], (3, CLICK_SIZE)),
            "network": init_gru(keys[3], _RANK_SIZE + CLICK_SIZE, STATE_SIZE),
            "output": init_layer(keys[4], STATE_SIZE, 1),
        }

    def prepare_places(self, params: Params, features: jax.Array, pages: DevicePages) -> jax.Array:
        return log_sigmoid(self.tower.logits(params["relevance"], features, pages.doc))

    def start(self, params: Params, sessions: int) -> State:
        return jnp.zeros((sessions, STATE_SIZE)), jnp.zeros(sessions, jnp.int32)

    def see(self, params: Params, state: State, place: jax.Array, rank: jax.Array) -> tuple[jax.Array, State]:
        memory, above = state
        at = jnp.broadcast_to(params["rank"][rank], (len(above), _RANK_SIZE))
        inputs = jnp.concatenate((at, params["click"][above]), axis=-1)
        memory = gru_step(params["network"], memory, gru_inputs(params["network"], inputs))
        return place + log_sigmoid(apply_layer(params["output"], memory)[:, 0]), memory

    def remember(self, params: Params, seen: State, clicked: jax.Array) -> State:
        return seen, jnp.where(clicked, 2, 1)


class CACM(RecurrentModel[Examiner]):
    """Trained by gradients. `samples`: patterns a marginal probability is made of (see `RecurrentStructure`)."""

    def __init__(
        self,
        documents: int,
        ranks: int,
        *,
        tower: Tower | None = None,
        features: ArrayLike | None = None,
        samples: int = 128,
    ) -> None:
        if samples < 1:
            raise EluteError(f"CACM needs at least one sample, not {samples}")
        self.tower, self.samples = tower or Embedding(), samples
        super().__init__(Examiner(documents, ranks, self.tower, samples), documents, ranks, features=features)

    @property
    def relevance_values_(self) -> Floats:
        """Relevance × the examination of the first rank: P(click) on top of the page.

        Relevance and examination share a free scale; their product at the first rank, where no history differs,
        does not.
        """
        params = self.params_
        first, _ = self.structure.see(params, self.structure.start(params, 1), jnp.zeros(1), jnp.asarray(0))
        return float(jnp.exp(first[0])) * score_documents(self.structure.tower, params["relevance"], self._features)
