"""The training loop: every model learns, best state restored, runs resumed exactly, parts and seeds.

One shape of batches for all, so that a model's step is compiled once.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from click_worlds import simulated

from elute.clicks import NCM, PBM, Training, model_of
from elute.simulation.users import build_user

DOCUMENTS, RANKS = 12, 4
USER = build_user("dbn")
SESSIONS, _, _ = simulated(USER, 600, DOCUMENTS, RANKS, 1, 2)
HELD_OUT, _, _ = simulated(USER, 300, DOCUMENTS, RANKS, 1, 2)
SHORT = Training(epochs=4, batch=128, learning_rate=0.05)

pytestmark = pytest.mark.usefixtures("quick_compiling")


def same(one, other) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_the_best_state_is_restored_not_the_last() -> None:
    """Far too fast: held-out likelihood gets worse while training goes on for `patience` epochs."""
    fast = Training(epochs=30, batch=128, learning_rate=1.0, patience=3)
    model = PBM(DOCUMENTS, RANKS).fit(SESSIONS, HELD_OUT, training=fast)
    held_out = [epoch.validation for epoch in model.history_]
    assert len(held_out) == model.best_epoch_ + 3 < 30
    assert int(np.argmax(held_out)) + 1 == model.best_epoch_
    assert model.log_likelihood(HELD_OUT).mean() == pytest.approx(max(held_out), abs=1e-6)
    assert abs(held_out[-1] - max(held_out)) > 1e-4  # so the last state would be told apart


def test_without_validation_all_epochs_are_run() -> None:
    model = PBM(DOCUMENTS, RANKS).fit(SESSIONS, training=SHORT)
    assert len(model.history_) == model.best_epoch_ == 4
    assert [np.isnan(epoch.validation) for epoch in model.history_] == [True] * 4


@pytest.mark.parametrize("name", ["cascade", "dcm", "ccm", "sdbn", "dbn", "ncm", "cacm"], scope="module")
def test_models_without_an_exact_twin_learn_by_gradients(name: str) -> None:
    """Those that `test_click_fits` does not compare with an exact fit get better than where they start, and predict
    held-out clicks better than one rate for all."""
    done = []
    settings = Training(epochs=20, batch=128, learning_rate=0.05, patience=20)
    model = model_of(name)(DOCUMENTS, RANKS)
    model.fit(SESSIONS, HELD_OUT, training=settings, progress=lambda *at: done.append(at))
    assert done == [("training", epoch, 20) for epoch in range(1, 21)]
    assert max(e.training for e in model.history_) > model.history_[0].training + 0.005
    held_out = model._accept(HELD_OUT)
    rate, clicked = SESSIONS.clicked.sum() / SESSIONS.mask.sum(), held_out.clicked
    constant = np.where(held_out.mask, np.where(clicked, np.log(rate), np.log1p(-rate)), 0.0).sum(axis=1).mean()
    assert model.log_likelihood(held_out).mean() > constant + 0.02
    assert model.relevance_values_.shape == (DOCUMENTS,)


@pytest.mark.parametrize("name", ["pbm", "dbn", "ncm"], scope="module")
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(name: str, tmp_path) -> None:
    def fit(epochs, path):
        settings = Training(epochs=epochs, batch=128, learning_rate=0.05, patience=2)
        return model_of(name)(DOCUMENTS, RANKS).fit(SESSIONS, HELD_OUT, training=settings, checkpoint=path)

    whole = fit(4, tmp_path / "whole.npz")
    fit(2, tmp_path / "part.npz")
    resumed = fit(4, tmp_path / "part.npz")
    same(whole.params_, resumed.params_)
    assert whole.history_ == resumed.history_ and whole.best_epoch_ == resumed.best_epoch_
    with np.load(tmp_path / "whole.npz", allow_pickle=False) as one, np.load(tmp_path / "part.npz") as two:
        assert one.files == two.files
        for entry in one.files:
            np.testing.assert_array_equal(one[entry], two[entry])


def test_seeds() -> None:
    one, again, other = (
        NCM(DOCUMENTS, RANKS).fit(SESSIONS, training=Training(epochs=1, batch=128, seed=seed)) for seed in (1, 1, 2)
    )
    same(one.params_, again.params_)
    assert np.abs(one.relevance_values_ - other.relevance_values_).max() > 1e-4


def test_parts_train_like_the_whole() -> None:
    whole = PBM(DOCUMENTS, RANKS).fit(SESSIONS, training=SHORT)
    same(PBM(DOCUMENTS, RANKS).fit([SESSIONS], training=SHORT).params_, whole.params_)
    halves = [SESSIONS.take(slice(0, 300)), SESSIONS.take(slice(300, 600))]
    longer = Training(epochs=60, batch=128, learning_rate=0.05)
    in_parts = PBM(DOCUMENTS, RANKS).fit(halves, training=longer)
    at_once = PBM(DOCUMENTS, RANKS).fit(SESSIONS, training=longer)
    assert in_parts.history_[-1].training == pytest.approx(at_once.history_[-1].training, abs=0.01)
