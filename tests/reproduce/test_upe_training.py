"""All seeds at once are what each is alone; and the learner `elute` finds the propensities where it can."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elute.neural.learners import build_learner
from elute.neural.learners.ipw import IPW
from elute.neural.metrics import list_candidates
from elute.neural.networks import LINEAR
from elute.neural.sources import Online, build_simulated_lists
from elute.neural.train import Settings, train
from elute_reproduce.upe.experiment import training
from elute_reproduce.upe.experiment.learners import FITTED, RANDOM, make_learners
from elute_reproduce.upe.experiment.training import Schedule, train_seeds
from elute_reproduce.upe.experiment.worlds import ONLINE, RANKINGS, STRONG, VARIED, make_synthetic_set, set_up, take_top

pytestmark = pytest.mark.usefixtures("quick_compiling")


@pytest.fixture(scope="module")
def graded():
    return make_synthetic_set(14)


def test_each_seed_is_trained_as_it_would_be_alone(graded, monkeypatch):
    """Side by side, as on a GPU; online, which also renews the lists."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    made = replace(set_up(graded, ONLINE, 2), test=graded.validation)  # one shape, compiled once
    schedule = Schedule(8, 16, 2, 4)
    model = build_learner("dla", network=LINEAR)
    found = train_seeds([model, model], made, schedule=schedule)
    training._advance.clear_cache()  # type: ignore[attr-defined]  # what was compiled for a GPU; jax's types leave it out
    for seed in range(2):
        shown = build_simulated_lists(
            graded.train.features, made.documents[seed], made.logging[seed], made.relevance, made.propensities
        )
        source = Online(shown, jnp.asarray(list_candidates(graded.train)), 4)
        alone = train(
            model, source, Settings(steps=8, batch=16, fused=2, every=2), seed=seed, validation=graded.validation
        )
        assert [moment.step for moment in alone.history] == found.steps.tolist()
        np.testing.assert_allclose(found.validation[seed], [m.ndcg for m in alone.history], atol=1e-5)
        ratios = np.array([np.log(m.propensities / m.propensities[-1]) for m in alone.history])
        np.testing.assert_allclose(found.log_ratio[seed], ratios, atol=1e-5)
        np.testing.assert_allclose(found.scores[seed], alone.scores(graded.validation.features), atol=1e-5)


def test_elute_finds_the_propensities_where_lists_vary_and_has_none_where_they_do_not(graded):
    schedule = Schedule(40, 2_000, 20, 20)  # lists would be renewed, were they online
    varied, fixed = set_up(graded, VARIED, 1), set_up(graded, STRONG, 1)
    model = make_learners(FITTED, varied, LINEAR)
    found = train_seeds(model, varied, fitted=True, schedule=schedule)
    assert found.merges.tolist() == [0]
    truth = np.log(varied.propensities / varied.propensities[-1])
    assert (np.abs(found.log_ratio[0, -1] - truth) < 4 * found.log_se[0] + 1e-6).all()
    assert found.log_se[0, 0] < 0.15
    as_many = (1, RANKINGS, 1)  # lists, all alike
    alike = replace(fixed, documents=np.tile(fixed.documents, as_many), logging=np.tile(fixed.logging, as_many))
    found = train_seeds(model, alike, fitted=True, schedule=schedule)
    assert found.merges.tolist() == [9]
    assert (found.log_ratio == 0).all()


def test_random_pages_give_propensities_within_their_noise(graded):
    made = set_up(graded, STRONG, 1)
    (model,) = make_learners(RANDOM, made, LINEAR)
    assert isinstance(model, IPW)
    ratio = np.array(model.given) / model.given[-1] / (made.propensities / made.propensities[-1])
    assert np.abs(np.log(ratio)).max() < 0.15


def test_lists_are_the_top_of_each_query(graded):
    scores = np.random.default_rng(0).normal(size=graded.train.n_documents)
    rows, logged = take_top(graded.train, scores, 30)
    for query in range(graded.train.n_queries):
        own = np.arange(graded.train.offsets[query], graded.train.offsets[query + 1])
        there = rows[query] >= 0
        assert rows[query][there].tolist() == own[np.argsort(-scores[own])].tolist()
        assert logged[query][there].tolist() == scores[rows[query][there]].astype(np.float32).tolist()
        assert (there[:-1] >= there[1:]).all()


def test_a_varied_policy_shows_documents_at_several_positions(graded):
    made = set_up(graded, VARIED, 1)
    assert made.documents.shape == (1, RANKINGS * graded.train.n_queries, 10)
    places: dict[int, set[int]] = {}
    for shown in made.documents[0]:
        for position, row in enumerate(shown.tolist()):
            places.setdefault(row, set()).add(position)
    assert max(map(len, places.values())) > 1
