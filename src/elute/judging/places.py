"""What is known of the place of each item among those of its query that it can be compared with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.judging.posteriors import ItemPosteriors
from elute.known.pairs import find_signs, order_items

Ints = NDArray[np.int64]


class KnownPlaces(NamedTuple):
    """By item. `group`: items of one query and one component, which are compared with each other. `alone`: whether a
    group has no other item. `known`: whether its place is known; that of an item alone, in the population."""

    group: Ints
    alone: NDArray[np.bool_]
    known: NDArray[np.bool_]


def find_places(
    posteriors: ItemPosteriors, row: Ints, query: Ints, component: Ints, compared: NDArray[np.bool_]
) -> KnownPlaces:
    """Compare items within queries and components; `row`: of each item in the posteriors. Items that are not `compared`
    are known nowhere."""
    _, group = np.unique(query * (int(component.max(initial=0)) + 1) + component, return_inverse=True)
    shape, rate, evidence = (np.where(compared, part[row], np.nan) for part in posteriors[:3])
    signs = find_signs(shape, rate, evidence, group, component)
    found = order_items(shape, rate, evidence, group, component, posteriors.population, signs)
    size = np.bincount(group[compared], minlength=int(group.max(initial=-1)) + 1)
    return KnownPlaces(group, size[group] == 1, found.known & compared)
