"""MULTR: its simulator learns and draws as one user; its objective is right where the simulator is."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from neural_worlds import FEATURES, KEY, POSITIONS, linear_world, quick, small
from neural_worlds import compiled_with_little_optimisation as compiled_with_little_optimisation

from elute.neural import simulator
from elute.neural.data import look_up
from elute.neural.learners.multr import MULTR, shuffle_places
from elute.neural.networks import LINEAR
from elute.neural.sources import Offline

RELEVANCE = np.array([0.9, 0.2, 0.6])
SEEN = np.array([0.8, 0.5, 0.2])


def expected_target(real: np.ndarray, user: Any, weights: np.ndarray) -> np.ndarray:
    """MULTR's mean target by document, every order enumerated: `user(document, position)` is a chance of a click."""
    n = len(real)
    places = np.zeros(n)
    orders = list(permutations(range(n)))
    for order in orders:
        for place, document in enumerate(order):
            places[document] += user(document, place) / len(orders)
    return weights * (real - np.array([user(k, k) for k in range(n)])) + places


def test_a_right_simulator_gives_relevance_whatever_the_weights() -> None:
    def truth(document: int, place: int) -> float:
        return float(SEEN[place] * RELEVANCE[document])

    for weights in (SEEN[0] / SEEN, np.ones(3), np.array([1.0, 7.0, 0.3])):
        found = expected_target(SEEN * RELEVANCE, truth, weights)
        np.testing.assert_allclose(found, SEEN.mean() * RELEVANCE)


def test_right_weights_do_not_make_up_for_a_wrong_simulator() -> None:
    def wrong(document: int, place: int) -> float:
        return float(SEEN[place] * RELEVANCE[::-1][document])

    found = expected_target(SEEN * RELEVANCE, wrong, SEEN[0] / SEEN)
    np.testing.assert_allclose(found, SEEN[0] * RELEVANCE + (SEEN.mean() - SEEN[0]) * RELEVANCE[::-1])
    assert np.ptp(found / RELEVANCE) > 0.1


def test_what_is_added_to_real_clicks_is_that_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a user in place of the simulator whose click depends on document and position alone."""
    lists = small(3, (5, 3, 4))
    seen = look_up(jnp.float32(lists.features), lists.batch)
    found_x: list[np.ndarray] = []

    def stand_in(user: Any, x: Any, mask: Any, uniforms: Any) -> Any:
        found_x.append(np.asarray(x))
        return jnp.where(mask, x[..., 0] + 10.0 * jnp.arange(mask.shape[1]), 0.0)

    monkeypatch.setattr(simulator, "draw", stand_in)
    weights = 1 / np.linspace(1, 0.2, POSITIONS)
    orders = [shuffle_places(seen.mask, jax.random.split(key)[0]) for key in jax.random.split(KEY, 4)[1:]]
    added = np.asarray(MULTR(orders=3)._augment({}, jnp.asarray(weights), seen, KEY))
    for number, page in enumerate(lists.pages):
        n = len(page.clicks)
        own = page.x[:, 0] + 10.0 * np.arange(n)
        places = [np.argsort(np.asarray(order)[number])[:n] for order in orders]
        elsewhere = np.mean([page.x[:, 0] + 10.0 * place for place in places], axis=0)
        np.testing.assert_allclose(added[number, :n], elsewhere - weights[:n] * own, rtol=1e-4)
        assert (added[number, n:] == 0).all()
        assert all(sorted(place) == list(range(n)) for place in places)
    assert len(found_x) == 4


def test_it_draws_the_clicks_that_its_likelihood_speaks_of() -> None:
    """All patterns of three places: their frequencies are their probabilities, which add up to 1."""
    user = simulator.init(KEY, FEATURES, POSITIONS)
    user["click"] = 2.0 * jnp.ones_like(user["click"])
    x = jax.random.normal(jax.random.PRNGKey(3), (1, 3, FEATURES))
    user["position"] = 3.0 * user["position"][:3]
    mask = jnp.ones((1, 3), bool)
    chances = {
        pattern: float(np.exp(-simulator.loss(user, x, mask, jnp.array([pattern]))))
        for pattern in product((0.0, 1.0), repeat=3)
    }
    assert sum(chances.values()) == pytest.approx(1, rel=1e-5)
    draws = 20_000
    many = jnp.broadcast_to(x, (draws, 3, FEATURES))
    uniforms = jax.random.uniform(jax.random.PRNGKey(4), (draws, 3))
    clicks = np.asarray(quick(simulator.draw)(user, many, jnp.ones((draws, 3), bool), uniforms))
    for pattern, chance in chances.items():
        share = float((clicks == np.array(pattern)).all(axis=1).mean())
        assert abs(share - chance) < 4 * np.sqrt(chance * (1 - chance) / draws) + 1e-9


def test_the_simulator_is_trained_in_advance_and_then_kept() -> None:
    world, _ = linear_world(60)
    model = MULTR(network=LINEAR, pretraining=20, orders=1)
    source = Offline(world)
    first = model.init(KEY, FEATURES, POSITIONS)
    then, _ = source.advance(model, first, 20, 32)
    after, _ = source.advance(model, then, 20, 32)

    def moved(one: Any, other: Any) -> dict[str, bool]:
        return {
            name: any(
                not np.array_equal(a, b)
                for a, b in zip(jax.tree.leaves(group), jax.tree.leaves(other.params[name]), strict=True)
            )
            for name, group in one.params.items()
        }

    assert moved(first, then) == {"ranker": True, "dual": True, "simulator": True}
    assert moved(then, after) == {"ranker": True, "dual": True, "simulator": False}
