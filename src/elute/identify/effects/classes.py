"""Classes of factors whose ratios a log determines, where a formula ties its factors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.identify.effects.design import EffectDesign, find_design
from elute.identify.effects.span import Span, find_span
from elute.kernels.forest import merge_edges


def join_classes(root: NDArray[np.int32], factors: pa.Table) -> NDArray[np.int32]:
    """For every factor the smallest of its class; `root`: of its component. Without a formula components are the
    classes."""
    design = find_design(factors)
    return root if design is None else number_classes(span_forest(design, root).key_factors(design))


def span_forest(design: EffectDesign, root: NDArray[np.int32]) -> Span:
    """What the components of a graph tell of effects."""
    return find_span(design, *link_alike(design, root).T)


def link_alike(design: EffectDesign, root: NDArray[np.int32]) -> NDArray[np.int64]:
    """The fewest pairs of factors that say as much as the components of a graph: neighbours in an order in which these
    have most effects in common, so that differences are of few effects."""
    terms = sorted(design.terms, key=lambda one: len(one.example))
    keys: list[NDArray[np.integer]] = [*(one.level for one in terms), root]
    order = np.lexsort(keys)
    same = np.flatnonzero(root[order[1:]] == root[order[:-1]])
    return np.stack((order[same + 1], order[same]), axis=1)


def number_classes(keys: NDArray[np.int64]) -> NDArray[np.int32]:
    """The first row that has the same numbers, of every row."""
    _, first, code = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first[code.ravel()].astype(np.int32)


def root_classes(number: NDArray[np.integer]) -> NDArray[np.int32]:
    """For every factor the smallest of its class, from the class's number."""
    first, member = np.unique(number, return_index=True, return_inverse=True)[1:]
    return np.asarray(first[member.ravel()], np.int32)


def join_pairs(number: NDArray[np.integer], pairs: NDArray[np.integer], factors: pa.Table) -> NDArray[np.int64]:
    """By class, from `number` of every factor's, its number once the factors of these pairs are comparable."""
    root = join_classes(merge_edges(root_classes(number), pairs.astype(np.int32)), factors)
    joined = np.unique(root, return_inverse=True)[1].ravel()
    return np.asarray(joined[np.unique(number, return_index=True)[1]], np.int64)
