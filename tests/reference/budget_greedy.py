"""The greedy plan that `elute.repair.budget` made before: a dense L⁺, 50 grants, one pair each.

The connecting swaps come first; then the budget goes, grant by grant, to the pair (item, factor) that
most reduces the largest (or the mean) standard error among factors. With L⁺ at hand a candidate costs a
rank-one update (Sherman–Morrison): a link c·z·zᵀ lowers the variance of factor k against its reference by
c·(g_k - g_ref)²/(1 + c·zᵀg), g = L⁺z.

Each grant is settled in two steps. All pairs of a pool of items with all factors are ranked by what they
take off the variances that matter now, weighted by the objective's gradient, which takes matrix products
only; the few best are then compared by the objective itself.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.identify.information import find_references, information
from elute.kernels.unionfind import find_roots, join_edges, singletons
from elute.repair.allowed import (
    ANYTHING,
    Allowed,
    FittedCells,
    all_pass,
    is_positive,
    list_source_conditions,
    list_target_conditions,
)
from elute.repair.swap import SwapArrays
from reference.dense_resistance import laplacian, pseudo_inverse, rank_one_update, variances

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Objective = Literal["max", "mean"]

MAX_FACTORS = 3000
"""L⁺ is dense: 72 MB at this size, and the pool's matrices a few times that."""

_GRANTS = 50
_POOL = 1000
_SHORTLIST = 50


class Spending(NamedTuple):
    """`impressions` of each `item` under `target`; its first `connecting` rows join components. The
    standard errors are those of each factor's log-propensity ratio to the factor of largest propensity:
    that of its component before, that of what is joined after. NaN: nothing is known of the factor."""

    item: Ints
    source: Ints
    target: Ints
    impressions: Ints
    connecting: int
    se_before: Floats
    se_after: Floats


class _Pool:
    """Items that may be shown more, with the information on each (rows: items, columns: factors)."""

    def __init__(self, cells: FittedCells, w: Floats, items: Ints, sources: Mask, targets: Mask, allowed: Allowed):
        self.rows = np.zeros((len(items), len(cells.propensity)))
        self.permitted = np.zeros(self.rows.shape, dtype=np.bool_)
        self._reach = _find_reachable(allowed, len(cells.propensity))
        self._sources = [np.empty(0, np.int64)] * len(items)
        for row, item in enumerate(items):
            here = slice(cells.offsets[item], cells.offsets[item + 1])
            self.rows[row, cells.factor[here]] = w[here]
            self._sources[row] = cells.factor[here][sources[here]].astype(np.int64)
            reached = self._reach[self._sources[row]].sum(axis=0)
            self.permitted[row] = targets & (reached > 0)
        self.probability = cells.relevance[items][:, None] * cells.propensity[None, :]

    def add_grant(self, row: int, target: int, grant: float) -> tuple[Floats, float]:
        """Add the grant's information to an item's row; the change c·z·zᵀ of L that it makes, as z and c."""
        added = float(information(grant, self.probability[row, [target]])[0])
        change = rank_one_update(self.rows[row], target, added)
        self.rows[row, target] += added
        return change

    def find_source(self, row: int, target: int) -> int:
        """The factor, in reach of `target`, under which most is known of the item."""
        sources = self._sources[row]
        reached = sources[self._reach[sources, target]]
        return int(reached[self.rows[row, reached].argmax()])


def _find_reachable(allowed: Allowed, n_factors: int) -> Mask:
    """Which factor (column) may take an item from which (row); never itself."""
    other = ~np.eye(n_factors, dtype=np.bool_)
    if allowed.max_position_change is None or allowed.position is None:
        return other
    change = np.abs(allowed.position[:, None] - allowed.position[None, :])
    return other & (change <= allowed.max_position_change)


def _find_groups(cells: FittedCells, w: Floats) -> NDArray[np.int32]:
    """The connected part of every factor, by the cells that carry information."""
    item = cells.item[w > 0]
    factor = cells.factor[w > 0].astype(np.int64)
    _, first, which = np.unique(item, return_index=True, return_inverse=True)
    parent = singletons(len(cells.propensity))
    join_edges(parent, factor[first][which], factor)
    return find_roots(parent)


def _choose_pool(cells: FittedCells, w: Floats, usable: Mask, grant: float, linking: Ints) -> Ints:
    """For each factor, the items that can carry most from it: known there, and likely clicked elsewhere.

    A grant to an item known by w in a cell carries at most δw/(δ + w), with δ what it would add at the
    largest propensity.
    """
    item = cells.item
    largest = np.max(cells.propensity, where=is_positive(cells.propensity), initial=0.0)
    added = information(grant, cells.relevance * largest)[item]
    carries = np.where(usable & (w > 0), added * w / np.maximum(added + w, np.finfo(float).tiny), 0.0)
    cell = np.flatnonzero(carries)
    cell = cell[np.lexsort((-carries[cell], cells.factor[cell]))]
    factor = cells.factor[cell]
    rank = np.arange(len(cell)) - np.searchsorted(factor, factor)
    cell = cell[np.lexsort((-carries[cell], rank))][:_POOL]
    return np.union1d(item[cell], linking)


