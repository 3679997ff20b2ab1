"""The dynamic Bayesian network: attracted to click, then satisfied or not; goes on unless satisfied or tired."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from elute.clicks.chain import Chain, Chances, Links
from elute.clicks.chain_em import ChainModel, Rates, Seen, Tallies
from elute.clicks.expectation import Expected
from elute.clicks.logspace import log_not_sigmoid, log_sigmoid, logits_of
from elute.clicks.model import Floats
from elute.clicks.page import Pages
from elute.clicks.prior import Prior
from elute.clicks.scores import scores
from elute.clicks.towers import Embedding, Params, Tower

_FIRST_CONTINUATION = 0.9


@dataclass(frozen=True)
class SatisfiedOrTired(Chain):
    """Goes on with γ after no click, with γ(1 - S) after a click (Chapelle and Zhang 2009; CMIP paper, 5.1.4)."""

    documents: int
    tower: Tower

    def init(self, key: jax.Array, width: int) -> Params:
        attraction, satisfaction = jax.random.split(key)
        return {
            "attraction": self.tower.init(attraction, self.documents, width, 1),
            "satisfaction": self.tower.init(satisfaction, self.documents, width, 1),
            "continuation": jnp.asarray(logits_of(_FIRST_CONTINUATION)),
        }

    def links(self, params: Params, features: jax.Array, pages: Pages) -> Links:
        logit = self.tower.logits(params["attraction"], features, pages.doc)
        unsatisfied = log_not_sigmoid(self.tower.logits(params["satisfaction"], features, pages.doc))
        on, off = log_sigmoid(params["continuation"]), log_not_sigmoid(params["continuation"])
        after_none = (jnp.broadcast_to(x, logit.shape) for x in (on, off))
        return Links(log_sigmoid(logit), log_not_sigmoid(logit), on + unsatisfied, *after_none)

    def chances(self, params: Params, features: jax.Array, pages: Pages) -> Chances:
        click, satisfied = (
            jax.nn.sigmoid(self.tower.logits(params[name], features, pages.doc))
            for name in ("attraction", "satisfaction")
        )
        on = jax.nn.sigmoid(params["continuation"])
        return Chances(click, on * (1.0 - satisfied), on)


class DBN(ChainModel[SatisfiedOrTired]):
    """Fitted by EM. `prior`: of attraction and of satisfaction."""

    def __init__(
        self,
        documents: int,
        ranks: int,
        *,
        tower: Tower | None = None,
        features: ArrayLike | None = None,
        prior: Prior = "fitted",
    ) -> None:
        tower = tower or Embedding()
        shape = SatisfiedOrTired(documents, tower)
        super().__init__(shape, documents, ranks, tower=tower, features=features, prior=prior)

    def _begin(self, seen: Seen) -> tuple[Tallies, Rates]:
        tallies = {"attraction": (seen.clicks, seen.above), "satisfaction": (seen.stayed, seen.turns)}
        return tallies, {"continuation": np.array(_FIRST_CONTINUATION)}

    def _maximise(self, rates: Rates, expected: Expected, seen: Seen) -> tuple[Tallies, Rates]:
        """After a click the user is satisfied, tired (unsatisfied, and leaves) or goes on; only the last shows."""
        gamma, s = float(rates["continuation"]), rates["satisfaction"]
        left = np.maximum(seen.turns - expected.on, 0.0)
        leaving = s + (1.0 - s) * (1.0 - gamma)
        satisfied = left * np.divide(s, leaving, out=np.ones_like(s), where=leaving > 0)
        on = float(expected.on.sum()) + expected.on_skip
        off = float((left - satisfied).sum()) + expected.skips - expected.on_skip
        tallies = {"attraction": (seen.clicks, expected.read), "satisfaction": (satisfied, seen.turns)}
        return tallies, {"continuation": np.array(on / (on + off) if on + off > 0 else gamma)}

    def satisfaction(self) -> Floats:
        """P(satisfied | clicked), by document."""
        return scores(self.tower, self._fitted()["satisfaction"], self._features)

    def continuation(self) -> float:
        """γ."""
        return float(jax.nn.sigmoid(self._fitted()["continuation"]))

    def relevance(self) -> Floats:
        """Attraction × satisfaction."""
        return self.attraction() * self.satisfaction()
