"""Weights and the losses they go into: against the neural learners, and against differentiation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest

from elute.errors import EluteError
from elute.io.features import Features
from elute.log import ClickLog, read_log
from elute.neural.learners.ipw import IPW
from elute.neural.learners.ipw_random import from_random_pages
from elute.neural.losses import softmax_loss
from elute.neural.networks import Network
from elute.neural.optimise import Optimiser
from elute.neural.sources import build_logged_source
from elute.neural.train import Settings, train
from elute.ranking.network import numpy_scores
from elute.ranking.normalise import LogStandard
from elute.training import networks, trees, weights
from elute.training.pages import TrainingPages
from elute.training.task import Task

POSITIONS = 4


pytestmark = pytest.mark.usefixtures("quick_compiling")


def random_pages(seed: int, pages: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    documents = np.array([rng.choice(12, POSITIONS, replace=False) for _ in range(pages)], np.int32)
    documents[np.arange(POSITIONS) >= rng.integers(1, POSITIONS + 1, pages)[:, None]] = -1
    return documents, ((rng.random(documents.shape) < 0.4) & (documents >= 0)).astype(np.float32)


def as_log(documents: np.ndarray, clicks: np.ndarray) -> ClickLog:
    page, place = np.nonzero(documents >= 0)
    columns = {"query_id": page, "doc_id": documents[page, place], "position": place + 1}
    return read_log(pa.table({**columns, "click": clicks[page, place].astype(np.int8)}))


def test_weighted_clicks_are_the_ipw_learner_step_by_step() -> None:
    """Same seed, same lists: a network of weighted clicks must be the one that `IPW` trains."""
    documents, clicks = random_pages(0)
    x = np.random.default_rng(1).normal(size=(12, 3)).astype(np.float32)
    known = pa.table({"position": [1, 2, 3, 4], "propensity": [0.9, 0.45, 0.3, 0.1]})
    with as_log(documents, clicks) as log:
        weighing = weights.weigh_by_table(log, known)
    factor = np.where(documents >= 0, np.arange(POSITIONS), 0).astype(np.int32)
    task = Task(
        Features(pa.table({}), ("a", "b", "c"), x, "x"), TrainingPages(documents, clicks, factor, None), weighing, None
    )
    network, settings = Network(hidden=(5,), dropout=0.0), Settings(steps=40, batch=16, fused=10, every=40)
    found = networks.learn(task, "ipw", network, settings, rate=0.05, seed=3)
    scaled = LogStandard.fit(networks.as_ranking(x))(networks.as_ranking(x)).features
    model = IPW(network=network, optimiser=Optimiser(rate=0.05), given=(0.9, 0.45, 0.3, 0.1))
    other = train(model, build_logged_source(scaled, documents, clicks), settings, seed=3)
    np.testing.assert_allclose(numpy_scores(found.arrays, x), other.scores(scaled), rtol=1e-4, atol=1e-5)
    untrained = model.scores(model.init(jax.random.PRNGKey(3), 3, POSITIONS), jnp.asarray(scaled))
    assert np.abs(other.scores(scaled) - np.asarray(untrained)).max() > 0.1


def test_the_trees_loss_is_that_of_networks_and_its_parts_are_its_derivatives() -> None:
    documents, clicks = random_pages(2)
    targets = clicks * np.array([1, 2, 3, 9], np.float32)
    scores = np.random.default_rng(3).normal(size=12)

    def loss(by_document: jax.Array) -> jax.Array:
        of_list = by_document[jnp.maximum(documents, 0)]
        return softmax_loss(of_list, jnp.asarray(targets), jnp.asarray(documents >= 0))

    value, gradient, hessian = trees.softmax_derivatives(scores, trees.flatten_lists(documents, targets))
    pages = len(documents)
    assert value == pytest.approx(float(loss(jnp.asarray(scores))), rel=1e-5)
    np.testing.assert_allclose(gradient, pages * jax.grad(loss)(jnp.asarray(scores)), rtol=1e-4, atol=1e-4)
    diagonal = np.diag(jax.hessian(loss)(jnp.asarray(scores)))
    np.testing.assert_allclose(hessian, pages * diagonal, rtol=1e-4, atol=1e-4)


def test_randomised_pages_give_the_propensities_of_the_neural_learner() -> None:
    documents, clicks = random_pages(4, 500)
    with as_log(documents, clicks) as log:
        found = weights.weigh_by_randomised(log, log).propensity
    np.testing.assert_allclose(found / found[0], from_random_pages(documents, clicks), rtol=1e-6)


def test_no_click_weighs_nothing_and_a_click_must_weigh_something() -> None:
    documents, clicks = random_pages(5)
    clicks[:, 3] = 0
    known = pa.table({"position": [1, 2, 3, 4], "propensity": [0.5, 0.25, 0.2, 0.0]})
    with as_log(documents, clicks) as log:
        np.testing.assert_allclose(weights.weigh_by_table(log, known).weight, [1, 2, 2.5, 0])
    clicks[documents[:, 3] >= 0, 3] = 1
    with as_log(documents, clicks) as log, pytest.raises(EluteError, match="a propensity of 0, but clicks"):
        weights.weigh_by_table(log, known)


def test_a_log_without_a_click_has_nothing_to_teach_trees() -> None:
    documents, clicks = random_pages(6)
    with pytest.raises(EluteError, match="no click"):
        trees.flatten_lists(documents, clicks * 0)
