"""Satisfaction integrated out: against plain integrals, and in a world where it differs between documents."""

from __future__ import annotations

import numpy as np
import pytest
from click_worlds import together
from scipy.integrate import quad
from scipy.stats import beta

from elute.clicks import Sessions, model_of
from elute.clicks.base.ranked_prior import RankedPrior
from elute.clicks.exact.satisfaction import _LEVELS, Endings, LastClicks
from elute.simulation.shown import ShownPages
from elute.simulation.users.dbn import DynamicBayesian


def test_posterior_means_are_those_of_plain_integrals() -> None:
    rng = np.random.default_rng(0)
    doc, further = rng.integers(0, 5, 60), rng.random(60)
    on, going_on = rng.integers(0, 9, 6).astype(float), 0.8
    on[4] = 0.0
    prior = RankedPrior(-0.7, 0.4, 3.0)
    z = rng.normal(size=6)
    found = Endings.gather(LastClicks(doc, further), on, going_on).average(prior, z)
    level = np.minimum((further * _LEVELS).astype(int), _LEVELS - 1)
    c = going_on * (level + 0.5) / _LEVELS
    for one in range(6):
        a, b = (float(side[one]) for side in prior.counts(z))

        def weigh(s: float, own: np.ndarray = doc == one, one: int = one, a: float = a, b: float = b) -> float:
            return float(beta.pdf(s, a, b) * (1 - s) ** on[one] * np.prod(1 - c[own] * (1 - s)))

        mass = quad(weigh, 0, 1, limit=200)[0]
        assert found[one] == pytest.approx(quad(lambda s: s * weigh(s), 0, 1, limit=200)[0] / mass, rel=1e-3)


@pytest.mark.parametrize("name", ["dbn", "sdbn"])
def test_documents_that_satisfy_are_told_from_those_that_do_not(name: str) -> None:
    """Half of the documents satisfy with 0.6, half with 0.1. A prior fitted to what is expected of hidden satisfaction
    made all alike: its strength ran to its bound, and both halves had the same satisfaction."""
    rng = np.random.default_rng(1)
    documents, pages, ranks = 200, 20_000, 10
    attraction, satisfaction = rng.uniform(0.1, 0.6, documents), np.where(np.arange(documents) % 2, 0.6, 0.1)
    doc = rng.random((pages, documents)).argsort(axis=1)[:, :ranks].astype(np.int32)
    shown = ShownPages(attraction[doc], np.full(pages, ranks), satisfaction[doc])
    user = DynamicBayesian(0.9 if name == "dbn" else 1.0)
    model = model_of(name)(documents, ranks).fit(Sessions.from_arrays(doc, user.draw_clicks(shown, rng)))
    found = [float(model.satisfaction_[half::2].mean()) for half in (0, 1)]
    assert found == pytest.approx([0.1, 0.6], abs=0.05)
    assert model.priors_["satisfaction"]["strength"] < 20
    if name == "dbn":
        assert model.continuation_ == pytest.approx(0.9, abs=0.02)


def test_pages_in_parts_give_the_same_fit() -> None:
    rng = np.random.default_rng(2)
    doc = rng.integers(0, 20, (600, 5))
    sessions = Sessions.from_arrays(doc, rng.random(doc.shape) < 0.3)
    parts = [sessions.take(slice(0, 250)), sessions.take(slice(250, 600))]
    whole, split = (model_of("sdbn")(20, 5).fit(source) for source in (together(parts), parts))
    np.testing.assert_allclose(whole.satisfaction_, split.satisfaction_, atol=1e-3)
