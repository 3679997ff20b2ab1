"""Drawing the clicks of users who read result by result, and of users who choose.

One file, because numba's cache looks at a kernel's own file only: a change to a function called from another file
would leave stale machine code behind.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.simulation.users.base import Clicks, Floats


@jit
def _read_on(uniform: float, attraction: float, skip: float, onward: float) -> tuple[bool, bool]:
    """(clicked, goes on) from one uniform, whose range the four outcomes share out."""
    if uniform < attraction:
        return True, uniform < attraction * onward
    return False, uniform < attraction + (1.0 - attraction) * skip


@jit
def read_down(
    rng: np.random.Generator,
    relevance: Floats,
    length: NDArray[np.int64],
    skip: float,
    after_click: Floats,
    satisfaction: Floats,
    share: float,
) -> Clicks:
    """One uniform a result read; none for what is below."""
    out = np.zeros(relevance.shape, dtype=np.uint8)
    for page in range(relevance.shape[0]):
        for k in range(length[page]):
            onward = after_click[k] * (1.0 - share * satisfaction[page, k])
            click, on = _read_on(rng.random(), relevance[page, k], skip, onward)
            out[page, k] = click
            if not on:
                break
    return out


@jit
def read_either_way(
    rng: np.random.Generator,
    relevance: Floats,
    length: NDArray[np.int64],
    top_down: float,
    continuation: float,
    satisfaction: Floats,
    share: float,
) -> Clicks:
    """One uniform a page for the direction, then one a result read."""
    out = np.zeros(relevance.shape, dtype=np.uint8)
    for page in range(relevance.shape[0]):
        down = rng.random() < top_down
        for step in range(length[page]):
            k = step if down else length[page] - 1 - step
            onward = continuation * (1.0 - share * satisfaction[page, k])
            click, on = _read_on(rng.random(), relevance[page, k], continuation, onward)
            out[page, k] = click
            if not on:
                break
    return out


@jit
def _choose(uniform: float, weights: Floats, amount: int) -> int:
    """One of the first `amount` places in proportion to its weight; -1 where all weights are 0."""
    total = 0.0
    for k in range(amount):
        total += weights[k]
    chosen = -1
    below = 0.0
    for k in range(amount):
        if weights[k] > 0.0:
            chosen = k
            below += weights[k]
            if uniform * total < below:
                break
    return chosen


@jit
def choose_one(rng: np.random.Generator, relevance: Floats, length: NDArray[np.int64]) -> Clicks:
    """One uniform a page."""
    out = np.zeros(relevance.shape, dtype=np.uint8)
    for page in range(relevance.shape[0]):
        k = _choose(rng.random(), relevance[page], length[page])
        if k >= 0:
            out[page, k] = 1
    return out


@jit
def read_one_row(
    rng: np.random.Generator,
    relevance: Floats,
    length: NDArray[np.int64],
    row_bias: Floats,
    row_length: int,
    continuation: float,
    satisfaction: Floats,
    share: float,
) -> Clicks:
    """One uniform a page for the row, then one a result read."""
    out = np.zeros(relevance.shape, dtype=np.uint8)
    weights = np.empty(row_bias.shape[0])
    for page in range(relevance.shape[0]):
        rows = (length[page] + row_length - 1) // row_length
        for row in range(rows):
            end = min((row + 1) * row_length, length[page])
            weights[row] = row_bias[row] * relevance[page, row * row_length : end].mean()
        row = max(_choose(rng.random(), weights, rows), 0)
        for k in range(row * row_length, min((row + 1) * row_length, length[page])):
            onward = continuation * (1.0 - share * satisfaction[page, k])
            click, on = _read_on(rng.random(), relevance[page, k], continuation, onward)
            out[page, k] = click
            if not on:
                break
    return out
