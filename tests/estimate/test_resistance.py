"""Variances against references from draws, against the dense inverse."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from elute.cells.formula import BiasFormula
from elute.estimate.solve import resistance
from elute.estimate.solve.laplacian import grounded_laplacian
from elute.estimate.solve.resistance import WeightedCells, find_ground, find_variances, make_solver
from elute.identify.effects.design import build_design
from reference.dense_resistance import laplacian, pseudo_inverse, variances


def draw(n=400, items=700, seed=0):
    """Two parts; the last factor of each hangs by one item."""
    rng = np.random.default_rng(seed)
    half = n // 2
    first = np.concatenate((np.arange(half - 1), rng.integers(half - 1, size=items - half + 1)))
    first, part = np.concatenate((first, first)), np.repeat((0, 1), items)
    second = (first + np.where(np.arange(len(first)) % items < half, 1, 7)) % (half - 1)
    pairs = np.stack((first, second), axis=1) + half * part[:, None]
    pairs = np.concatenate((pairs, [[0, half - 1], [half, n - 1]]))
    factor = np.sort(pairs, axis=1).ravel().astype(np.int32)
    return WeightedCells(np.arange(0, 2 * len(pairs) + 1, 2), factor, rng.exponential(3, len(factor)))


def test_drawn_standard_errors_are_those_of_the_dense_inverse(monkeypatch):
    cells, n = draw(), 400
    label, propensity = np.arange(n) // 200, np.linspace(1, 0.1, n)
    ground = find_ground(cells, propensity, label)
    matrix = laplacian(cells.offsets, cells.factor, cells.w, n)
    exact = np.sqrt(variances(pseudo_inverse(matrix, label), ground.reference))
    assert np.sqrt(find_variances(cells, ground)) == pytest.approx(exact, rel=1e-6)
    monkeypatch.setattr(resistance, "DENSE", 0)
    off = np.sqrt(find_variances(cells, ground))[exact > 0] / exact[exact > 0] - 1
    assert 0.005 < np.sqrt((off**2).mean()) < 0.05
    assert np.abs(off).max() < 0.2
    assert abs(off.mean()) < 0.02
    assert (find_variances(cells, ground)[exact == 0] == 0).all()


def test_what_hangs_by_a_thread_is_hardly_drawn(monkeypatch):
    """The factors with the largest errors, of which 1/L_kk is the most part."""
    cells, n = draw(), 400
    label = np.arange(n) // 200
    ground = find_ground(cells, np.linspace(1, 0.1, n), label)
    w = cells.w.copy()
    w[-4:] = 0.01
    cells = cells._replace(w=w)
    exact = np.sqrt(find_variances(cells, ground))[[199, 399]]
    monkeypatch.setattr(resistance, "DENSE", 0)
    assert np.sqrt(find_variances(cells, ground))[[199, 399]] == pytest.approx(exact, rel=2e-3)


def test_nothing_ties_what_has_no_information():
    cells = WeightedCells(np.array([0, 2, 4]), np.array([0, 1, 1, 2], np.int32), np.array([2.0, 1.0, 1.0, 0.0]))
    found = find_variances(cells, find_ground(cells, np.array([1.0, 0.5, 0.4, 0.3]), np.zeros(4, np.int64)))
    assert found == pytest.approx([0.0, 1.5, np.nan, np.nan], nan_ok=True)


def test_tied_factors_are_solved_for_as_by_the_dense_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    """V·b = X(XᵀLX)⁻¹Xᵀ·b, factorised or step by step; and variances that are drawn beside those computed."""
    rng = np.random.default_rng(3)
    grid = pa.table({"a": np.repeat(np.arange(6), 5), "b": np.tile(np.arange(5), 6)})
    design = build_design(grid, BiasFormula.add("a", "b"))
    n, items = 30, 80
    factor = np.concatenate([np.sort(rng.choice(n, 4, replace=False)) for _ in range(items)]).astype(np.int32)
    cells = WeightedCells(np.arange(0, 4 * items + 1, 4), factor, rng.gamma(2.0, 1.0, 4 * items))
    ground = find_ground(cells, rng.uniform(0.1, 1, n), np.zeros(n, np.int64), design)
    assert ground.x is not None and ground.tied.all()
    x = ground.x.toarray()
    plain = grounded_laplacian(*cells, np.arange(n, dtype=np.int32), n)
    covariance = x @ np.linalg.inv(x.T @ plain @ x) @ x.T
    b = rng.standard_normal((n, 3))
    difference = np.eye(n) - np.eye(n)[ground.reference]
    exact = np.sqrt(np.diag(difference @ covariance @ difference.T))
    assert np.sqrt(find_variances(cells, ground)) == pytest.approx(exact, abs=1e-9)
    assert make_solver(cells, ground).solve(b, 1e-12) == pytest.approx(covariance @ b, abs=1e-9)
    monkeypatch.setattr(resistance, "DENSE_EFFECTS", 0)
    monkeypatch.setattr(resistance, "DENSE", 0)
    assert make_solver(cells, ground).solve(b, 1e-14) == pytest.approx(covariance @ b, abs=1e-5)
    assert np.sqrt(find_variances(cells, ground)) == pytest.approx(exact, rel=0.2, abs=1e-9)
