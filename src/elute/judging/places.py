"""What is known of the place of each item among those of its query that it can be compared with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.known.pairs import order_items

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class KnownPlaces(NamedTuple):
    """By item. `group`: items of one query and one component, which are compared with each other. `alone`: whether a
    group has no other item. `known`: whether its place is known; that of an item alone, in the population."""

    group: Ints
    alone: NDArray[np.bool_]
    known: NDArray[np.bool_]


def find_places(
    shape: Floats,
    rate: Floats,
    query: Ints,
    component: Ints,
    compared: NDArray[np.bool_],
    population: tuple[float, float],
) -> KnownPlaces:
    """Compare items within queries and components; items that are not `compared` are known nowhere."""
    _, group = np.unique(query * (int(component.max(initial=0)) + 1) + component, return_inverse=True)
    found = order_items(np.where(compared, shape, np.nan), np.where(compared, rate, np.nan), group, population)
    size = np.bincount(group[compared], minlength=int(group.max(initial=-1)) + 1)
    return KnownPlaces(group, size[group] == 1, found.known & compared)
