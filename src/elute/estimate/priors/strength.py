"""How strong the smooth prior should be: as the clicks themselves say, by held-out likelihood.

Every impression goes to one of two halves by a fair coin. Propensities fitted to one half, with the prior,
are scored on the other: its likelihood at those propensities and the best relevance for them, or what else was
maximised. (Relevance is refitted because an item without clicks in one half has nothing to say of the other.)
λ is a precision of the prior, not of the data, so the best one for half a log is the best one for the log.

The search climbs from λ = 10 along a grid of half decades, one term at a time, until no neighbour is better;
then goes back to the weakest λ within 2 nats of the best. A smaller difference may be chance (it is half the 95%
point of χ² with one degree of freedom), and too strong a prior does worse than too weak a one: on curves that
it does not fit, errors came out larger and their bars far too small.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elute.cells.counts import Amounts, Cells
from elute.estimate.priors.smooth import SmoothPrior
from elute.estimate.solve import boundary
from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.interior import BARRIER, Maximum
from elute.estimate.solve.likelihood import log_likelihood
from elute.estimate.solve.problem import Codes, Floats, total_by_item
from elute.estimate.solve.profile import fit_items
from elute.kernels.jit import jit
from elute.progress import Progress, silent

FIRST, LOWEST, HIGHEST = 2, -2, 8
"""Powers of √10: λ is searched from 0.1 to 10,000."""

CHANCE = 2.0
"""Nats by which a weaker prior may score less than the best."""

_TOLERANCE = 1e-3
"""In standard errors from the maximum: its square is what a score is off by."""


class Maximise(Protocol):
    """`interior.maximise`, or one like it."""

    def __call__(
        self,
        cells: Cells,
        o: Floats,
        tolerance: float,
        max_iter: int,
        progress: Progress,
        prior: csr_array | None = None,
        space: EffectSpace | None = None,
    ) -> Maximum: ...


class Criterion(NamedTuple):
    """What a fit maximises, and the same by propensities alone."""

    maximise: Maximise
    score: Callable[[Cells, Floats], float]

    def within(self, space: EffectSpace) -> Criterion:
        """Among propensities that a formula allows."""
        return Criterion(partial(self.maximise, space=space), self.score)


def profile_score(cells: Cells, o: Floats) -> float:
    """The likelihood at propensities `o` and the best relevance for them."""
    return log_likelihood(*cells, fit_items(*cells, o, BARRIER), o)


class _Fold(NamedTuple):
    fitted: Cells
    held_out: Cells


def choose_strengths(
    cells: Cells, prior: SmoothPrior, start: Floats, by: Criterion, seed: int, max_iter: int, progress: Progress
) -> dict[str, float]:
    """The strength of every term; `start`: propensities, and latent effects as their exponentials."""
    halves = split_halves(cells, np.random.default_rng(seed))
    folds = [_Fold(halves[0], halves[1]), _Fold(halves[1], halves[0])]
    latest = [start, start]
    scores: dict[tuple[int, ...], float] = {}

    def score(powers: tuple[int, ...]) -> float:
        if powers not in scores:
            progress("choosing the prior's strength", len(scores) + 1, 0)
            root = prior.root(_to_strengths(prior, powers))
            precision = csr_array(root.T @ root)
            total = 0.0
            for k, fold in enumerate(folds):
                found = by.maximise(fold.fitted, latest[k], _TOLERANCE, max_iter, silent, precision)
                latest[k] = np.exp(found.log_o)
                total += by.score(fold.held_out, latest[k])
            scores[powers] = total
        return scores[powers]

    best = (FIRST,) * len(prior.terms)
    moved = True
    while moved:
        moved = False
        for term, step in product(range(len(best)), (1, -1)):
            while LOWEST <= best[term] + step <= HIGHEST:
                tried = (*best[:term], best[term] + step, *best[term + 1 :])
                if score(tried) <= score(best):
                    break
                best, moved = tried, True
    enough = score(best) - CHANCE
    for term in range(len(best)):
        while best[term] > LOWEST:
            weaker = (*best[:term], best[term] - 1, *best[term + 1 :])
            if score(weaker) < enough:
                break
            best = weaker
    return _to_strengths(prior, best)


def _to_strengths(prior: SmoothPrior, powers: tuple[int, ...]) -> dict[str, float]:
    return {name: float(10.0 ** (power / 2)) for name, power in zip(prior.terms, powers, strict=True)}


def split_halves(cells: Cells, rng: np.random.Generator) -> tuple[Cells, Cells]:
    """Every impression to one of two halves; of each, what tells propensities apart."""
    clicks = cells.clicks.astype(np.int64)
    skips = cells.impressions.astype(np.int64) - clicks
    clicked, skipped = rng.binomial(clicks, 0.5), rng.binomial(skips, 0.5)

    def build_half(of_clicks: NDArray[np.int64], of_skips: NDArray[np.int64]) -> Cells:
        amounts = (of_clicks + of_skips).astype(np.uint64), of_clicks.astype(np.uint64)
        return keep_clicked_items(drop_unshown(Cells(cells.offsets, cells.factor, *amounts)))

    return build_half(clicked, skipped), build_half(clicks - clicked, skips - skipped)


def keep_clicked_items(cells: Cells) -> Cells:
    """Only items with a click and two cells: any propensities fit the others. What `boundary.keep_informative` would
    leave out besides stays: a prior bounds ratios that clicks do not."""
    of_item = np.where(total_by_item(cells.offsets, cells.clicks) > 0, 0, boundary.NOWHERE).astype(np.int32)
    of_factor = np.zeros(int(cells.factor.max(initial=0)) + 1, np.int32)
    return boundary.keep_informative(cells, of_factor, of_item)


def drop_unshown(cells: Cells) -> Cells:
    """Without cells that have no impressions; items that lose all of theirs stay, with none."""
    offsets, keep = _index_shown(cells.offsets, cells.impressions)
    return Cells(offsets, cells.factor[keep], cells.impressions[keep], cells.clicks[keep])


@jit
def _index_shown(offsets: NDArray[np.int64], impressions: Amounts) -> tuple[NDArray[np.int64], Codes]:
    out = np.empty_like(offsets)
    keep = np.empty(impressions.shape[0], np.int32)
    n = 0
    out[0] = 0
    for item in range(offsets.shape[0] - 1):
        for cell in range(offsets[item], offsets[item + 1]):
            if impressions[cell] > 0:
                keep[n] = cell
                n += 1
        out[item + 1] = n
    return out, keep[:n]
