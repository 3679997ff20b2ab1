"""Where batches come from: simulated clicks, rankings, randomised pages, logs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from neural_worlds import BIAS, FEATURES, KEY, POSITIONS, linear_world, quick
from neural_worlds import compiled_with_little_optimisation as compiled_with_little_optimisation

from elute.errors import EluteError
from elute.neural.learners.ipw_random import build_ipw_random, from_random_pages, from_swaps
from elute.neural.sources import LoggedLists, build_logged_source, build_simulated_lists, rank_lists


def test_clicks_follow_the_position_based_model() -> None:
    truth, log_relevance = linear_world(4)
    draw = quick(lambda key: truth.draw(key, 100_000))
    batch = draw(KEY)
    rows, clicks = np.asarray(batch.documents), np.asarray(batch.clicks)
    assert set(np.unique(clicks)) == {0.0, 1.0}
    for query in range(4):
        mine = rows[:, 0] == query * POSITIONS
        chance = np.exp(log_relevance[query * POSITIONS : (query + 1) * POSITIONS]) * BIAS
        error = np.sqrt(chance * (1 - chance) / mine.sum())
        assert abs(mine.mean() - 0.25) < 0.006
        assert (np.abs(clicks[mine].mean(axis=0) - chance) < 4.5 * error).all()
    np.testing.assert_allclose(np.asarray(batch.logging), log_relevance[rows], rtol=1e-5)


def test_no_click_without_a_document() -> None:
    rows = np.array([[0, 1, -1], [2, -1, -1]])
    sure = build_simulated_lists(np.ones((3, 2)), rows, np.zeros((2, 3)), np.ones(3), np.ones(3))
    batch = sure.draw(KEY, 500)
    np.testing.assert_array_equal(batch.clicks, batch.documents >= 0)
    pages = sure.randomise(KEY, 500)
    np.testing.assert_array_equal(pages.documents[:, 2], -1)
    assert set(np.unique(np.asarray(pages.documents)[:, 0])) == {0, 1, 2}


def test_random_pages_show_every_document_everywhere_and_give_the_propensities() -> None:
    truth, _ = linear_world(3)
    pages = quick(lambda key: truth.randomise(key, 200_000))(KEY)
    rows = np.asarray(pages.documents)
    for position in range(POSITIONS):
        shares = np.bincount(rows[:, position], minlength=15) / len(rows)
        np.testing.assert_allclose(shares, 1 / 15, atol=0.004)
    found = from_random_pages(pages.documents, pages.clicks)
    np.testing.assert_allclose(found, BIAS / BIAS[0], rtol=0.04)
    assert build_ipw_random(pages.documents, pages.clicks).given == tuple(found)


def test_swaps_give_the_propensities_where_order_alone_would_not() -> None:
    """Relevance falls with position, and a coin swaps one position with the first."""
    rng = np.random.default_rng(0)
    relevance, pages = np.array([0.9, 0.6, 0.5, 0.3, 0.2]), 400_000
    partner = rng.integers(2, POSITIONS + 1, pages)
    shown = np.tile(np.arange(POSITIONS), (pages, 1))
    swapped = rng.random(pages) < 0.5
    shown[swapped, partner[swapped] - 1], shown[swapped, 0] = 0, partner[swapped] - 1
    clicks = rng.random(shown.shape) < relevance[shown] * BIAS
    np.testing.assert_allclose(from_swaps(clicks, partner), BIAS / BIAS[0], rtol=0.03)


def test_randomisation_without_clicks_is_an_error() -> None:
    with pytest.raises(EluteError, match="position 2 has no click on randomised pages"):
        from_random_pages([[0, 1]], [[1, 0]])
    with pytest.raises(EluteError, match="no click on position 1 where position 2 was its partner"):
        from_swaps([[0, 1]], [2])


def test_shown_lists_are_the_highest_scores_in_order() -> None:
    candidates = np.array([[0, 1, 2, 3], [4, 5, -1, -1]], np.int32)
    rows, scores = rank_lists(jnp.asarray([0.1, 3, 2, 0.2, -5, 1]), jnp.asarray(candidates), 3)
    np.testing.assert_array_equal(rows, [[1, 2, 3], [5, 4, -1]])
    np.testing.assert_allclose(scores, [[3.0, 2.0, 0.2], [1.0, -5.0, 0.0]])


def test_a_log_is_drawn_list_by_list() -> None:
    rng = np.random.default_rng(0)
    rows = rng.permutation(60).reshape(20, 3)
    clicks = rng.integers(0, 2, (20, 3))
    data = build_logged_source(rng.normal(size=(60, FEATURES)), rows, clicks, rows / 7).data
    assert isinstance(data, LoggedLists)
    batch = jax.tree.map(np.asarray, data.draw(KEY, 4_000))
    where = {tuple(row): number for number, row in enumerate(rows)}
    drawn = np.array([where[tuple(row)] for row in batch.documents])
    np.testing.assert_array_equal(batch.clicks, clicks[drawn])
    np.testing.assert_allclose(batch.logging, rows[drawn] / 7, rtol=1e-6)
    assert np.bincount(drawn, minlength=20).min() > 130


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 5]], "lists name documents from 0 to 5, but there are 3"),
        ([[-2, 0]], "from -2 to 0"),
        ([[0, 1], [-1, 2]], "list 1 has a gap"),
        ([[0, 1], [-1, -1]], "list 1 has a gap"),
        ([[0.5, 1.0]], "whole numbers"),
    ],
)
def test_wrong_lists(rows: list[list[float]], message: str) -> None:
    with pytest.raises(EluteError, match=message):
        build_logged_source(np.ones((3, 2)), rows, np.zeros((len(rows), 2)))


def test_wrong_values() -> None:
    with pytest.raises(EluteError, match="1 documents have features that are not finite"):
        build_logged_source([[1.0, np.nan]], [[0]], [[1]])
    with pytest.raises(EluteError, match=r"clicks must have the shape \(1, 1\); theirs is \(1, 2\)"):
        build_logged_source([[1.0, 2.0]], [[0]], [[1, 0]])
    with pytest.raises(EluteError, match="must be a probability"):
        build_simulated_lists(np.ones((1, 2)), [[0]], [[0.0]], [1.5], [0.9])
