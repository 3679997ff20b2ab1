"""Is a fit of p = r·o the only one? (Theorem 6.3 of the limits paper.)

A click model is consistent only if no other relevance minimises its loss. Around a fit the loss is flat in exactly
the null directions of the information matrix. In log r and log o a cell informs about their sum, with weight
w = n·p/(1-p), so the null space is known without a threshold: items and factors joined by cells with w > 0 form
groups, and in each the propensities can grow by any factor s while the relevances shrink by it. The group of one
factor whose propensity is known, the reference (α₁ = 1 in Section 6.1), is determined. In the others s can be
anything that leaves probabilities at most 1: max r ≤ s ≤ 1/max o.

Values of 0 have no logarithm. A factor never clicked has o = 0, and this is determined if one of its items has
r > 0; its cells say nothing of its items. So an item is without information, its r anything from 0 to 1, if all its
factors have o = 0; and a factor likewise if all its items have r = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Amounts
from elute.errors import EluteError
from elute.kernels.jit import jit
from elute.kernels.unionfind import Parents, find_roots, link, singletons

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LISTED = 3
"""Items and factors of a flat direction that a sentence names."""


class CellsByItem(Protocol):
    """Cells sorted by item: `Counts` and what estimators work on."""

    @property
    def offsets(self) -> Ints: ...
    @property
    def factor(self) -> NDArray[np.int32]: ...
    @property
    def impressions(self) -> Amounts: ...
    @property
    def clicks(self) -> Amounts: ...


@dataclass(frozen=True, eq=False)
class FlatDirection:
    """One flat direction: items and factors, by code, whose values only scale together, with each one's range."""

    items: Ints
    factors: Ints
    relevance: Floats
    """By item of `items`: at the fit. Ratios among them are determined."""
    propensity: Floats
    """By factor of `factors`: at the fit. Ratios among them are determined."""
    scale: tuple[float, float]
    """By what propensities can be multiplied, and relevances divided, so that none exceeds 1. Least above most: there
    is no such scale. (0, ∞) where a single item or factor is without any information."""

    @property
    def informed(self) -> bool:
        """Whether there are any cells that say something; otherwise it is a single item or factor."""
        return self.scale[1] < np.inf

    @property
    def relevance_range(self) -> tuple[Floats, Floats]:
        """Least and greatest relevance by item."""
        if not self.informed:
            return np.zeros_like(self.relevance), np.ones_like(self.relevance)
        return self.relevance / self.scale[1], self.relevance / self.scale[0]

    @property
    def propensity_range(self) -> tuple[Floats, Floats]:
        """Least and greatest propensity by factor."""
        if not self.informed:
            return np.zeros_like(self.propensity), np.ones_like(self.propensity)
        return self.propensity * self.scale[0], self.propensity * self.scale[1]

    def sentence(self, item: Callable[[int], str], factor: Callable[[int], str]) -> str:
        """In words, given the names of items and factors by code."""
        relevance = _list_ranges(self.items, self.relevance_range, item)
        propensity = _list_ranges(self.factors, self.propensity_range, factor)
        if not self.informed:
            if len(self.items):
                return (
                    f"Nothing is known about the relevance of {item(self.items[0])}: all its factors have propensity 0."
                )
            return (
                f"Nothing is known about the propensity of {factor(self.factors[0])}: all its items have relevance 0."
            )
        if self.scale[0] > self.scale[1]:
            return (
                f"Relevance of {_list_names(self.items, item)} and propensity of {_list_names(self.factors, factor)} "
                "are known only up to one common scale, and at no scale are all of them probabilities: the model does "
                "not hold."
            )
        return (
            "Known only up to one common scale: "
            f"relevance of {relevance} (divided by it), propensity of {propensity} (multiplied by it)."
        )


@dataclass(frozen=True, eq=False)
class Consistency:
    """How far a fit is determined by its data."""

    reference: int
    """The factor whose propensity counts as known."""
    parameters: int
    """Relevances and propensities, without the reference."""
    flat: list[FlatDirection]
    """Flat directions: most items first."""
    item_determined: NDArray[np.bool_]
    factor_determined: NDArray[np.bool_]

    @property
    def rank(self) -> int:
        """Of the information: how many combinations of the parameters are determined."""
        return self.parameters - len(self.flat)

    @property
    def consistent(self) -> bool:
        """Whether no other relevance fits as well: Theorem 6.3's condition."""
        return bool(self.item_determined.all())

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.consistent:
            n = len(self.item_determined)
            return f"No other relevance fits these clicks as well: all {n:,} items are determined."
        loose = int((~self.item_determined).sum())
        return (
            f"Other relevances fit these clicks as well: {loose:,} of {len(self.item_determined):,} items are "
            f"not determined, in {len(self.flat):,} flat {'direction' if len(self.flat) == 1 else 'directions'}."
        )

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "verdict": self.sentence,
            "consistent": self.consistent,
            "parameters": self.parameters,
            "rank": self.rank,
            "flat_directions": len(self.flat),
            "undetermined_items": int((~self.item_determined).sum()),
            "undetermined_factors": int((~self.factor_determined).sum()),
        }

    def __repr__(self) -> str:
        return f"<Consistency: {self.sentence}>"