def _divide_evenly(total: int, parts: int) -> Ints:
    """`total` in nearly equal whole parts, none of them 0."""
    parts = min(parts, total)
    return np.diff(np.arange(parts + 1) * total // max(parts, 1))


def _divide_budget(budget: int, links: int) -> tuple[Ints, Ints]:
    """What the connecting swaps get, at most half the budget, and the grants that are left to choose."""
    first = max(budget * links // max(_GRANTS, 2 * links), links)
    return _divide_evenly(first, links), _divide_evenly(budget - first, _GRANTS)


class _State:
    """L⁺ and what candidates need of it, kept up to date grant by grant."""

    def __init__(self, pool: _Pool, inverse: Floats, reference: Ints):
        self.pool, self.inverse, self.reference = pool, inverse, reference
        self.mean = pool.rows / pool.rows.sum(axis=1, keepdims=True)
        self.spread = self.mean @ inverse

    def _compute_factors(self, grant: float) -> Floats:
        """c/(1 + c·zᵀL⁺z) of every pair of the pool."""
        added = information(grant, self.pool.probability)
        total = self.pool.rows.sum(axis=1, keepdims=True)
        c = added * total / (added + total)
        within = (self.mean * self.spread).sum(axis=1, keepdims=True)
        return np.asarray(c / (1 + c * (np.diagonal(self.inverse) - 2 * self.spread + within)))

    def _shortlist(self, gradient: Floats, factor: Floats) -> tuple[Ints, Ints]:
        """The pairs that take most off the sum of variances weighted by `gradient`."""
        k = np.flatnonzero(gradient > 0)
        to_reference = (self.inverse[:, k] - self.inverse[:, self.reference[k]]) * np.sqrt(gradient[k])
        of_item = self.mean @ to_reference
        squares = (to_reference**2).sum(axis=1) - 2 * of_item @ to_reference.T
        squares += (of_item**2).sum(axis=1, keepdims=True)
        gain = np.where(self.pool.permitted, factor * squares, 0.0).ravel()
        best = np.arange(len(gain))
        if len(gain) > _SHORTLIST:
            best = np.sort(np.argpartition(-gain, _SHORTLIST)[:_SHORTLIST])
        best = best[gain[best] > 0]
        return best // len(self.inverse), best % len(self.inverse)

    def choose(self, grant: float, objective: Objective) -> tuple[int, int] | None:
        """The pair (row of the pool, factor) to which to give the grant; None if none helps."""
        variance = variances(self.inverse, self.reference)
        error = np.sqrt(variance)
        gradient = np.where(error > 0, 0.5 / np.where(error > 0, error, 1.0), 0.0)
        if objective == "max":
            gradient[np.arange(len(error)) != error.argmax()] = 0.0
        factor = self._compute_factors(grant)
        row, target = self._shortlist(gradient, factor)
        if not len(row):
            return None
        g = self.inverse[target] - self.spread[row]
        less = factor[row, target][:, None] * (g - g[:, self.reference]) ** 2
        errors = np.sqrt(np.maximum(variance - less, 0.0))
        largest = errors.max(axis=1) if objective == "max" else np.zeros(len(row))
        best = np.lexsort((errors.mean(axis=1), largest))[0]
        return int(row[best]), int(target[best])

    def give(self, row: int, target: int, grant: float) -> None:
        """Add the grant, L⁺ by Sherman–Morrison."""
        z, c = self.pool.add_grant(row, target, grant)
        g = self.inverse @ z
        factor = c / (1 + c * z @ g)
        self.inverse -= factor * np.outer(g, g)
        self.spread -= factor * np.outer(self.mean @ g, g)
        self.mean[row] = self.pool.rows[row] / self.pool.rows[row].sum()
        self.spread[row] = self.mean[row] @ self.inverse


def spend(
    cells: FittedCells, links: SwapArrays, budget: int, allowed: Allowed = ANYTHING, objective: Objective = "max"
) -> Spending:
    """Divide `budget` impressions among the connecting swaps `links` and further ones within `allowed`."""
    n = len(cells.propensity)
    if n > MAX_FACTORS:
        raise EluteError(f"a budget can be planned for at most {MAX_FACTORS:,} factors, not {n:,}; merge some first")
    if budget < max(len(links.item), 1):
        raise EluteError(
            f"{budget:,} impressions are too few for {len(links.item):,} connecting swaps; raise `budget=`"
        )
    w = information(cells.impressions, cells.relevance[cells.item] * cells.propensity[cells.factor])
    informed = np.bincount(cells.factor, weights=w, minlength=n) > 0
    group = _find_groups(cells, w)
    matrix = laplacian(cells.offsets, cells.factor, w, n)
    before = np.sqrt(variances(pseudo_inverse(matrix, group), find_references(cells.propensity, group)))

    firsts, grants = _divide_budget(budget, len(links.item))
    sources, targets = (
        all_pass(list_source_conditions(cells, allowed)),
        all_pass(list_target_conditions(cells, allowed)),
    )
    items = _choose_pool(cells, w, sources, budget / _GRANTS, links.item)
    pool = _Pool(cells, w, items, sources, targets, allowed)
    given: dict[tuple[int, int], list[int]] = {}
    for item, source, target, grant in zip(*links[:3], firsts, strict=True):
        row = int(np.searchsorted(items, item))
        z, c = pool.add_grant(row, int(target), grant)
        matrix += c * np.outer(z, z)
        given[row, int(target)] = [int(source), int(grant)]

    join_edges(group, links.source, links.target)
    group = find_roots(group)
    pool.permitted &= group[pool.rows.argmax(axis=1)][:, None] == group[None, :]
    state = _State(pool, pseudo_inverse(matrix, group), find_references(cells.propensity, group))
    for grant in grants:
        choice = state.choose(grant, objective)
        if choice is None:
            break
        state.give(*choice, grant)
        given.setdefault(choice, [pool.find_source(*choice), 0])[1] += int(grant)

    table = np.array([(*pair, *what) for pair, what in given.items()], dtype=np.int64).reshape(-1, 4)
    after = np.sqrt(variances(state.inverse, state.reference))
    return Spending(
        items[table[:, 0]],
        table[:, 2],
        table[:, 1],
        table[:, 3],
        len(links.item),
        np.where(informed, before, np.nan),
        np.where(informed, after, np.nan),
    )
