"""The learners of the UPE tables by name, as they are trained here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from elute.errors import EluteError
from elute.neural.learner import Learner
from elute.neural.learners import build_learner
from elute.neural.learners.ipw import IPW
from elute.neural.learners.upe import AFTER_PUBLIC_CODE, UPE, Stages
from elute.neural.networks import PAPER, Network
from elute.neural.sources import build_simulated_lists
from elute_reproduce.upe.experiment.training import Setup

TRUE, RANDOM, FITTED, NAIVE, DLA = "true propensities", "ipw-random", "elute", "naive", "dla"
UPE_TEXT, UPE_STAGED, UPE_PUBLIC = "upe", "upe, in stages", "upe, after the public code"
MRR, DCG, JOINT = "upe-mrr", "upe-dcg", "upe-n"
BASELINES = (
    "grad-reversal",
    "observation-dropout",
    "vectorization",
    DLA,
    "rem",
    "pairwise-debias",
    NAIVE,
)
"""Those without result randomisation, in the order of Table 1. MULTR is left out: it has not been trained for these
pages since it has its own paper's objective."""
READINGS = (UPE_TEXT, UPE_STAGED, UPE_PUBLIC)
"""Of UPE: the losses of both stages in every step, as the text can be read; one stage after the other; the public
code's way."""
TABLE = (RANDOM, FITTED, *READINGS, *BASELINES)
FIGURE = (RANDOM, FITTED, *READINGS, DLA, NAIVE)
_UPE: dict[str, dict[str, Any]] = {
    UPE_TEXT: {},
    UPE_STAGED: {"stages": Stages()},
    UPE_PUBLIC: dict(AFTER_PUBLIC_CODE),
    MRR: {"confounding": "mrr"},
    DCG: {"confounding": "dcg"},
}
"""Settings of the readings, and of the ablations of 5.5."""
PAGES = 50_000
"""In random order, from which ipw-random has its propensities."""


def make_learners(name: str, setup: Setup, network: Network = PAPER) -> Sequence[Learner]:
    """One learner a seed."""
    seeds = len(setup.documents)
    if name == TRUE:
        return [IPW(network=network, given=tuple(setup.propensities.tolist()))] * seeds
    if name == FITTED:
        return [IPW(network=network, given=(1.0,) * len(setup.propensities))] * seeds
    if name == RANDOM:
        return [_make_randomised(setup, seed, network) for seed in range(seeds)]
    if name in _UPE:
        return [UPE(network=network, **_UPE[name])] * seeds
    return [build_learner(name, network=network)] * seeds


def _make_randomised(setup: Setup, seed: int, network: Network) -> Learner:
    """From pages of full length alone: short lists, which lack the last positions, may differ in relevance."""
    lists = setup.documents[seed]
    full = (lists >= 0).all(axis=1)
    if not full.any():
        raise EluteError(f"no query has {lists.shape[1]} documents, so none tells of every position in random order")
    shown = (setup.train.features, lists[full], setup.logging[seed][full], setup.relevance, setup.propensities)
    pages = build_simulated_lists(*shown).randomise(jax.random.PRNGKey(10_000 + seed), PAGES)
    return build_learner(
        RANDOM, documents=np.asarray(pages.documents), clicks=np.asarray(pages.clicks), network=network
    )
