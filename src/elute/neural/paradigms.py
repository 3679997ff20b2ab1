"""The two paradigms of section 5.1 of the UPE paper on graded documents, with clicks drawn at every step."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from elute.errors import EluteError
from elute.neural.data import check_numbers
from elute.neural.metrics import list_candidates
from elute.neural.sources import Offline, Online, build_simulated_lists, rank_lists
from elute.ranking.data import RankingData

Paradigm = Literal["off", "ond"]


def build_paradigm(
    name: Paradigm,
    data: RankingData,
    scores: ArrayLike,
    propensities: ArrayLike,
    *,
    noise: float = 0.1,
    every: int = 2_500,
) -> Offline:
    """What a learner is trained on: "off", lists stay those that `scores`, by document, rank highest; "ond", they start
    so, and `every` so many steps become what the ranker that is being trained ranks highest.

    Lists are as long as there are `propensities`. Users find a document of grade y relevant with the chance
    noise + (1 - noise)(2^y - 1)/(2^highest - 1), and click by the position-based model.
    """
    if name not in ("off", "ond"):
        raise EluteError(f"no paradigm '{name}'; there are: off, ond")
    positions, rows = len(np.asarray(propensities)), list_candidates(data)
    if positions > rows.shape[1]:
        raise EluteError(
            f"there are propensities for {positions} positions, but no query has more than {rows.shape[1]} documents"
        )
    highest = max(int(data.grades.max()), 1)
    relevance = noise + (1 - noise) * (2.0**data.grades - 1) / (2.0**highest - 1)
    ranked = jnp.asarray(check_numbers("scores", scores, (data.n_documents,)))
    documents, logging = rank_lists(ranked, jnp.asarray(rows), positions)
    truth = build_simulated_lists(data.features, documents, logging, relevance, propensities)
    return Offline(truth) if name == "off" else Online(truth, jnp.asarray(rows), every)
