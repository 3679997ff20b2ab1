"""A budget for many factors: in rounds, each to many candidates at once, by draws.

A round solves for draws of log propensities, from which come variances, hence the gradient a of the objective, and the
resistances R of all candidates; and for Y = V·diag(√a)·Ξ with random signs Ξ, whose contrasts squared are the gains A on
average (`supply`). Where a candidate works on one large error, as most good ones do, that is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.estimate.solve.resistance import Ground, draw
from elute.kernels.elimination import Solver
from elute.repair.spending.objective import Objective, compute_gradient
from elute.repair.spending.share import share_out, top_up
from elute.repair.spending.supply import Supply, measure_contrasts

Floats = NDArray[np.float64]

ROUNDS = 10
_DRAWS = 16
_LEFT = 1.0
"""Energy that draws may lack: a standard error, over all factors together."""

_GRADIENT_LEFT = 1e-4


def spend_on_many(
    supply: Supply, ground: Ground, dispersion: Floats, budget: int, objective: Objective, rng: np.random.Generator
) -> None:
    """Give out `budget`, as far as candidates can take it."""
    n, remaining = len(ground.tied), budget
    all_given = Solver(*supply.imagine_all(budget), n)
    floor = dispersion * draw(all_given, ground, _DRAWS, rng, _LEFT).variance
    for rounds in range(ROUNDS, 0, -1):
        round_budget, cells = -(-remaining // rounds), supply.get_cells()
        solver = Solver(*cells, n, rounds)
        drawn = draw(solver, ground, _DRAWS, rng, _LEFT)
        gradient = dispersion * compute_gradient(dispersion * drawn.variance, floor, objective)
        signs = np.sqrt(gradient / _DRAWS)[:, None] * (rng.integers(2, size=(n, _DRAWS)) * 2.0 - 1.0)
        np.subtract.at(signs, ground.reference, signs.copy())
        columns = solver.solve(signs, _GRADIENT_LEFT)
        which, total = supply.list_open()
        pairs = supply.node[which], supply.target[which]
        gain = measure_contrasts(*cells, *pairs, columns)
        resistance = 1 / total + measure_contrasts(*cells, *pairs, drawn.draws) / _DRAWS
        odds, left = supply.odds[which], supply.left[which]
        shared = share_out(supply.target[which], gain, resistance, odds, left, round_budget)
        if rounds == 1:
            shared += top_up(odds * gain, left - shared, round_budget - int(shared.sum()))
        if not shared.any():
            continue
        supply.give(which, shared)
        remaining -= int(shared.sum())
