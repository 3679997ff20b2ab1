"""Unconfounded propensity estimation (section 4 of the UPE paper).

A propensity model that reads document and position first learns what of the position the document explains (the
confounding effect, Eq. 8 to 10), then, with that part frozen, learns position embeddings from the confounded
propensities of dual learning (Eq. 11 to 13). Averaged over documents whatever their position (Eq. 6d, 7, 14) it
gives the propensities that weigh the ranker's clicks (Eq. 3a).

The text leaves open, and here are settings:

- What is averaged (`average`). Eq. 14 calls the network's output a probability, but it is a logit that only softmax
  makes one. "logit": the mean logit; "exponential": the mean of its exponential; "probability": the mean over
  documents of the softmax over the positions where each could stand.
- What the confounded target y^p of Eq. 13 is (`target`). "logit": the dual problem's logits, so that the softmax in
  Eq. 13 gives its propensities back; "probability": these propensities, which the softmax makes nearly flat; "ratio":
  propensities relative to the last position, as the paper plots them, which it makes extremely peaked; "clicks": no
  propensities at all but clicks weighted by inverse relevance, which is what the public code does.
- When what is trained (`stages`). None: all at every step; else one after the other, in cycles.
- What the average is over (`over`): the batch, or all lists of the log.

No reading removes the confounding. The optimum of Eq. 13 is solved in `research/elute_reproduce/upe/exact.py`: with
the target "logit", log UPE_k is about log DLA_k − E[score | k], and the scale of the score, which no loss ties to
clicks, decides how much is taken away. Even the true log relevance as the score leaves it wrong: dual learning has
divided by relevance once already. A network with a bend between position and score takes away another amount than the
law says, which no loss sets either (docs/reproductions/upe-readings.md).

Eq. 7 as printed sums over documents at their own positions, which leaves no position to average for; here every
document is put at every position, as Eq. 6d says. Zero logging scores are as good as none: "mrr" and "dcg" of Eq. 15
fit positions instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from elute.errors import EluteError
from elute.neural import dual, joint
from elute.neural.data import View
from elute.neural.learner import Groups, Learner, Memory, State
from elute.neural.losses import attention_rank, softmax_loss
from elute.neural.networks import Key
from elute.options.kinds import OneOf
from elute.options.learners import SETTINGS
from elute.options.takes import declares

_LISTS = 256
"""Lists adjusted over at a time."""

Average = Literal["logit", "exponential", "probability"]
Target = Literal["logit", "probability", "ratio", "clicks"]
Confounding = Literal["scores", "mrr", "dcg", "none"]


class Stages(NamedTuple):
    """Steps of each stage in a cycle; online, a cycle is the time between two renewals of the lists.

    The confounding effect, then the position embeddings; until both are done the ranker learns as in dual learning,
    and after that, for the rest of the cycle, with the adjusted propensities.
    """

    confounding: int = 500
    joint: int = 500
    cycle: int = 2_500


AFTER_PUBLIC_CODE: Mapping[str, Any] = {"target": "clicks", "frozen": False, "average": "probability"}
"""The settings nearest to the public code's, which `elute train` takes: of the readings that were compared where the
truth is known, their propensities are the least wrong."""


@declares(confounding=OneOf(words=("scores", "mrr", "dcg", "none")), **SETTINGS["upe"])
@dataclass(frozen=True, kw_only=True)
class UPE(Learner):
    """A ranker weighted by unconfounded propensities."""

    note: ClassVar[str] = (
        "UPE's propensities follow the scale of the logging policy's score, which clicks do not set: no reading of it "
        "came within 10% of the true p1/p10 in more than one simulated world (docs/reproductions/upe-propensities.md, "
        "docs/reproductions/upe-readings.md). Where items come back at several positions, the learner elute estimates "
        "them"
    )

    average: Average = "logit"
    target: Target = "logit"
    stages: Stages | None = None
    over: Literal["batch", "log"] = "batch"
    confounding: Confounding = "scores"
    """What the confounding effect is learnt from: logging scores, or positions (Eq. 15), or nothing."""
    frozen: bool = True
    """Whether learning position embeddings leaves encoder and network as they are."""

    @property
    def whole_log(self) -> bool:
        return self.over == "log"

    def init_parameters(self, key: Key, n_features: int, positions: int) -> Groups:
        ranker, document, position = jax.random.split(key, 3)
        return {
            "ranker": self.network.init(ranker, n_features),
            "dual": dual.init(positions),
            "document": joint.init(document, n_features),
            "position": joint.init_positions(position, positions),
        }

    def init_memory(self, n_features: int, positions: int) -> Memory:
        return {"log_propensities": jnp.zeros(positions)}

    def active_groups(self, step: Array) -> dict[str, Array]:
        if self.stages is None:
            return {}
        now = step % self.stages.cycle
        end = self.stages.confounding + self.stages.joint
        first = now < self.stages.confounding
        return {"document": first, "position": ~first & (now < end), "dual": now < end}

    def loss(self, params: Groups, memory: Memory, seen: View, key: Key | None, step: Array) -> tuple[Array, Memory]:
        scores = self.network.scores(params["ranker"], seen.x, key)
        encoded = joint.encode(params["document"], seen.x)
        adjusted = memory["log_propensities"]
        if self.over == "batch":
            adjusted = self._adjust(params, encoded, seen.mask)
        weights = dual.inverse_propensity(self._choose_weights(params, adjusted, step))
        return (
            softmax_loss(scores, seen.clicks * weights, seen.mask)
            + self._confounding_loss(params, encoded, seen)
            + self._joint_loss(params, encoded, scores, seen)
        ), {"log_propensities": adjusted}

    def _choose_weights(self, params: Groups, adjusted: Array, step: Array) -> Array:
        """Log propensities that weigh clicks at this step."""
        if self.stages is None:
            return adjusted
        early = step % self.stages.cycle < self.stages.confounding + self.stages.joint
        return jnp.where(early, dual.logits(params["dual"]), adjusted)

    def _confounding_loss(self, params: Groups, encoded: Array, seen: View) -> Array:
        """What of the ranking a document's features explain (Eq. 10)."""
        if self.confounding == "none":
            return jnp.zeros(())
        position = jnp.arange(1, seen.mask.shape[1] + 1)
        if self.confounding == "scores":
            if seen.logging is None:
                raise EluteError(
                    "UPE needs the logging policy's scores; pass them, or set confounding to 'mrr' or 'dcg'"
                )
            wanted = seen.logging
        else:
            by_rank = 1 / position if self.confounding == "mrr" else 1 / jnp.log2(position + 1)  # Eq. 15
            wanted = jnp.broadcast_to(by_rank, seen.mask.shape)
        return attention_rank(joint.score(params["document"], encoded), wanted, seen.mask)

    def _joint_loss(self, params: Groups, encoded: Array, scores: Array, seen: View) -> Array:
        """Position embeddings against the confounded propensities (Eq. 12, 13), and the dual problem's (Eq. 3b)."""
        document = params["document"]
        if self.frozen:
            document, encoded = jax.lax.stop_gradient((document, encoded))
        fitted = joint.score(document, encoded + params["position"])
        if self.target == "clicks":
            return softmax_loss(fitted, seen.clicks * dual.inverse_relevance(scores), seen.mask)
        logits = dual.logits(params["dual"])
        wanted = {
            "logit": logits,
            "probability": jax.nn.softmax(logits),
            "ratio": jnp.exp(logits - logits[-1]),
        }[self.target]
        confounded = jax.lax.stop_gradient(jnp.broadcast_to(wanted, seen.mask.shape))
        return attention_rank(fitted, confounded, seen.mask) + dual.loss(params["dual"], scores, seen)

    def _adjust(self, params: Groups, encoded: Array, mask: Array) -> Array:
        """Backdoor adjustment: log P(E | do(K = k)) from what every document gives at every position (Eq. 6d, 7)."""
        if self.average == "logit":
            return joint.mean_score_everywhere(params["document"], encoded, params["position"], mask)
        logits = joint.score_everywhere(params["document"], encoded, params["position"])
        logs = jax.nn.log_softmax(logits, axis=-1) if self.average == "probability" else logits
        some = jnp.where(mask[..., None], logs, -jnp.inf)
        return jax.nn.logsumexp(some, axis=tuple(range(mask.ndim))) - jnp.log(jnp.maximum(mask.sum(), 1))

    def adjust_over_log(self, state: State, features: Array, documents: Array) -> State:
        """In parts of the log, as all of it at every position would not fit; parts count by their documents."""
        if self.over == "batch":
            return state

        def of_lists(rows: Array) -> tuple[Array, Array]:
            encoded = joint.encode(state.params["document"], features[jnp.maximum(rows, 0)])
            return self._adjust(state.params, encoded, rows >= 0), (rows >= 0).sum()

        parts, counts = jax.lax.map(of_lists, _split_lists(documents))
        share = (counts / counts.sum())[:, None]
        if self.average == "logit":
            return state._replace(memory={"log_propensities": (share * parts).sum(axis=0)})
        return state._replace(memory={"log_propensities": jax.nn.logsumexp(parts, axis=0, b=share)})

    def log_propensities(self, state: State) -> Array:
        return state.memory["log_propensities"]


def _split_lists(documents: Array) -> Array:
    """(parts, lists, positions), filled up with empty lists."""
    lists, positions = documents.shape
    filled = jnp.pad(documents, ((0, -lists % _LISTS), (0, 0)), constant_values=-1)
    return filled.reshape(-1, _LISTS, positions)
