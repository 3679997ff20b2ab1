"""Shortest paths and negative cycles against all paths at once (Floyd and Warshall), on random constraints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elute.bounds.paths import Arrows, find_highest, measure_all, measure_pairs


def draw_arrows(seed: int) -> tuple[Arrows, int]:
    """Constraints that some φ ≤ 0 fulfils, made tighter in part; as parallel arrows too."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 9))
    phi = np.append(0.0, -rng.random(nodes - 1) * 2)
    tail, head = rng.integers(0, nodes, (2, int(rng.integers(1, 20))))
    tail, head = tail[tail != head], head[tail != head]
    slack = rng.random(len(tail)) * 1.5 - rng.choice([0.0, 0.3]) * rng.random(len(tail))
    weight = np.append(phi[head] - phi[tail] + slack, np.zeros(nodes - 1))
    every = np.arange(1, nodes)
    return Arrows(np.append(tail, 0 * every), np.append(head, every), weight), nodes


def measure_plainly(arrows: Arrows, nodes: int) -> np.ndarray:
    out = np.where(np.eye(nodes, dtype=bool), 0.0, np.inf)
    np.minimum.at(out, (arrows.tail, arrows.head), arrows.weight)
    for k in range(nodes):
        out = np.minimum(out, out[:, [k]] + out[[k]])
    return out


@given(st.integers(0, 2**32 - 1))
def test_paths_and_cycles_are_those_of_all_paths(seed: int) -> None:
    arrows, nodes = draw_arrows(seed)
    plain = measure_plainly(arrows, nodes)
    highest, cycle = find_highest(arrows, nodes)
    assert (len(cycle) > 0) == bool((np.diagonal(plain) < -1e-9).any())
    if len(cycle):
        assert arrows.weight[cycle].sum() < 0
        assert (arrows.head[cycle] == np.roll(arrows.tail[cycle], -1)).all()
        return
    np.testing.assert_allclose(highest, plain[0], atol=1e-8)
    for node in range(nodes):
        np.testing.assert_allclose(measure_all(arrows, highest, node), plain[node], atol=1e-8)
        np.testing.assert_allclose(measure_all(arrows, highest, node, reverse=True), plain[:, node], atol=1e-8)
    a, b = np.divmod(np.arange(nodes, nodes * nodes), nodes)
    found, searched = measure_pairs(arrows, highest, (a, b), 10**6)
    np.testing.assert_allclose(found, plain[a, b], atol=1e-8)
    assert searched == nodes - 1


@given(st.integers(0, 2**32 - 1))
def test_with_no_time_for_searches_bounds_hold_and_are_wider(seed: int) -> None:
    arrows, nodes = draw_arrows(seed)
    highest, cycle = find_highest(arrows, nodes)
    if not len(cycle):
        a, b = np.divmod(np.arange(nodes, nodes * nodes), nodes)
        found, searched = measure_pairs(arrows, highest, (a, b), 0)
        assert searched == 0
        plain = measure_plainly(arrows, nodes)
        assert (found >= plain[a, b] - 1e-8).all()
        np.testing.assert_allclose(found, plain[a, 0] + plain[0, b], atol=1e-8)


def test_equal_constraints_both_ways_are_no_contradiction() -> None:
    """Sums of the same weights in another order differ in the last digit."""
    ratio = np.log([0.3, 0.7, 0.9])
    factors, scale = np.array([1, 2, 3]), np.array([4, 4, 4])
    tail, head = np.concatenate((factors, scale, [0, 0, 0])), np.concatenate((scale, factors, factors))
    arrows = Arrows(tail, head, np.concatenate((-ratio, ratio, np.zeros(3))))
    highest, cycle = find_highest(arrows, 5)
    assert not len(cycle)
    assert measure_all(arrows, highest, 1)[2] == pytest.approx(np.log(0.7 / 0.3))
