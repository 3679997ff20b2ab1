"""The worlds of the CMIP experiment: users as text and code have them, policies, sessions."""

from __future__ import annotations

import numpy as np
import pytest

from elute.ranking.data import RankingData
from elute.simulation.shown import ShownPages
from elute_reproduce.cmip import world as worlds


def documents(queries: int = 6, width: int = 10) -> worlds.Documents:
    rng = np.random.default_rng(0)
    n = queries * width
    grades = rng.integers(0, 5, n).astype(np.int32)
    ids = np.arange(n).astype(str)
    data = RankingData(np.zeros((n, 0), np.float32), grades, np.arange(0, n + 1, width), ids[:queries], ids)
    return worlds.Documents(data, rng.normal(size=n), 4)


def test_the_text_and_the_code_mean_other_users() -> None:
    docs = documents()
    y = docs.data.grades
    r = 0.1 + 0.9 * (2.0**y - 1) / 15
    for user in worlds.USERS:
        assert np.allclose(worlds.build(docs, "text", user, 0).attraction, r), user
    dbn = worlds.build(docs, "code", "DBN", 0)
    assert np.allclose(dbn.attraction, np.maximum(y / 4, 0.1))
    assert dbn.satisfaction is not None and np.allclose(dbn.satisfaction, y / 8)
    mixture = worlds.build(docs, "code", "MixtureDBN", 0)
    assert mixture.satisfaction is not None and np.allclose(mixture.satisfaction, (2.0**y - 1) / 15)
    assert mixture.attraction.min() == pytest.approx(0.1) and mixture.attraction.max() <= 1
    assert [worlds.list_length("text", u) for u in worlds.USERS] == [10, 10, 10, 25]
    assert {worlds.list_length("code", u) for u in worlds.USERS} == {10}


def test_the_oracle_is_noisier_by_the_text() -> None:
    docs = documents(queries=400)
    noise = {r: worlds.build(docs, r, "PBM", 0).scores["NoisyOracle"] - docs.data.grades for r in worlds.READINGS}
    assert noise["text"].var() == pytest.approx(0.5, rel=0.06)
    assert noise["code"].std() == pytest.approx(0.5, rel=0.03)


def test_rows_read_apart_click_as_often_as_they_should() -> None:
    """Thinned clicks of a DBN in each row, against the chain written out by hand."""
    a = np.array([[0.9, 0.2, 0.5, 0.1, 0.7, 0.4, 0.8, 0.3, 0.6, 0.2]])
    expected = []
    for row, bias in ((a[0, :5], 1.0), (a[0, 5:], 2**-0.5)):
        reads = 1.0
        for attraction in row:
            expected.append(bias * reads * attraction)
            reads *= attraction * 0.75 * (1 - attraction) + (1 - attraction) * 0.75
    user = worlds.RowsReadApart()
    assert np.allclose(user.probabilities(ShownPages(a, np.array([10]))), expected)
    pages = ShownPages(np.repeat(a, 40_000, axis=0), np.full(40_000, 10))
    drawn = user.draw_clicks(pages, np.random.default_rng(0))
    assert set(np.unique(drawn)) == {0, 1}
    assert np.allclose(drawn.mean(axis=0), expected, atol=5 * np.sqrt(0.25 / 40_000))


@pytest.mark.parametrize("user", worlds.USERS)
@pytest.mark.parametrize("reading", worlds.READINGS)
def test_clicks_are_drawn_with_the_chances_given(reading: worlds.Reading, user: worlds.UserName) -> None:
    docs = documents(3, worlds.list_length(reading, user))
    world = worlds.build(docs, reading, user, 1)
    log = worlds.draw(world, world.policy("NoisyOracle"), 30_000, (5,))
    assert log.rows.shape == (30_000, docs.width)
    assert (np.sort(log.rows, axis=1) == log.query[:, None] * docs.width + np.arange(docs.width)).all()
    for query in range(3):
        own = log.query == query
        error = 5 * np.sqrt(0.25 / own.sum())
        assert np.allclose(log.click[own].mean(axis=0), log.chance[own].mean(axis=0), atol=error)


def test_a_uniform_policy_at_temperature_0_has_one_page_a_query() -> None:
    world = worlds.build(documents(), "text", "PBM", 3)
    fixed = worlds.draw(world, world.policy("Uniform", 0.0), 500, (1,))
    assert len(np.unique(fixed.rows, axis=0)) == 6
    fresh = worlds.draw(world, world.policy("Uniform"), 500, (1,))
    assert len(np.unique(fresh.rows, axis=0)) == 500
    assert np.array_equal(fresh.rows, worlds.draw(world, world.policy("Uniform"), 500, (1,)).rows)
