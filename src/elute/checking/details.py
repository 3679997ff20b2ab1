"""Why a log falls apart: its components in words, and the factors nothing links."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.cells.factors import describe, to_rows
from elute.cells.structure import Structure
from elute.identify.components import Components
from elute.log import ClickLog

SHOWN = 20
"""Components and isolated factors that are listed; their number is always given."""

_EXAMPLES = 3


class ComponentDetail(NamedTuple):
    """One component."""

    factors: int
    items: int
    impressions: int
    clicks: int
    example_factors: list[dict[str, object]]
    example_items: list[dict[str, object]]


class IsolatedFactor(NamedTuple):
    """A factor that is a component by itself."""

    factor: dict[str, object]
    items: int
    impressions: int
    reason: str


def describe_components(log: ClickLog, structure: Structure, found: Components) -> list[ComponentDetail]:
    """The largest components. Example items come from each one's rarest factor, which is quick to scan for."""
    shown = min(len(found), SHOWN)
    items = np.bincount(found.of_factor, weights=structure.items_in, minlength=len(found))
    clicks = np.bincount(found.of_factor, weights=log.survey.clicks, minlength=len(found))
    by_rarity = np.argsort(log.survey.impressions, kind="stable")
    rarest = _find_first(found.of_factor[by_rarity], by_rarity, shown)
    samples = log.engine.find_examples(log.roles, log.survey, rarest, _EXAMPLES) if len(found) > 1 else {}
    return [
        ComponentDetail(
            factors=int(found.factors[part]),
            items=int(items[part]),
            impressions=int(found.impressions[part]),
            clicks=int(clicks[part]),
            example_factors=to_rows(log.survey.factors, np.flatnonzero(found.of_factor == part)[:SHOWN]),
            example_items=to_rows(samples[rarest[part]], range(samples[rarest[part]].num_rows)) if samples else [],
        )
        for part in range(shown)
    ]


def find_isolated(log: ClickLog, structure: Structure, found: Components) -> tuple[int, list[IsolatedFactor]]:
    """How many factors are alone, and the first of them with the reason. A lone factor is no defect
    where it is the only one."""
    if len(found) == 1:
        return 0, []
    alone = np.flatnonzero(found.factors[found.of_factor] == 1)
    listed = []
    for factor in alone[:SHOWN]:
        row = to_rows(log.survey.factors, [factor])[0]
        n = int(structure.items_under[factor])
        shown = f"{describe(row)} was only ever shown with {n:,} {'item' if n == 1 else 'items'}"
        reason = f"{shown}, {'not seen' if n == 1 else 'none of them seen'} under any other factor"
        listed.append(IsolatedFactor(row, n, int(log.survey.impressions[factor]), reason))
    return len(alone), listed


def _find_first(label: NDArray[np.int32], values: NDArray[np.int64], count: int) -> list[int]:
    """For the labels 0 … count − 1 the value at which each first appears."""
    _, first = np.unique(label, return_index=True)
    return [int(values[at]) for at in first[:count]]
