"""What a page of a chain can show, by brute force: P(every pattern of clicks), and its derivatives by differences."""

from __future__ import annotations

from itertools import product

import numpy as np


def pattern_probabilities(model: str, page: list[int], items: np.ndarray, shared: np.ndarray) -> list[float]:
    """`items`: attraction and, in a second column, satisfaction. `shared`: γ, or α₁, α₂ and α₃."""
    out = []
    for pattern in product((0, 1), repeat=len(page)):
        reading, stopped = 1.0, 0.0
        for place, clicked in enumerate(pattern):
            a, s = items[page[place]]
            if clicked:
                on = {
                    "sdbn": 1 - s,
                    "dbn": shared[0] * (1 - s) if len(shared) else 0,
                    "ccm": shared[1] * (1 - a) + shared[2] * a if len(shared) == 3 else 0,
                }[model]
                here, reading = reading * a, reading * a * on
                stopped = here - reading
            else:
                on = 1.0 if model == "sdbn" else shared[0]
                here, reading = reading * (1 - a), reading * (1 - a) * on
                stopped += here - reading
        out.append(reading + stopped)
    return out


def null_dimension(model: str, pages: list[list[int]], n_items: int, seed: int) -> int:
    """Parameters less the rank of the Jacobian at a random point. Of the CCM, items have no satisfaction."""
    rng = np.random.default_rng(seed)
    amount = {"sdbn": 0, "dbn": 1, "ccm": 3}[model]
    columns = 1 if model == "ccm" else 2
    point = rng.uniform(0.2, 0.8, n_items * columns + amount)

    def evaluate(x: np.ndarray) -> np.ndarray:
        items = np.full((n_items, 2), 0.5)
        items[:, :columns] = x[: n_items * columns].reshape(n_items, columns)
        shared = x[n_items * columns :]
        return np.array([p for page in pages for p in pattern_probabilities(model, page, items, shared)])

    step = 1e-5
    slopes = [
        (evaluate(point + step * unit) - evaluate(point - step * unit)) / (2 * step) for unit in np.eye(len(point))
    ]
    return len(point) - int(np.linalg.matrix_rank(np.array(slopes), tol=1e-7))
