"""The clicks behind a verdict, as points beside lines (drawn by `elute.reporting.sections.assumptions`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elute.auditing.assumptions.finding import Panel
from elute.cells.counts import Cells
from elute.estimate.solve.problem import Floats

SHOWN = 3
"""Panels of a finding: the worst."""

MOST_POINTS = 100
"""Items of a panel: those with the most impressions under both factors."""


def select_shared_items(cells: Cells, a: int, b: int) -> tuple[Floats, Floats]:
    """Impressions and clicks of the items that two factors share, by factor and item."""
    n, c = np.zeros((2, len(cells.offsets) - 1)), np.zeros((2, len(cells.offsets) - 1))
    item = np.repeat(np.arange(n.shape[1]), np.diff(cells.offsets))
    for row, factor in enumerate((a, b)):
        at = cells.factor == factor
        n[row, item[at]], c[row, item[at]] = cells.impressions[at], cells.clicks[at]
    both = (n > 0).all(axis=0)
    return n[:, both], c[:, both]


def draw_two_factors(
    cells: Cells, a: int, b: int, names: tuple[str, str], lines: Mapping[str, tuple[float, float]]
) -> Panel:
    """Click rates of the items that two factors share: under `a` upwards, under `b` across. `lines`: of a's rate on
    b's."""
    n, c = select_shared_items(cells, a, b)
    kept = np.argsort(-n.min(axis=0), kind="stable")[:MOST_POINTS]
    n, c = n[:, kept], c[:, kept]
    rate, se = c / n, np.sqrt(variance(n, c))
    columns = (rate[1], rate[0], se[1], se[0], n.sum(axis=0))
    points = [
        {"x": x, "y": y, "x_se": dx, "y_se": dy, "impressions": total}
        for x, y, dx, dy, total in zip(*(column.tolist() for column in columns), strict=True)
    ]
    across, up = (f"click rate under {name}" for name in (names[1], names[0]))
    return Panel(f"{names[0]} against {names[1]}", across, up, points, lines)


def variance(n: Floats, c: Floats) -> Floats:
    """Of click rates; one click and one impression without one more are counted, so that none is 0."""
    p = (c + 1) / (n + 2)
    return np.asarray(p * (1 - p) / n)
