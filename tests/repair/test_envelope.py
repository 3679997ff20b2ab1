"""The cheapest line of another colour against looking at every line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.repair.envelope import find_cheapest_of_another


@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 9), st.booleans(), st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_lowest_of_all_lines_of_another_colour(lines, queries, colours, coarse, seed):
    """Lines near a common tangent curve, so that many of each colour are lowest somewhere."""
    rng = np.random.default_rng(seed)
    v = rng.integers(1, 6, lines) / 2.0 if coarse else rng.uniform(0.1, 3, lines)
    u = np.round(4 / v, 1) if coarse else 4 / v + rng.uniform(0, 0.05, lines)
    colour, own = rng.integers(0, colours, lines), rng.integers(0, colours, queries)
    b = rng.integers(1, 9, queries).astype(float) if coarse else rng.uniform(0.2, 20, queries)
    winner = find_cheapest_of_another(u, v, colour, b, own, colours)
    for x, mine, line in zip(b, own, winner, strict=True):
        others = (u + v * x)[colour != mine]
        assert (line < 0) == (len(others) == 0)
        if line >= 0:
            assert colour[line] != mine
            assert u[line] + v[line] * x == pytest.approx(others.min(), rel=1e-12)
