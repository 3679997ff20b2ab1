"""Is a budget's forecast kept? Plans are made from a log, clicks drawn from the truth, the model fitted again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Cells, Counts
from elute.estimate.models.pbm import PBM
from elute.estimate.priors.gamma import fit_population, know_items
from elute.kernels.merge import add_cells
from elute.repair.allowed import FittedCells
from elute.repair.budget import Spending, spend
from elute.repair.candidates import Candidates
from elute.repair.swap import find_minimum_swaps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

View = Literal["truth", "own clicks", "typical"]
"""What a planner takes for the relevance of items: what it is; their posterior means; the mean of all of them."""


class BudgetWorld(NamedTuple):
    """`factors` in two parts of which no item is seen in both; `items` under `seen` of their part, `shown` times each
    on average. `most`: impressions that a pair can take."""

    factors: int
    items: int
    seen: int
    shown: float
    budget: int
    most: int


DENSE = BudgetWorld(8, 60, 3, 150.0, 6_000, 2_000)
SPARSE = BudgetWorld(8, 1_200, 2, 2.5, 3_000, 40)
"""Most items have no click."""


class Kept(NamedTuple):
    """Root mean squares over plans: of the largest standard error foretold, and of all (`typical`). `spread`: what the
    same factors' standard deviations are over clicks drawn anew, for the log and for what was shown. `missed`: what
    fits to the log as it was, with clicks on what was shown, are off. `biased`: the mean of that, in standard errors
    foretold. `unfitted`: the share of fits without a finite ratio."""

    largest: float
    typical: float
    spread_largest: float
    spread_typical: float
    missed_largest: float
    missed_typical: float
    biased: float
    unfitted: float


class Carried(NamedTuple):
    """One plan, by factor but the reference: standard errors foretold, standard deviations over clicks drawn anew, and
    what fits to the log as it was are off (one row each time it was carried out)."""

    foretold: Floats
    spread: Floats
    missed: Floats


def keep_forecast(world: BudgetWorld, view: View, redraws: int, number: int, seed: int = 0) -> Carried:
    """Make a plan from the log of this number, and carry it out `redraws` times."""
    rng = np.random.default_rng([seed, number])
    r, o, cells, log = _draw_log(world, rng)
    plan = _plan(world, cells._replace(relevance=_view(view, r, o, cells, log)), number)
    reference = int(np.flatnonzero(plan.se_after == 0)[0])
    truth = np.log(o / o[reference])
    anew, kept = [], []
    for _ in range(redraws):
        fresh = rng.binomial(plan.impressions, r[plan.item] * o[plan.target])
        again = rng.binomial(cells.impressions, r[cells.item] * o[cells.factor])
        anew.append(_fit(world, cells, again, plan, fresh, reference) - truth)
        kept.append(_fit(world, cells, log, plan, fresh, reference) - truth)
    others = np.arange(world.factors) != reference
    return Carried(plan.se_after[others], np.nanstd(anew, axis=0, ddof=1)[others], np.array(kept)[:, others])


def sum_forecasts(plans: Sequence[Carried]) -> Kept:
    """Over all plans of a world."""
    said, came, off = (np.array(figures) for figures in zip(*plans, strict=True))
    squares = np.nanmean(off**2, axis=1)
    worst = np.arange(len(plans)), said.argmax(axis=1)
    return Kept(
        largest=_root_mean(said[worst] ** 2),
        typical=_root_mean(said**2),
        spread_largest=_root_mean(came[worst] ** 2),
        spread_typical=_root_mean(came**2),
        missed_largest=_root_mean(squares[worst]),
        missed_typical=_root_mean(squares),
        biased=float(np.nanmean(off / said[:, None])),
        unfitted=float(np.isnan(off).mean()),
    )


def _root_mean(squares: Floats) -> float:
    return float(np.sqrt(squares.mean()))


def _draw_log(world: BudgetWorld, rng: np.random.Generator) -> tuple[Floats, Floats, FittedCells, Ints]:
    """Relevance, propensities, cells with the truth, clicks. The first factor is seen most."""
    half = world.factors // 2
    o = np.sort(np.r_[1.0, rng.uniform(0.2, 0.9, world.factors - 1)])[::-1]
    r = rng.beta(1.0, 5.0, world.items) + 0.01
    part = np.arange(world.items) % 2
    drawn = np.argsort(rng.random((world.items, half)), axis=1)[:, : world.seen]
    factor = np.sort(drawn, axis=1) + part[:, None] * half
    shown = rng.geometric(1 / world.shown, factor.size).astype(np.uint32)
    offsets = np.arange(world.items + 1) * world.seen
    component = (np.arange(world.factors) >= half).astype(np.int32)
    cells = FittedCells(offsets, factor.ravel().astype(np.int32), shown, r, o, component)
    return r, o, cells, rng.binomial(shown, (r[:, None] * o[factor]).ravel())


def _view(view: View, r: Floats, o: Floats, cells: FittedCells, clicks: Ints) -> Floats:
    """At the true scale: parts have none of their own in common."""
    if view == "truth":
        return r
    known = Cells(cells.offsets, cells.factor, cells.impressions, clicks.astype(np.uint32))
    one, none = np.zeros(len(o), np.int32), np.zeros(len(o))
    found = know_items(known, o, none, fit_population(known, o, none, one))
    posterior = np.nan_to_num(found.shape / found.rate)
    return posterior if view == "own clicks" else np.full(len(r), posterior.mean())


def _plan(world: BudgetWorld, cells: FittedCells, seed: int) -> Spending:
    item, target = np.divmod(np.arange(world.items * world.factors), world.factors)
    source = cells.factor[cells.offsets[item]].astype(np.int64)
    more = Candidates(item, source, target, np.full(len(item), world.most), np.zeros(len(item)))
    links = find_minimum_swaps(cells).swaps
    row = links.item * world.factors + links.target
    return spend(cells, more.take(row)._replace(source=links.source), more, world.budget, seed=seed)


def _fit(world: BudgetWorld, cells: FittedCells, old: Ints, plan: Spending, new: Ints, reference: int) -> Floats:
    """log o against the reference's, by the position-based model; NaN where a factor was never clicked."""
    every = np.concatenate(
        (
            np.stack((cells.item, cells.factor, cells.impressions, old)),
            np.stack((plan.item, plan.target, plan.impressions, new)),
        ),
        axis=1,
    ).astype(np.int64)
    empty = np.zeros(world.items + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint32), np.empty(0, np.uint32)
    factors, items = pa.table({"position": np.arange(world.factors)}), pa.table({"item": np.arange(world.items)})
    counts = Counts(*add_cells(empty, *every), factors, None, 0.0, lambda: items)
    o = PBM().fit(counts, allow_unidentified=True).propensity_
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(o / o[reference])
    return np.where(np.isfinite(found), found, np.nan)
