"""MCC against numpy's corrcoef; click MSE against plain sums."""

from __future__ import annotations

import numpy as np
import pytest

from elute.auditing.recovery import click_mse, mcc
from elute.errors import EluteError


def test_mcc_is_pearsons_correlation():
    rng = np.random.default_rng(0)
    x = rng.random(1_000)
    y = x + rng.random(1_000)
    assert mcc(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1], rel=1e-12)
    assert mcc(x, 3e-200 * x) == pytest.approx(1)
    assert mcc(x, 2 - x) == pytest.approx(-1)


def test_a_constant_correlates_with_nothing():
    assert np.isnan(mcc([1, 2, 3], [0.1, 0.1, 0.1]))


def test_click_mse_by_cell_and_by_impression():
    assert click_mse([0.5, 0.1], [0.4, 0.3]) == pytest.approx((0.01 + 0.04) / 2)
    assert click_mse([0.5, 0.1], [0.4, 0.3], [3, 1]) == pytest.approx((3 * 0.01 + 0.04) / 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mcc([1, 2], [1]), "equally long"),
        (lambda: mcc([1, 2], [1, np.nan]), "finite"),
        (lambda: click_mse([1, 2], [1, 2], [0, 0]), "not all 0"),
    ],
)
def test_what_cannot_be_compared_is_named(call, message):
    with pytest.raises(EluteError, match=message):
        call()
