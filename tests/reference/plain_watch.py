"""Figures of periods and their predictions, written out: one cell, one period at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Row(NamedTuple):
    """A cell of a period."""

    period: int
    item: int
    factor: int
    impressions: int
    clicks: int


def score(rows: Sequence[Row], o: Floats, periods: int) -> tuple[Floats, Floats, Floats]:
    """Clicks, those expected given each item's clicks in all, and the covariance of these if clicks of an item fall on
    its cells as a multinomial: by period and factor."""
    n = len(o)
    observed, expected, covariance = np.zeros((periods, n)), np.zeros((periods, n)), np.zeros((periods, n, n))
    for item in {row.item for row in rows}:
        own = [row for row in rows if row.item == item]
        total = sum(row.clicks for row in own)
        reach = sum(row.impressions * o[row.factor] for row in own)
        share = np.zeros((periods, n))
        for row in own:
            share[row.period, row.factor] += row.impressions * o[row.factor] / reach
            observed[row.period, row.factor] += row.clicks
        expected += total * share
        for period in range(periods):
            p = share[period]
            covariance[period] += total * (np.diag(p) - np.outer(p, p))
    return observed, expected, covariance


def count_links(rows: Sequence[Row], periods: int, factors: int) -> tuple[Floats, Floats]:
    """Items shown twice or more in a period under each factor, and those of them that were under another too."""
    movable, moved = np.zeros((periods, factors)), np.zeros((periods, factors))
    seen: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows:
        seen[row.period, row.item].append(row)
    for (period, _), own in seen.items():
        if sum(row.impressions for row in own) < 2:
            continue
        for factor in {row.factor for row in own}:
            movable[period, factor] += 1
            moved[period, factor] += len({row.factor for row in own}) > 1
    return movable, moved


class Predicted(NamedTuple):
    expected: float
    deviation: float
    freedom: int


def predict(y: Floats, s: Floats, x: Floats, s_new: float, x_new: Floats) -> Predicted:
    """A meta-regression with moments (DerSimonian and Laird), and the prediction of one more study."""
    n, p = x.shape
    w = np.diag(1 / s)
    hat = w - w @ x @ np.linalg.inv(x.T @ w @ x) @ x.T @ w
    tau2 = max(0.0, (y @ hat @ y - (n - p)) / np.trace(hat))
    w = np.diag(1 / (s + tau2))
    cross = np.linalg.inv(x.T @ w @ x)
    beta = cross @ x.T @ w @ y
    left = y - x @ beta
    scale = max(1.0, left @ w @ left / (n - p))
    return Predicted(float(x_new @ beta), float(np.sqrt(scale * (s_new + tau2 + x_new @ cross @ x_new))), n - p)
