"""Every model can be trained by gradients."""

from __future__ import annotations

import numpy as np
import pytest
from click_worlds import simulated

from elute.clicks import MODELS, Training, model_of
from elute.simulate.users import build_user

DOCUMENTS, RANKS = 12, 4
USER = build_user("dbn")
SESSIONS, _, _ = simulated(USER, 600, DOCUMENTS, RANKS, 1, 2)
HELD_OUT, _, _ = simulated(USER, 300, DOCUMENTS, RANKS, 1, 2)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_trains_by_gradients(name: str) -> None:
    """It gets better than where it starts, and predicts held-out clicks better than one rate for all."""
    done = []
    settings = Training(epochs=12, batch=64, learning_rate=0.05, patience=12)
    model = model_of(name)(DOCUMENTS, RANKS)
    model.fit(SESSIONS, HELD_OUT, training=settings, progress=lambda *at: done.append(at))
    assert done == [("training", epoch, 12) for epoch in range(1, 13)]
    assert max(e.training for e in model.history_) > model.history_[0].training + 0.005
    held_out = model._accept(HELD_OUT)
    rate, clicked = SESSIONS.clicked.sum() / SESSIONS.mask.sum(), held_out.clicked
    constant = np.where(held_out.mask, np.where(clicked, np.log(rate), np.log1p(-rate)), 0.0).sum(axis=1).mean()
    assert model.log_likelihood(held_out).mean() > constant + 0.02
    assert model.relevance().shape == (DOCUMENTS,)
