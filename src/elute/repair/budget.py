"""Spending a budget of impressions where it makes propensities most certain (beyond the paper).

The swaps that join parts come first; then the budget goes to the pairs of item and factor that most lower the largest
(or the mean) standard error among factors. Of few factors the whole covariance is at hand, and grants go one by one to
the best pair (`spending.few`). Of many it is drawn, and rounds go to many pairs at once (`spending.many`).

No pair gets more than the traffic of its query allows. What is promised is computed afresh from the whole impressions
that were given out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.estimate.solve.resistance import DENSE, find_ground, find_variances
from elute.identify.effects.classes import join_pairs
from elute.identify.effects.design import EffectDesign
from elute.kernels.unionfind import find_roots, join_edges, singletons
from elute.repair.allowed import FittedCells
from elute.repair.candidates import NO_CANDIDATES, Candidates
from elute.repair.spending.few import GRANTS, spend_on_few
from elute.repair.spending.many import spend_on_many
from elute.repair.spending.objective import Objective
from elute.repair.spending.share import top_up
from elute.repair.spending.supply import Supply

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


MOST_TIED = 3_000
"""Factors up to which they are few where a formula ties them."""


class Spending(NamedTuple):
    """`impressions` of each `item` under `target`; its first `connecting` rows join parts. `unspent`: what no
    candidate could take, or only to no use. The standard errors are those of each factor's log-propensity ratio to the
    reference: that of its part before, that of what is joined after. NaN: nothing is known of the factor."""

    item: Ints
    source: Ints
    target: Ints
    impressions: Ints
    connecting: int
    unspent: int
    se_before: Floats
    se_after: Floats


def spend(
    cells: FittedCells,
    links: Candidates,
    more: Candidates,
    budget: int,
    *,
    objective: Objective = "max",
    dispersion: Floats | float = 1.0,
    design: EffectDesign | None = None,
    seed: int = 0,
) -> Spending:
    """Divide `budget` impressions among the swaps `links`, which join parts, and `more`, within what is joined.

    `cells.component`: the part of every factor, within which clicks tie factors together. `dispersion`: by how much
    variances exceed those of independent clicks, by factor or for all. `design`: of the formula that ties factors, if
    one does."""
    if budget < max(len(links.item), 1):
        raise EluteError(
            f"{budget:,} impressions are too few for {len(links.item):,} connecting swaps; raise `budget=`"
        )
    n = len(cells.propensity)
    effect = np.broadcast_to(np.asarray(dispersion, np.float64), n)
    before = _find_errors(Supply(cells, cells.component, NO_CANDIDATES), cells, cells.component, effect, design, seed)

    first = _divide_first(budget, np.maximum(links.most, 0))
    shown = (first > 0) & (cells.relevance[links.item] * cells.propensity[links.target] > 0)
    links, first = links.take(shown), first[shown]
    label = _join(cells.component, links, design)
    pairs = links.append(more.take(~_holds(links, more, n)))
    supply = Supply(cells, label, pairs)
    supply.give(np.arange(len(first)), first)
    ground = find_ground(supply.get_cells(), cells.propensity, label, design)
    supply.leave_out(~ground.tied)
    few = DENSE if design is None else MOST_TIED
    give = spend_on_few if ground.free.sum() <= few else spend_on_many
    give(supply, ground, effect, budget - int(first.sum()), objective, np.random.default_rng(seed))

    chosen = np.flatnonzero(supply.given)
    return Spending(
        pairs.item[chosen],
        pairs.source[chosen],
        pairs.target[chosen],
        supply.given[chosen],
        len(first),
        budget - int(supply.given.sum()),
        before,
        _find_errors(supply, cells, label, effect, design, seed),
    )


def _find_errors(
    supply: Supply,
    cells: FittedCells,
    label: NDArray[np.integer],
    effect: Floats,
    design: EffectDesign | None,
    seed: int,
) -> Floats:
    known = supply.get_cells()
    return np.sqrt(effect * find_variances(known, find_ground(known, cells.propensity, label, design), seed))


def _join(component: NDArray[np.integer], links: Candidates, design: EffectDesign | None) -> NDArray[np.integer]:
    """The part of every factor once the links are shown."""
    label = component.astype(np.int64)
    if design is not None:
        return join_pairs(label, np.column_stack((links.source, links.target)), design.factors)[label]
    parent = singletons(int(label.max()) + 1)
    join_edges(parent, label[links.source], label[links.target])
    return find_roots(parent)[label]


def _holds(links: Candidates, more: Candidates, n_factors: int) -> NDArray[np.bool_]:
    """Which of `more` are links already."""
    return np.isin(more.item * n_factors + more.target, links.item * n_factors + links.target)


def _divide_first(budget: int, most: Ints) -> Ints:
    """What the links get: at most half of the budget, in nearly equal parts, none of them 0 that can be more."""
    links = len(most)
    total = max(budget * links // max(GRANTS, 2 * links), links)
    each = np.minimum(np.diff(np.arange(links + 1) * total // max(links, 1)), most)
    return each + top_up(np.ones(links), most - each, total - int(each.sum()))
