"""Factors that are to share one propensity, under a formula: equal sums of effects.

X_a·β = X_b·β for each pair leaves β = Z·γ, and X·Z is the design of what is left. Fractions, so that ranks stay exact;
effects that follow from others lose their column's entries to those.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elute.errors import EluteError
from elute.identify.effects.design import EffectDesign, find_design
from elute.kernels.merge import merge_factors

_Row = dict[int, Fraction]


def constrain(design: EffectDesign, pairs: NDArray[np.integer]) -> EffectDesign:
    """The design under which the factors of every pair have equal propensities."""
    if len(pairs) and design.smooth.any():
        raise EluteError("a plan makes effects equal, and smooth(…) in `bias=` alike: leave out one of them")
    solved: dict[int, _Row] = {}
    for a, b in pairs.tolist():
        row = _substitute(_subtract(_read_row(design, a), _read_row(design, b)), solved)
        if not row:
            continue
        lead = max(row)
        follows = {column: -value / row[lead] for column, value in row.items() if column != lead}
        solved = {column: _substitute(old, {lead: follows}) for column, old in solved.items()}
        solved[lead] = follows
    return design if not solved else _rewrite(design, solved)


def join_factors(factors: pa.Table, pairs: NDArray[np.integer]) -> NDArray[np.int32]:
    """For every factor the number of its propensity once those of every pair are one: under a formula, of its sum of
    effects."""
    design = find_design(factors)
    if design is None:
        return merge_factors(factors.num_rows, pairs)
    x = constrain(design, pairs).matrix
    x.sort_indices()
    rows = [(tuple(x.indices[a:b]), tuple(x.data[a:b])) for a, b in pairwise(x.indptr)]
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int32)


def _rewrite(design: EffectDesign, solved: dict[int, _Row]) -> EffectDesign:
    numbers = {number: at for at, number in enumerate(design.numbers)}
    place = design.place
    touched = np.flatnonzero(np.isin(place.indices, list(solved)))
    rows = np.unique(np.searchsorted(place.indptr, touched, side="right") - 1)
    kept = place.tocoo()
    old = ~np.isin(kept.row, rows)
    row, col, data = list(kept.row[old]), list(kept.col[old]), list(kept.data[old])
    for factor in rows.tolist():
        for column, value in _substitute(_read_row(design, factor), solved).items():
            row.append(factor)
            col.append(column)
            data.append(numbers.setdefault(value, len(numbers)) + 1)
    entries = csr_array((np.array(data, np.int64), (np.array(row), np.array(col))), shape=place.shape)
    return replace(design, place=entries, numbers=tuple(numbers), solved=solved, free_of_plan=design)


def _read_row(design: EffectDesign, factor: int) -> _Row:
    begin, end = design.place.indptr[factor], design.place.indptr[factor + 1]
    entries = zip(design.place.indices[begin:end].tolist(), design.place.data[begin:end].tolist(), strict=True)
    return {column: design.numbers[place - 1] for column, place in entries if design.numbers[place - 1]}


def _subtract(one: _Row, other: _Row) -> _Row:
    return _tidy({column: one.get(column, Fraction(0)) - other.get(column, Fraction(0)) for column in {*one, *other}})


def _substitute(row: _Row, solved: dict[int, _Row]) -> _Row:
    out = {column: value for column, value in row.items() if column not in solved}
    for column, times in row.items():
        for other, value in solved.get(column, {}).items():
            out[other] = out.get(other, Fraction(0)) + times * value
    return _tidy(out)


def _tidy(row: _Row) -> _Row:
    return {column: value for column, value in row.items() if value}
