"""Charts of propensities against the last position, with the truth beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from elute.reporting.charts import specs
from elute.simulation.grades import PROPENSITIES
from elute_reproduce.upe.experiment.grid import Grid
from elute_reproduce.upe.experiment.store import TrainingRun

_LEAST, _MOST = 0.05, 100.0
"""Ratios shown; a learner that turns the curve over may leave them."""
Row = dict[str, Any]


def draw_curves(grid: Grid, paradigm: str, learners: Sequence[str]) -> specs.Spec:
    """Propensities by position after the last step: median over seeds, and their range."""
    truth = np.array(PROPENSITIES) / PROPENSITIES[-1]
    rows = [_make_row("position", k + 1, "truth", np.array([value])) for k, value in enumerate(truth)]
    for name in learners:
        last = np.array([run.ratios[-1] for run in grid[paradigm, name]])
        rows += [_make_row("position", k + 1, name, column) for k, column in enumerate(last.T)]
    return _draw_lines(rows, "position")


def draw_learning(grid: Grid, paradigm: str, learners: Sequence[str]) -> specs.Spec:
    """The propensity of position 1 as training goes on."""
    steps = grid[paradigm, learners[0]][0].steps
    truth = PROPENSITIES[0] / PROPENSITIES[-1]
    rows = [_make_row("step", step, "truth", np.array([truth])) for step in steps]
    for name in learners:
        rows += _list_steps(grid[paradigm, name], name, 0)
    return _draw_lines(rows, "step")


def draw_by_position(runs: Sequence[TrainingRun], positions: Sequence[int]) -> specs.Spec:
    """Propensities of some positions as training goes on."""
    return _draw_lines([row for k in positions for row in _list_steps(runs, f"position {k}", k - 1)], "step")


def draw_ranking(grid: Grid, paradigm: str, learners: Sequence[str]) -> specs.Spec:
    """nDCG@10 on the test queries as training goes on."""
    rows = [
        _make_row("step", step, name, np.array([run.test[at] for run in grid[paradigm, name]]), "nDCG@10")
        for name in learners
        for at, step in enumerate(grid[paradigm, name][0].steps)
    ]
    return specs.lines(rows, x="step", y="nDCG@10", series="learner", low="low", high="high", size=(300, 240))


def _list_steps(runs: Sequence[TrainingRun], series: str, position: int) -> list[Row]:
    values = np.array([run.ratios[:, position] for run in runs])
    return [_make_row("step", step, series, column) for step, column in zip(runs[0].steps, values.T, strict=True)]


_RATIO = "propensity / that of the last position"


def _make_row(x: str, at: int, series: str, values: np.ndarray, y: str = _RATIO) -> Row:
    """A point and its range; ratios are kept within what is shown."""
    low, high = (_LEAST, _MOST) if y == _RATIO else (-np.inf, np.inf)
    kept = np.clip(values, low, high)
    return {
        x: at,
        y: float(np.median(kept)),
        "learner": series,
        "low": float(kept.min()),
        "high": float(kept.max()),
    }


def _draw_lines(rows: list[Row], x: str) -> specs.Spec:
    return specs.lines(
        rows,
        x=x,
        y=_RATIO,
        series="learner",
        low="low",
        high="high",
        log_y=True,
        domain=(_LEAST, _MOST),
        size=(300, 240),
    )
