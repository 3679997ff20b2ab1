"""The position-based model where a formula ties its propensities: effects, their errors and their table."""

from __future__ import annotations

import numpy as np
from scipy.sparse import block_diag, csr_array, vstack

from elute.errors import EluteError
from elute.estimate.models.found import Factors, PriorFit
from elute.estimate.priors.smooth import SmoothPrior, build_effect_prior
from elute.estimate.priors.strength import Criterion, choose_strengths
from elute.estimate.solve import boundary
from elute.estimate.solve.effect_boundary import find_effect_parts
from elute.estimate.solve.effect_errors import (
    DENSE,
    EffectErrors,
    exact_variances,
    find_effect_covariance,
    sample_variances,
    take_root,
    tie,
)
from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.problem import Floats, Problem, total_by_factor, unite_equal
from elute.estimate.solve.standard_errors import Variances, find_informed_factor, masses
from elute.identify.effects.design import EffectDesign
from elute.identify.effects.span import Span
from elute.identify.information import find_references
from elute.progress import Progress


def fit_tied(
    problem: Problem,
    by: Criterion,
    start: Floats | None,
    strengths: dict[str, float] | None,
    seed: int,
    tolerance: float,
    max_iter: int,
    progress: Progress,
) -> PriorFit:
    """The maximum over effects. `start`: propensities; `strengths`: of smooth terms, chosen where not given."""
    design = require_design(problem)
    prior, follow = _find_prior(design)
    bounded = design if prior is None else design.leave_out(design.smooth)
    of_factor, of_item, span = find_effect_parts(problem.cells, bounded)
    space = extend_space(design, span, follow)
    united, stands = unite_equal(problem)
    useful = boundary.keep_informative(united, of_factor, of_item[stands])
    log_o = np.zeros(space.x.shape[0])
    if start is not None:
        log_o = space.project(np.concatenate((np.log(start), log_o[len(start) :])))
    root = precision = None
    if prior is not None:
        within, first = by.within(space), np.exp(log_o)
        strengths = strengths or choose_strengths(useful, prior, first, within, seed, max_iter, progress)
        root = prior.root(strengths)
        precision = csr_array(root.T @ root)
    found = by.maximise(useful, np.exp(log_o), tolerance, max_iter, progress, precision, space)
    o = np.where(of_factor == boundary.NOWHERE, 0.0, np.exp(found.log_o[: problem.n_factors]))
    clicks = total_by_factor(problem.cells.factor, problem.cells.clicks, problem.n_factors)
    main = boundary.find_main_parts(clicks, problem.component, of_factor)
    apart = ~np.isin(of_factor, [boundary.NOWHERE, *main])
    reasons = [found.reason] if found.reason else []
    if apart.any():
        reasons.append(boundary.describe_apart(apart, problem.name_factors))
    cells = boundary.restrict(problem.cells, of_factor, of_item)
    lost = np.isin(of_item, of_factor[apart])
    fitted = Factors(o, cells, apart, lost, found.iterations, "; ".join(reasons))
    return PriorFit(fitted, None if prior is None else strengths, root)


def require_design(problem: Problem) -> EffectDesign:
    """The effects of a problem that a formula ties."""
    if problem.design is None:
        raise EluteError("`bias=` is no formula: there are no effects to fit")
    return problem.design


def _find_prior(design: EffectDesign) -> tuple[SmoothPrior | None, csr_array | None]:
    return build_effect_prior(design) if design.smooth.any() else (None, None)


def extend_space(design: EffectDesign, span: Span, follow: csr_array | None) -> EffectSpace:
    """Effects that are not free, and all that a prior holds together; `follow`: how its latent effects follow."""
    if follow is None:
        return EffectSpace.of(design, span)
    x = csr_array(vstack((block_diag((design.matrix, csr_array((0, follow.shape[1] - design.size)))), follow)))
    kept = np.flatnonzero(np.concatenate((~span.free | design.smooth, np.ones(follow.shape[1] - design.size, bool))))
    return EffectSpace(csr_array(x[:, kept]), kept)


def find_tied_errors(
    problem: Problem, propensity: Floats, w: Floats, own: Floats, root: csr_array | None
) -> tuple[Variances, EffectErrors]:
    """As `standard_errors.variances`, NaN where the data do not tie a factor to its reference; and of effects."""
    design, (offsets, factor, *_) = require_design(problem), problem.cells
    reference = find_references(propensity, problem.component)
    span, with_reference = tie(design, offsets, factor, w, reference)
    tied = with_reference & (propensity > 0)
    space = extend_space(design, span, _find_prior(design)[1])
    if len(space.kept) <= DENSE:
        covariance = find_effect_covariance(offsets, factor, w, space, root)
        of_factors, of_items = exact_variances(offsets, factor, own, reference, space, covariance)
        of_effects = take_root(covariance)
    else:
        of_factors, of_items, of_effects = sample_variances(offsets, factor, w, own, reference, space, root)
    where = find_informed_factor(offsets, factor, own)
    known = (where >= 0) & tied[where]
    mass = np.where(known, masses(offsets, own), np.nan)
    found = Variances(np.where(tied, of_factors, np.nan), np.where(known, of_items, np.nan), mass)
    return found, EffectErrors(span, space, of_effects)
