"""The position-based model where every factor has a propensity of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from elute.cells.counts import Cells
from elute.estimate.models.found import Factors, PriorFit
from elute.estimate.priors.smooth import SmoothPrior
from elute.estimate.priors.strength import Criterion, choose_strengths, keep_clicked_items
from elute.estimate.solve import boundary
from elute.estimate.solve.problem import Floats, Problem, total_by_factor, unite_equal
from elute.progress import Progress


def fit_untied(
    problem: Problem,
    by: Criterion,
    choose_start: Callable[[Problem, Cells], Floats],
    tolerance: float,
    max_iter: int,
    progress: Progress,
) -> Factors:
    """The maximum within each part in which it exists; factors and items of lesser parts are marked."""
    of_factor, of_item = boundary.find_parts(problem.cells, problem.n_factors, problem.component)
    cells = boundary.restrict(problem.cells, of_factor, of_item)
    united, stands = unite_equal(problem)
    useful = boundary.keep_informative(united, of_factor, of_item[stands])
    first = choose_start(problem, useful)
    found = by.maximise(useful, first, tolerance, max_iter, progress, None)
    o = np.where(of_factor == boundary.NOWHERE, 0.0, np.exp(found.log_o))
    reasons = [found.reason] if found.reason else []
    clicks = total_by_factor(problem.cells.factor, problem.cells.clicks, problem.n_factors)
    apart = ~np.isin(of_factor, [boundary.NOWHERE, *boundary.find_main_parts(clicks, problem.component, of_factor)])
    if apart.any():
        reasons.append(boundary.describe_apart(apart, problem.name_factors))
    lost = np.isin(of_item, of_factor[apart])
    return Factors(o, cells, apart, lost, found.iterations, "; ".join(reasons))


def fit_smoothed(
    problem: Problem,
    prior: SmoothPrior,
    by: Criterion,
    choose_start: Callable[[Problem, Cells], Floats],
    strengths: dict[str, float] | None,
    seed: int,
    tolerance: float,
    max_iter: int,
    progress: Progress,
) -> PriorFit:
    """With a prior on log propensities, which leaves none without an estimate. `strengths`: chosen where not given."""
    cells = keep_clicked_items(problem.cells)
    o = choose_start(problem, cells)
    o = np.concatenate((o / np.exp(np.log(o).mean()), np.ones(prior.size - problem.n_factors)))
    if strengths is None:
        strengths = choose_strengths(cells, prior, o, by, seed, max_iter, progress)
    root = prior.root(strengths)
    found = by.maximise(cells, o, tolerance, max_iter, progress, csr_array(root.T @ root))
    none = np.zeros(problem.n_factors, np.bool_), np.zeros(problem.n_items, np.bool_)
    factors = Factors(np.exp(found.log_o[: problem.n_factors]), problem.cells, *none, found.iterations, found.reason)
    return PriorFit(factors, strengths, root)
