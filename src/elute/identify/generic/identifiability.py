"""Generic identifiability: can a click model's parameters be recovered from where items were shown?

Theorem 1 of the identifiability paper answers for p = r·o: the graph must be connected. For other models (the
paper's future work) count degrees of freedom: at a random parameter point, in how many directions can the *factor*
parameters move, items following as they can, so that no cell probability changes to first order? That is the null
dimension of the Jacobian with the items profiled out. The model's gauge can never be seen in data, so the factors
are determined, locally and at almost every parameter, exactly if nothing beyond the gauge is left:

    pbm       p = r_x·o_t              gauge 1    scale
    affine    p = α_t·r_x + β_t        gauge 2    scale and origin
    vector:D  p = <u_x, v_t>           gauge D²   a basis of the D dimensions

An item under fewer than D factors has directions of its own beside (`item_null_dimension`); the whole Jacobian's
null dimension is the sum of both. Under pbm and affine there are none.

Items with one support act alike: D of them (affine 2, pbm 1) already determine the factors of their support up to
the gauge, so more add nothing and are not looked at.

Ranks are computed modulo a random prime at a random point. There a rank can only be too small, never too large:
`identifiable` is certain where true. The null dimension is too large with probability at most `error_bound`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.identify.generic.degrees import Degrees, count_degrees, find_components
from elute.identify.generic.equations import FactorModel
from elute.identify.generic.supports import Codes, Ids, Ints, encode, group_supports, sort_cells

MOST_DIMENSIONS = 32

NAMED = 20
"""Components, and factors of each, that `to_dict` names."""


@dataclass(frozen=True, eq=False)
class GenericComponent:
    """One component of the identifiability graph."""

    factors: list[Hashable]
    items: int
    null_dimension: int
    undetermined: list[Hashable]
    """The factors that do not hang together with the largest set that does."""

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold; of many factors the first are named."""
        return {
            "factors": len(self.factors),
            "items": self.items,
            "null_dimension": self.null_dimension,
            "example_factors": self.factors[:NAMED],
            "undetermined_factors": len(self.undetermined),
            "undetermined": self.undetermined[:NAMED],
        }


@dataclass(frozen=True, eq=False)
class GenericIdentifiability:
    """What the observed cells allow a model."""

    model: str
    null_dimension: int
    gauge: int
    parts: list[GenericComponent]
    """By component, most factors first."""
    loose_items: int
    """Items under too few factors to determine their own parameters, even were the factors known."""
    item_null_dimension: int
    """Directions of items alone."""
    error_bound: float
    """Probability that the null dimension is smaller than this one; 0: certain."""

    @property
    def identifiable(self) -> bool:
        """Whether the factors are one component and nothing but the gauge can move them."""
        return len(self.parts) == 1 and self.null_dimension == self.gauge

    @property
    def undetermined(self) -> list[Hashable]:
        """The factors that do not hang together with the largest set of their component."""
        return [factor for part in self.parts for factor in part.undetermined]

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        loose = ""
        if self.loose_items:
            loose = f" {self.loose_items:,} items were shown under too few factors to determine their own parameters."
        free = f"null dimension {self.null_dimension:,}, gauge {self.gauge:,}"
        if self.error_bound:
            free += f", too large with probability at most {self.error_bound:.0e}"
        if self.identifiable:
            return f"The {self.model} model is identifiable from these cells ({free}).{loose}"
        n = len(self.parts)
        parts = f"the factors fall into {n:,} components" if n > 1 else "the factors form one component"
        beyond = len(self.undetermined)
        thin = f"{beyond:,} factors are not tied to the rest of their component" if beyond else "each is well linked"
        if n == 1 and not beyond:
            thin = f"there are fewer than the {math.isqrt(self.gauge)} it takes to fix the model's basis"
        return f"The {self.model} model is not identifiable from these cells ({free}): {parts}; {thin}.{loose}"

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "verdict": self.sentence,
            "model": self.model,
            "identifiable": self.identifiable,
            "null_dimension": self.null_dimension,
            "gauge": self.gauge,
            "components": len(self.parts),
            "undetermined_factors": len(self.undetermined),
            "loose_items": self.loose_items,
            "item_null_dimension": self.item_null_dimension,
            "error_bound": self.error_bound,
            "parts": [part.to_dict() for part in self.parts[:NAMED]],
        }

    def __repr__(self) -> str:
        return f"<GenericIdentifiability: {self.sentence}>"


def generic_identifiability(items: Ids, factors: Ids, model: str = "pbm", *, seed: int = 0) -> GenericIdentifiability:
    """The verdict for observed cells given as two equally long arrays of ids; repeated cells count once."""
    item, item_ids = encode(items, "items")
    factor, factor_ids = encode(factors, "factors")
    if len(item) != len(factor):
        raise EluteError(f"{len(item):,} items but {len(factor):,} factors; give one of each for every observed cell")
    if not len(item):
        raise EluteError("there are no observed cells; give at least one item and its factor")
    cells = sort_cells(item, factor, len(item_ids), len(factor_ids))
    return judge_cells(*cells, factor_ids, model, seed=seed)


def judge_cells(
    offsets: Ints, factor: Codes, factor_ids: Sequence[Hashable], model: str = "pbm", *, seed: int = 0
) -> GenericIdentifiability:
    """The verdict for distinct cells ordered by item, factors rising, as in `Counts`; ids are only handed back."""
    chosen = parse_model(model)
    supports = group_supports(offsets, factor)
    n = len(factor_ids)
    left = count_degrees(supports, chosen, n, np.random.default_rng(seed))
    component = find_components(supports, n)
    items = np.bincount(component[supports.factor[supports.offsets[:-1]]], supports.items, n)
    missing = np.maximum(chosen.base - np.diff(supports.offsets), 0)
    by_component = np.argsort(component, kind="stable")
    starts = np.flatnonzero(np.diff(component[by_component], prepend=-1))
    parts = []
    for members in np.split(by_component, starts[1:]):
        null = int(left.null[np.unique(left.part[members])].sum())
        loose = (
            members[~_find_tied(left, members)] if null > min(len(members), chosen.base) * chosen.width else members[:0]
        )
        names, unsure = [factor_ids[t] for t in members], [factor_ids[t] for t in loose]
        parts.append(GenericComponent(names, int(items[component[members[0]]]), null, unsure))
    return GenericIdentifiability(
        model=chosen.name,
        null_dimension=int(left.null.sum()),
        gauge=chosen.gauge,
        parts=sorted(parts, key=lambda part: -len(part.factors)),
        loose_items=int(supports.items[missing > 0].sum()),
        item_null_dimension=int(missing @ supports.items),
        error_bound=left.error,
    )


def _find_tied(left: Degrees, members: Ints) -> NDArray[np.bool_]:
    """Of a component's factors, the largest set that hangs together."""
    part = np.where(left.together[members], left.part[members], -1)
    label, size = np.unique(part[part >= 0], return_counts=True)
    return np.asarray(part == label[np.argmax(size)])


def parse_model(model: str) -> FactorModel:
    """A model by name."""
    scalar = {"pbm": FactorModel("pbm", 1, 1), "affine": FactorModel("affine", 1, 2)}
    if model in scalar:
        return scalar[model]
    kind, _, size = model.partition(":")
    if kind == "vector" and size.isdecimal() and 1 <= int(size) <= MOST_DIMENSIONS:
        return FactorModel(model, int(size), int(size))
    raise EluteError(
        f"no model '{model}'; there are: pbm, affine, vector:D with D from 1 to {MOST_DIMENSIONS}, "
        "and, of pages, ubm, dbn, ccm, dcm, sdbn, cascade"
    )
