"""Where the maximum of the likelihood does not exist.

Let log o(t) + log r(x) move along a direction. The likelihood does not fall for ever only if no clicked cell
changes (p would go to 0, or beyond 1) and no unclicked cell grows. So factors and items joined by clicked
cells move as one part, and an item of part A shown without a click under a factor of part B lets B fall
relative to A, not rise. The maximum is finite only within strongly connected parts of that graph: across
parts the ratio of propensities runs off to 0, or is not determined at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from elute.cells.counts import Amounts, Cells
from elute.estimate.solve.problem import Codes, Floats
from elute.kernels.blocks import map_blocks
from elute.kernels.forest import merge_edges, spanning_edges
from elute.kernels.jit import jit
from elute.kernels.unionfind import Parents, find_roots, link, singletons

_NONE: NDArray[np.int32] = np.empty((0, 2), np.int32)

NOWHERE = -1
"""The part of factors and items without a click: they are not part of the fit, their estimate is 0."""


def find_parts(cells: Cells, n_factors: int, component: Codes | None = None) -> tuple[Codes, Codes]:
    """The part within which ratios are finite, of every factor and every item. `component`: by factor, where known."""
    of_factor, first = find_factor_parts(cells, n_factors, component)
    return of_factor, assign_items(first, of_factor)


def find_factor_parts(cells: Cells, n_factors: int, component: Codes | None = None) -> tuple[Codes, Codes]:
    """The part of every factor; and for every item a factor it was clicked under (or `NOWHERE`)."""
    found = group_by_clicks(cells, n_factors)
    crossings = _NONE if component is not None and _fills(found, component) else find_crossings(cells, found)
    return find_strong_parts(found.group, found.clicked, crossings), found.first


class ClickGroups(NamedTuple):
    """Factors joined by items clicked under both: `group` has the smallest factor of each one's group, `first` for
    every item a factor it was clicked under (or `NOWHERE`); `clicked`: factors with a click."""

    group: Codes
    first: Codes
    clicked: NDArray[np.bool_]


def group_by_clicks(cells: Cells, n_factors: int) -> ClickGroups:
    """Of these cells."""
    first = np.full(len(cells.offsets) - 1, NOWHERE, np.int32)

    def group(items: slice, own: NDArray[np.int64]) -> tuple[Parents, NDArray[np.bool_]]:
        parent, clicked = singletons(n_factors), np.zeros(n_factors, np.bool_)
        _link_clicked(own, cells.factor, cells.clicks, parent, first[items], clicked)
        return find_roots(parent), clicked

    (root, clicked), *others = map_blocks(group, cells.offsets)
    for forest, more in others:
        root, clicked = merge_edges(root, spanning_edges(forest)), clicked | more
    return ClickGroups(root, first, clicked)


def _fills(found: ClickGroups, component: Codes) -> bool:
    """Whether each component has one group at most: then no cell leads from one to another."""
    return len(np.unique(found.group[found.clicked])) == len(np.unique(component[found.clicked]))


def find_crossings(cells: Cells, found: ClickGroups) -> NDArray[np.int32]:
    """Cells without a click that lead from their item's group to another: (group of the item, group of the factor)."""

    def list_some(items: slice, own: NDArray[np.int64]) -> NDArray[np.int32]:
        return _list_crossings(own, cells.factor, found.first[items], found.clicked, found.group)

    return np.concatenate(map_blocks(list_some, cells.offsets))


def find_strong_parts(group: Codes, clicked: NDArray[np.bool_], edges: NDArray[np.int32]) -> Codes:
    """The part of every factor: strongly connected groups."""
    if len(edges):
        n = len(group)
        graph = coo_array((np.ones(len(edges), np.bool_), (edges[:, 0], edges[:, 1])), shape=(n, n))
        group = connected_components(graph, directed=True, connection="strong")[1][group].astype(np.int32)
    return np.where(clicked, group, NOWHERE).astype(np.int32)


def assign_items(first: Codes, of_factor: Codes) -> Codes:
    """The part of every item: that of a factor it was clicked under."""
    return np.append(of_factor, np.int32(NOWHERE))[first]


def find_main_parts(clicks: Floats, component: Codes, of_factor: Codes) -> NDArray[np.int64]:
    """For each component, its part with the most clicks: the one that is reported. All by factor."""
    inside = np.flatnonzero(of_factor != NOWHERE)
    total = np.bincount(of_factor[inside], clicks[inside], minlength=len(clicks))
    best = inside[np.lexsort((of_factor[inside], -total[of_factor[inside]], component[inside]))]
    return of_factor[best[np.unique(component[best], return_index=True)[1]]].astype(np.int64)