def check_consistency(
    cells: CellsByItem, relevance: Floats, propensity: Floats, reference: int | None = None
) -> Consistency:
    """The flat directions at a fit: `relevance` by item, `propensity` by factor.

    `reference`: the factor whose propensity is known; None takes the largest, the first of them if several are."""
    r, o = np.asarray(relevance, np.float64), np.asarray(propensity, np.float64)
    _refuse_misfit(cells, r, o, reference)
    known = int(np.argmax(o)) if reference is None else reference
    parent = singletons(len(o))
    first, unclear = _join(cells.offsets, cells.factor, cells.impressions, cells.clicks, r > 0, o > 0, parent)
    if unclear:
        raise EluteError(f"the fit gives {unclear:,} clicked cells the probability 0; fit again on this log")
    of_factor = find_roots(parent)
    of_item = np.where(first >= 0, of_factor[first], -1)
    item_zero, factor_zero = _find_zeros(cells.offsets, cells.factor, cells.impressions, r > 0, o > 0)
    informed = np.bincount(of_item[of_item >= 0], minlength=len(o))[of_factor] > 0
    blind = ~informed & ~factor_zero & (np.arange(len(o)) != known)
    none, no_values = np.zeros(0, np.int64), np.zeros(0)
    flat = [
        *_find_scalings(of_item, np.where(informed, of_factor, -1), r, o, int(of_factor[known])),
        *(
            FlatDirection(np.array([x]), none, r[[x]], no_values, (0, np.inf))
            for x in np.flatnonzero((first < 0) & ~item_zero)
        ),
        *(FlatDirection(none, np.array([t]), no_values, o[[t]], (0, np.inf)) for t in np.flatnonzero(blind)),
    ]
    item_determined, factor_determined = np.ones(len(r), np.bool_), np.ones(len(o), np.bool_)
    for direction in flat:
        item_determined[direction.items] = False
        factor_determined[direction.factors] = False
    return Consistency(known, len(r) + len(o) - 1, flat, item_determined, factor_determined)


def _refuse_misfit(cells: CellsByItem, r: Floats, o: Floats, reference: int | None) -> None:
    """Refuse what is not a fit of these cells."""
    if len(r) != len(cells.offsets) - 1:
        raise EluteError(f"{len(r):,} relevances for {len(cells.offsets) - 1:,} items; give one for each item, by code")
    if not len(o) or cells.factor.max(initial=-1) >= len(o):
        raise EluteError(f"{len(o):,} propensities, fewer than there are factors; give one for each factor, by code")
    for name, values in (("relevance", r), ("propensity", o)):
        if not (np.isfinite(values) & (values >= 0)).all():
            raise EluteError(f"a {name} is negative or not a number; give 0 for what was never clicked")
    if reference is not None and not (0 <= reference < len(o) and o[reference] > 0):
        raise EluteError(f"factor {reference} cannot be the reference; give the code of one with a propensity above 0")


def _find_scalings(of_item: Ints, of_factor: Ints, r: Floats, o: Floats, known: int) -> list[FlatDirection]:
    """A flat direction for every group but that of the reference; -1 marks what is in none."""
    items, factors = np.argsort(of_item, kind="stable"), np.argsort(of_factor, kind="stable")
    found = []
    for group in np.unique(of_factor[(of_factor >= 0) & (of_factor != known)]):
        x = items[slice(*np.searchsorted(of_item[items], [group, group + 1]))]
        t = factors[slice(*np.searchsorted(of_factor[factors], [group, group + 1]))]
        found.append(FlatDirection(x, t, r[x], o[t], (float(r[x].max()), float(1 / o[t].max()))))
    return sorted(found, key=lambda direction: -len(direction.items))


def _list_names(codes: Ints, name: Callable[[int], str]) -> str:
    words = [name(int(code)) for code in codes[:LISTED]]
    return "; ".join(words) + (f"; and {len(codes) - LISTED:,} more" if len(codes) > LISTED else "")


def _list_ranges(codes: Ints, bounds: tuple[Floats, Floats], name: Callable[[int], str]) -> str:
    first = zip(codes[:LISTED], *(bound[:LISTED] for bound in bounds), strict=True)
    words = {int(c): f"{name(int(c))} from {low:.3g} to {high:.3g}" for c, low, high in first}
    return _list_names(codes, words.__getitem__)


@jit
def _join(
    offsets: Ints,
    factor: NDArray[np.int32],
    impressions: Amounts,
    clicks: Amounts,
    relevant: NDArray[np.bool_],
    observed: NDArray[np.bool_],
    parent: Parents,
) -> tuple[NDArray[np.int32], int]:
    """Join the factors of every item's cells with p > 0; each item's first such factor (-1: none), and how many
    clicked cells have p = 0."""
    first = np.full(offsets.shape[0] - 1, -1, np.int32)
    unclear = 0
    for item in range(first.shape[0]):
        for cell in range(offsets[item], offsets[item + 1]):
            t = factor[cell]
            if impressions[cell] == 0:
                continue
            if not (relevant[item] and observed[t]):
                unclear += clicks[cell] > 0
            elif first[item] < 0:
                first[item] = t
            else:
                link(parent, first[item], t)
    return first, unclear


@jit
def _find_zeros(
    offsets: Ints,
    factor: NDArray[np.int32],
    impressions: Amounts,
    relevant: NDArray[np.bool_],
    observed: NDArray[np.bool_],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The items that some cell shows to have r = 0, and the factors that some cell shows to have o = 0."""
    items, factors = np.zeros_like(relevant), np.zeros_like(observed)
    for item in range(relevant.shape[0]):
        for cell in range(offsets[item], offsets[item + 1]):
            t = factor[cell]
            if impressions[cell] > 0:
                items[item] |= observed[t] and not relevant[item]
                factors[t] |= relevant[item] and not observed[t]
    return items, factors
