"""A budget for many factors: in rounds, each to many candidates at once, by draws.

A round solves for draws of log propensities, from which come variances, hence the gradient a of the objective, and the
resistances R of all candidates; and for Y = V·diag(√a)·Ξ with random signs Ξ, whose contrasts squared are the gains A
on average (`supply`). Where a candidate works on one large error, as most good ones do, that is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.estimate.solve.resistance import AnySolver, Ground, draw_noise, estimate_variances, make_solver
from elute.repair.spending.objective import POWER, Objective, compute_gradient
from elute.repair.spending.share import Offers, share_out, top_up
from elute.repair.spending.supply import Supply, measure_contrasts

Floats = NDArray[np.float64]

ROUNDS = 10
_FIRST, _LAST = 2.0, 16.0
"""The power of the norm that stands for the largest error, in the first round and in the last: to begin with a high one
would be to spend a round on the few factors that are worst before it."""

_DRAWS = 16
_LEFT = 1e-3
"""Share of their energy that solutions may lack; candidates come out as good with a tenth of it."""


def spend_on_many(
    supply: Supply, ground: Ground, dispersion: Floats, budget: int, objective: Objective, rng: np.random.Generator
) -> None:
    """Give out `budget`, as far as candidates can take it."""
    powers = np.linspace(_FIRST, _LAST, ROUNDS) if objective == "max" else np.full(ROUNDS, POWER[objective])
    all_given = make_solver(supply.imagine_all(budget), ground)
    floor, _ = _estimate(all_given, ground, rng)
    remaining = budget
    for done, power in enumerate(powers):
        cells = supply.get_cells()
        solver = make_solver(cells, ground, done)
        variance, draws = _estimate(solver, ground, rng)
        gradient = dispersion * compute_gradient(dispersion * variance, dispersion * floor, power)
        columns = solver.solve(_draw_contrasts(gradient, ground, rng), _LEFT)
        which, total = supply.list_open()
        pairs = supply.node[which], supply.target[which]
        gain = measure_contrasts(*cells, *pairs, columns)
        spread = measure_contrasts(*cells, *pairs, draws) / _DRAWS
        offers = Offers(supply.target[which], gain, 1 / total + spread, supply.odds[which], supply.left[which])
        part = -(-remaining // (ROUNDS - done))
        shared = share_out(offers, part, power)
        if done == ROUNDS - 1:
            shared += top_up(offers.worth, offers.left - shared, remaining - int(shared.sum()))
        supply.give(which, shared)
        remaining -= int(shared.sum())


def _estimate(solver: AnySolver, ground: Ground, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Variances against references, and the draws that they come from."""
    noise = draw_noise(solver, _DRAWS, rng)
    draws = solver.solve(noise, _LEFT)
    return estimate_variances(solver, ground, noise, draws)[0], draws


def _draw_contrasts(gradient: Floats, ground: Ground, rng: np.random.Generator) -> Floats:
    """diag(√a)·Ξ, each factor against its reference."""
    out = np.sqrt(gradient / _DRAWS)[:, None] * (rng.integers(2, size=(len(gradient), _DRAWS)) * 2.0 - 1.0)
    np.subtract.at(out, ground.reference, out.copy())
    return np.asarray(out)
