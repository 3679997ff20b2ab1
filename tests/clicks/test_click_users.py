"""Models given the parameters of simulated users agree with these users' exact likelihoods and probabilities."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from elute.clicks import Sessions, model_of
from elute.clicks.logspace import to_logits
from elute.clicks.structure.attraction import init_unseen
from elute.clicks.structure.towers import to_embedding
from elute.simulation.shown import ShownPages
from elute.simulation.users import browsing_table, build_user

DOCUMENTS, RANKS, PAGES = 40, 10, 250
TABLE = browsing_table(RANKS)
LAMBDAS = np.linspace(0.9, 0.3, RANKS)

pytestmark = pytest.mark.usefixtures("quick_compiling")
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "pbm": ({"propensities": 1 / np.arange(1, RANKS + 1)}, {"examination": 1 / np.arange(1, RANKS + 1)}),
    "cascade": ({}, {}),
    "dcm": ({"continuation": LAMBDAS}, {"continuation": LAMBDAS}),
    "ubm": ({"table": TABLE}, {"examination": TABLE[np.tril_indices(RANKS)]}),
    "dbn": ({"continuation": 0.8}, {"continuation": np.array(0.8)}),
}


@pytest.mark.parametrize("name", CASES)
def test_likelihoods_and_marginals_are_the_users(name: str) -> None:
    rng = np.random.default_rng(1)
    relevance, satisfaction = rng.uniform(0.02, 0.98, (2, DOCUMENTS))
    doc = rng.integers(0, DOCUMENTS, (PAGES, RANKS)).astype(np.int32)
    length = rng.integers(0, RANKS + 1, PAGES)
    shown = ShownPages(relevance[doc], length, satisfaction[doc] if name == "dbn" else None)
    settings, params = CASES[name]
    user = build_user(name, **settings)
    model = model_of(name)(DOCUMENTS, RANKS)
    model.params_ = {key: jnp.asarray(to_logits(value)) for key, value in params.items()}
    model.params_ |= {"attraction": to_embedding(relevance, 0.5), "ranked": init_unseen(DOCUMENTS, RANKS)}
    if name == "dbn":
        model.params_["satisfaction"] = to_embedding(satisfaction, 0.5)
    clicks = user.draw_clicks(shown, rng)
    sessions = Sessions.from_arrays(doc, clicks, length=length)
    np.testing.assert_allclose(
        model.log_likelihood(sessions), user.log_probability(shown, clicks), rtol=2e-5, atol=2e-6
    )
    np.testing.assert_allclose(model.predict_clicks(sessions), user.probabilities(shown), rtol=3e-5, atol=1e-7)
    if name == "cascade":
        twice = np.zeros((1, RANKS))
        twice[0, :2] = 1
        assert model.log_likelihood(Sessions.from_arrays(doc[:1], twice))[0] == -np.inf
