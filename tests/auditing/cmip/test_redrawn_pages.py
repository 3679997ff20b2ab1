"""Pages drawn anew from session models: their click rates, and what an audit then says of right and wrong ones."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from elute.auditing.cmip.calibrated import calibrate
from elute.auditing.cmip.pages import MOST_PAGES, JudgedPages, choose_pages
from elute.clicks import Sessions, model_of
from elute.clicks.base.model import ClickModel
from elute.simulation.shown import ShownPages
from elute.simulation.users.position import PositionBased

QUERIES, RANKS, PAGES = 60, 8, 12_000
EXAMINATION = 1.0 / np.arange(1, RANKS + 1)


class World:
    """Queries with documents of two grades, ranked by grade with noise and shuffled a little from page to page."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.grade = rng.integers(0, 2, QUERIES * RANKS).astype(float)
        attraction = np.where(self.grade > 0, 0.6, 0.25)
        score = self.grade + rng.normal(0, 1.0, QUERIES * RANKS)
        query = rng.integers(0, QUERIES, PAGES)
        rows = query[:, None] * RANKS + np.arange(RANKS)
        order = np.argsort(-(score[rows] + rng.gumbel(0, 0.5, rows.shape)), axis=1)
        doc = np.take_along_axis(rows, order, axis=1)
        shown = ShownPages(attraction[doc], np.full(PAGES, RANKS))
        clicks = PositionBased(EXAMINATION).draw_clicks(shown, rng)
        self.sessions = Sessions.from_arrays(doc, clicks, query=query)
        self.query = np.arange(QUERIES * RANKS) // RANKS
        rank = np.broadcast_to(np.arange(RANKS), doc.shape)
        self.policy = -np.bincount(doc.ravel(), rank.ravel()) / np.bincount(doc.ravel())

    def judge(self, model: ClickModel[Any]) -> JudgedPages:
        return JudgedPages(self.sessions, model, np.arange(len(self.grade)), self.grade, self.query, self.policy)


@pytest.fixture(scope="module")
def world() -> World:
    return World(0)


@pytest.mark.parametrize("name", ["dctr", "rdctr", "pbm", "ubm", "cascade"])
def test_a_model_clicks_as_it_predicts(world: World, name: str) -> None:
    model = model_of(name)(len(world.grade), RANKS).fit(world.sessions)
    attraction = np.random.default_rng(3).uniform(0.1, 0.9, len(world.grade))
    other: Any = cast(Any, model).with_attraction(attraction)
    drawn = other.redraw(world.sessions, np.random.default_rng(4)).click
    predicted = other.predict_clicks(world.sessions)
    for rank in range(RANKS):
        mean, n = predicted[:, rank].mean(), len(drawn)
        assert drawn[:, rank].mean() == pytest.approx(mean, abs=5 * np.sqrt(mean / n))
    assert np.corrcoef(other.predict_clicks(world.sessions)[:, 0], attraction[world.sessions.doc[:, 0]])[0, 1] > 0.99


@pytest.mark.parametrize(("name", "biased"), [("pbm", False), ("ubm", False), ("dctr", True)])
def test_noise_explains_the_right_models_and_not_the_click_rate(world: World, name: str, biased: bool) -> None:
    model = model_of(name)(len(world.grade), RANKS).fit(world.sessions)
    excess, power = calibrate(world.judge(model), model.relevance_values_, draws=39, power_draws=10)
    assert excess.is_bias is biased
    assert power.value > 0.5


def test_of_too_many_pages_those_of_some_judged_queries_are_taken(world: World) -> None:
    times = MOST_PAGES // PAGES + 1
    many = world.sessions.take(np.tile(np.arange(PAGES), times))
    judged = np.arange(len(world.grade))
    pages, shown = choose_pages(many, judged, 0)
    assert len(pages) <= MOST_PAGES
    assert set(np.unique(pages.query)) == set(world.query[judged[shown]])
    assert choose_pages(world.sessions, judged, 0)[0] is world.sessions
