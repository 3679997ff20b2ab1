"""Fits on counts and by EM: at the maximum, equal to gradient fits, and near the truth."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from click_worlds import simulated

from elute.clicks import DBN, DCM, MODELS, PBM, Training, model_of
from elute.clicks.page import to_device_pages
from elute.clicks.structure.base import log_pages
from elute.simulation.users import build_user

DOCUMENTS, RANKS = 12, 4
COUNTED = [name for name in MODELS if name not in ("ncm", "cacm")]
pytestmark = pytest.mark.usefixtures("quick_compiling")
USER = {"pbm": "pbm", "ubm": "ubm", "cascade": "cascade", "dcm": "dcm", "dbn": "dbn"}


def world(name: str, sessions: int = 4000, shortest: int = 2, seed: int = 1):
    return simulated(build_user(USER.get(name, "dbn")), sessions, DOCUMENTS, RANKS, seed, shortest)


@pytest.mark.parametrize("name", COUNTED, scope="module")
def test_a_fit_without_prior_is_at_the_maximum(name: str) -> None:
    """The gradient of the mean log-likelihood vanishes, or pushes against a bound."""
    sessions, _, _ = world(name)
    model = model_of(name)(DOCUMENTS, RANKS, prior=None).fit(sessions)
    pages = to_device_pages(model._accept(sessions))

    def mean(params):
        return log_pages(model.structure, params, model._features, pages).mean()

    slopes = jax.tree_util.tree_leaves_with_path(jax.jit(jax.grad(mean))(model.params_))
    for at, slope in slopes:
        path = jax.tree_util.keystr(at)
        assert np.abs(np.asarray(slope)).max() < 3e-4, path


@pytest.mark.parametrize("name", ["dctr", "rdctr", "pbm", "ubm"], scope="module")
def test_fits_on_counts_agree_with_gradient_fits(name: str) -> None:
    sessions, _, _ = world(name, 2500, shortest=RANKS)
    exact = model_of(name)(DOCUMENTS, RANKS, prior=None).fit(sessions)
    steps = Training(epochs=300, batch=2500, learning_rate=0.1)
    climbed = model_of(name)(DOCUMENTS, RANKS).fit(sessions, training=steps)
    assert exact.log_likelihood(sessions).mean() >= climbed.log_likelihood(sessions).mean() - 1e-6
    np.testing.assert_allclose(climbed.predict_clicks(sessions), exact.predict_clicks(sessions), atol=4e-3)
    np.testing.assert_allclose(climbed.relevance_values_, exact.relevance_values_, rtol=0.03)


@pytest.mark.parametrize("name", sorted(USER), scope="module")
def test_likelihood_ratio_to_the_truth_is_that_of_a_right_model(name: str) -> None:
    """Wilks: twice the gain over the truth is χ² with as many degrees of freedom as there are free parameters."""
    user = build_user(USER[name])
    sessions, relevance, shown = simulated(user, 30_000 if name == "dbn" else 16_000, DOCUMENTS, RANKS, 3, 2)
    model = model_of(name)(DOCUMENTS, RANKS, prior=None).fit(sessions)
    free = {
        "pbm": DOCUMENTS + RANKS - 1,
        "ubm": DOCUMENTS + RANKS * (RANKS + 1) // 2 - 1,
        "cascade": DOCUMENTS,
        "dcm": DOCUMENTS + RANKS - 1,
        "dbn": 2 * DOCUMENTS + 1,
    }[name]
    gain = 2 * (model.log_likelihood(sessions).sum() - user.log_probability(shown, sessions.click).sum())
    assert gain > 0
    assert abs(gain - free) < 4 * np.sqrt(2 * free)
    scale = user.propensities[:RANKS].max() if user.propensities is not None else 1.0
    expected = relevance * relevance / 2 if name == "dbn" else relevance * scale
    assert np.corrcoef(model.relevance_values_, expected)[0, 1] > 0.97
    np.testing.assert_allclose(model.relevance_values_, expected, atol=0.12 if name == "dbn" else 0.06)


def test_parameters_of_users_are_recovered() -> None:
    sessions, _, _ = world("pbm", 32_000)
    o = PBM(DOCUMENTS, RANKS).fit(sessions).examination_
    np.testing.assert_allclose(o, np.array([0.68, 0.61, 0.48, 0.34]) / 0.68, atol=0.03)
    sessions, _, _ = world("dcm", 32_000)
    np.testing.assert_allclose(DCM(DOCUMENTS, RANKS).fit(sessions).continuation_[:3], 0.5, atol=0.03)
    sessions, _, _ = world("dbn", 32_000)
    assert DBN(DOCUMENTS, RANKS).fit(sessions).continuation_ == pytest.approx(0.8, abs=0.04)