def describe_apart(apart: NDArray[np.bool_], names: Callable[[NDArray[np.integer]], str]) -> str:
    """Of the factors that are not in the main part of their component."""
    return (
        f"{apart.sum():,} factors have no finite propensity relative to the rest of their component, as no chain "
        f"of clicks ties them to it both ways: {names(np.flatnonzero(apart))}"
    )


@jit
def _link_clicked(
    offsets: NDArray[np.int64],
    factor: Codes,
    clicks: Amounts,
    parent: Parents,
    first: Codes,
    clicked: NDArray[np.bool_],
) -> None:
    """Join the factors under which an item was clicked; note each item's first, and which factors have clicks."""
    for item in range(offsets.shape[0] - 1):
        for cell in range(offsets[item], offsets[item + 1]):
            if clicks[cell] > 0:
                clicked[factor[cell]] = True
                if first[item] < 0:
                    first[item] = factor[cell]
                else:
                    link(parent, first[item], factor[cell])


@jit
def _list_crossings(
    offsets: NDArray[np.int64], factor: Codes, first: Codes, clicked: NDArray[np.bool_], group: Codes
) -> NDArray[np.int32]:
    """Cells that lead from their item's group to another: (group of the item, group of the factor)."""
    n = 0
    for fill in range(2):
        edges = np.empty((n * fill, 2), np.int32)
        if fill and n == 0:
            break
        n = 0
        for item in range(offsets.shape[0] - 1):
            if first[item] < 0:
                continue
            home = group[first[item]]
            for cell in range(offsets[item], offsets[item + 1]):
                t = factor[cell]
                if clicked[t] and group[t] != home:
                    if fill:
                        edges[n, 0] = home
                        edges[n, 1] = group[t]
                    n += 1
    return edges


def restrict(cells: Cells, of_factor: Codes, of_item: Codes) -> Cells:
    """Without the cells that lead from one part to another: in the limit they have p = 0 and no say."""
    return _keep_within(cells, of_factor, of_item, 0) if _crosses(*cells[:2], of_factor, of_item) else cells


def keep_informative(cells: Cells, of_factor: Codes, of_item: Codes) -> Cells:
    """The cells, within parts, of items seen under two factors or more: one cell alone fits any propensity."""
    return _keep_within(cells, of_factor, of_item, 2)


def _keep_within(cells: Cells, of_factor: Codes, of_item: Codes, least: int) -> Cells:
    offsets, factor = np.zeros_like(cells.offsets), np.empty_like(cells.factor)
    impressions, clicks = np.empty_like(cells.impressions), np.empty_like(cells.clicks)
    items, n = _copy_within(*cells, of_factor, of_item, least, offsets, factor, impressions, clicks)
    return Cells(offsets[: items + 1], factor[:n], impressions[:n], clicks[:n])


@jit
def _crosses(offsets: NDArray[np.int64], factor: Codes, of_factor: Codes, of_item: Codes) -> bool:
    for item in range(offsets.shape[0] - 1):
        part = of_item[item]
        if part >= 0:
            for cell in range(offsets[item], offsets[item + 1]):
                other = of_factor[factor[cell]]
                if other >= 0 and other != part:
                    return True
    return False


@jit
def _copy_within(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    of_factor: Codes,
    of_item: Codes,
    least: int,
    out_offsets: NDArray[np.int64],
    out_factor: Codes,
    out_impressions: Amounts,
    out_clicks: Amounts,
) -> tuple[int, int]:
    """Copy the cells whose item and factor share a part, leaving out items that have fewer than `least`. With none
    to leave out, items without a click keep their cells."""
    n = 0
    items = 0
    for item in range(offsets.shape[0] - 1):
        begin = n
        part = of_item[item]
        if part >= 0 or least == 0:
            for cell in range(offsets[item], offsets[item + 1]):
                if part < 0 or of_factor[factor[cell]] == part:
                    out_factor[n] = factor[cell]
                    out_impressions[n] = impressions[cell]
                    out_clicks[n] = clicks[cell]
                    n += 1
        if n - begin < least:
            n = begin
            continue
        items += 1
        out_offsets[items] = n
    return items, n
