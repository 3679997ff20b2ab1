"""Where the maximum of the likelihood does not exist, if a formula ties propensities.

As in `elute.estimate.solve.boundary`: along a direction of effects δ the likelihood does not fall only if no clicked
cell changes and no unclicked one grows. With C the span of X_a - X_b over items clicked under a and b, δ is 0 on C, and
for an item clicked under a and shown under t, (X_t - X_a)·δ ≤ 0. Where such rows lie in C there is no such direction.
Where they do not, a linear programme finds one on which as many as can are below 0: in the limit their cells have
p = 0 and no say. Ratios are finite within the classes of what is left. One effect a factor gives back strong parts.

A factor without a click may still be known: its effects are, from others. One that has no clicked factor in its class
has propensity 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, hstack

from elute.cells.counts import Cells
from elute.estimate.solve.boundary import (
    NOWHERE,
    assign_items,
    find_crossings,
    find_factor_parts,
    group_by_clicks,
)
from elute.estimate.solve.problem import Codes, Problem
from elute.identify.effects.classes import link_alike, number_classes
from elute.identify.effects.design import EffectDesign
from elute.identify.effects.span import Span, find_span

Pairs = NDArray[np.integer]

_FALLS = 0.5


def find_effect_parts(cells: Cells, design: EffectDesign) -> tuple[Codes, Codes, Span]:
    """The part within which ratios are finite, of every factor and every item; and the span of what ties them."""
    found = group_by_clicks(cells, design.place.shape[0])
    tied = tie_clicked(design, found.group)
    crossings = find_crossings(cells, found._replace(group=tied.label, clicked=np.ones_like(found.clicked)))
    of_factor, span = tie_parts(design, tied, found.clicked, np.unique(crossings, axis=0))
    return of_factor, assign_items(found.first, of_factor), span


def find_problem_parts(problem: Problem) -> Codes:
    """The part of every factor, whether a formula ties them or not."""
    if problem.design is None:
        return find_factor_parts(problem.cells, problem.n_factors, problem.component)[0]
    return find_effect_parts(problem.cells, problem.design)[0]


class ClickTies(NamedTuple):
    """Factors that clicks join, two a row; their span; and by factor the smallest of its class under it."""

    links: NDArray[np.int64]
    span: Span
    label: Codes


def tie_clicked(design: EffectDesign, group: Codes) -> ClickTies:
    """`group`: the smallest factor of those that items clicked under both join. Only cells that lead from one class to
    another can let effects run off: hardly any, on most logs."""
    links = link_alike(design, group)
    span = find_span(design, links[:, 0], links[:, 1])
    return ClickTies(links, span, number_classes(span.key_factors(design)))


def tie_parts(
    design: EffectDesign, tied: ClickTies, clicked: NDArray[np.bool_], crossings: Pairs
) -> tuple[Codes, Span]:
    """The part of every factor, -1 for classes without a click. `crossings`: the class of an item, and one of a factor
    that it was shown under without a click."""
    part, span = tied.label, tied.span
    if len(crossings):
        kept = crossings[~_find_falling(design, tied.links, crossings)]
        span = find_span(design, *np.concatenate((tied.links, kept)).T)
        part = number_classes(span.key_factors(design))
    return np.where(np.isin(part, part[clicked]), part, NOWHERE).astype(np.int32), span


def _find_falling(design: EffectDesign, links: Pairs, crossings: Pairs) -> NDArray[np.bool_]:
    """Which rows of `crossings` can be below 0 at once, with no other above, and all of `links` 0."""
    from scipy.optimize import linprog  # slow to import

    x = design.matrix
    rows, same = (csr_array(x[pairs[:, 1]] - x[pairs[:, 0]]) for pairs in (crossings, links))
    count, unknowns = rows.shape
    found = linprog(
        np.concatenate((np.zeros(unknowns), -np.ones(count))),
        hstack((rows, eye_array(count)), format="csr"),
        np.zeros(count),
        hstack((same, csr_array((len(links), count))), format="csr") if len(links) else None,
        np.zeros(len(links)) if len(links) else None,
        bounds=[(None, None)] * unknowns + [(0.0, 1.0)] * count,
        method="highs",
    )
    return np.asarray(found.x[unknowns:] > _FALLS)
