"""What a fit of the position-based model maximises, from scratch or from the fit of nearly the same log."""

from __future__ import annotations

from functools import partial

from scipy.sparse import csr_array

from elute.cells.counts import Cells
from elute.estimate.priors.strength import Criterion, profile_score
from elute.estimate.solve import conditional, interior
from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.interior import BARRIER, Maximum
from elute.estimate.solve.problem import Floats
from elute.progress import Progress

NEAR = 1e-5
"""Standard errors within which a warm fit takes its last step: that leaves less than 1e-6."""


def choose_criterion(by_item_clicks: bool, warm: bool) -> Criterion:
    """The likelihood, or that given every item's clicks. `warm`: to where it no longer matters what the search began
    with, in as few steps as a good beginning allows."""
    if by_item_clicks:
        return Criterion(partial(conditional.maximise, finish=warm), conditional.score)
    return Criterion(_maximise_warm if warm else interior.maximise, profile_score)


def _maximise_warm(
    cells: Cells,
    o: Floats,
    tolerance: float,
    max_iter: int,
    progress: Progress,
    prior: csr_array | None = None,
    space: EffectSpace | None = None,
) -> Maximum:
    """With the last barrier at once; from further off than that bears, as any other fit."""
    near, rest = min(tolerance, NEAR), (max_iter, progress, prior, space)
    found = interior.maximise(cells, o, near, *rest, finish=True, first_barrier=BARRIER)
    if not found.reason:
        return found
    again = interior.maximise(cells, o, near, *rest, finish=True)
    return again._replace(iterations=found.iterations + again.iterations)
