"""The design of a formula: by factor, the effects that its log propensity is the sum of.

Levels are coded as elsewhere: one column each, but for a reference where the rest of the term is there without it
(Chambers and Hastie, Statistical models in S). The overall level belongs to the items. So a coefficient says how a
level differs from its reference. What a log cannot tell of them it still cannot: that is for ranks to find.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from elute.cells.formula import BiasFormula, BiasTerm, BiasVariable, formula_of
from elute.identify.effects.numbers import expand_number

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_ONE = Fraction(1)


class TermColumns(NamedTuple):
    """A term's columns: `level` of each factor among those observed, `column` of each level or -1 (the reference);
    `basis` functions a level has, `example`: a factor of each level."""

    term: BiasTerm
    start: int
    level: Ints
    column: Ints
    basis: int
    example: Ints

    @property
    def stop(self) -> int:
        return self.start + int(self.column.max(initial=-1) + 1) * self.basis


@dataclass(frozen=True, eq=False)
class EffectDesign:
    """X, one row a factor: `place` has for each of its entries which of `numbers` it is."""

    formula: BiasFormula
    factors: pa.Table
    terms: tuple[TermColumns, ...]
    place: csr_array
    numbers: tuple[Fraction, ...]
    solved: Mapping[int, Mapping[int, Fraction]] = field(default_factory=dict)
    """Effects that a plan makes follow from others: these, each times a number."""
    free_of_plan: EffectDesign | None = None
    """What it was before that plan."""

    @property
    def size(self) -> int:
        """How many effects there are."""
        return int(self.place.shape[1])

    @cached_property
    def matrix(self) -> csr_array:
        """X in floating point."""
        values = np.array([float(number) for number in self.numbers])
        return csr_array((values[self.place.data - 1], self.place.indices, self.place.indptr), shape=self.place.shape)

    def residues(self, p: int) -> csr_array:
        """X modulo a prime."""
        values = np.array([number.numerator * pow(number.denominator, -1, p) % p for number in self.numbers], np.int64)
        return csr_array((values[self.place.data - 1], self.place.indices, self.place.indptr), shape=self.place.shape)

    def leave_out(self, columns: NDArray[np.bool_]) -> EffectDesign:
        """The same without these effects: as if all were 0."""
        place = self.place.tocoo()
        kept = ~columns[place.col]
        entries = csr_array((place.data[kept], (place.row[kept], place.col[kept])), shape=place.shape)
        return replace(self, place=entries)

    def roughen(self) -> EffectDesign:
        """The same without priors: smooth terms are levels like others."""
        terms = tuple(one._replace(term=one.term.roughen()) for one in self.terms)
        return replace(self, formula=BiasFormula(tuple(one.term for one in terms)), terms=terms)

    def follow(self, p: int | None = None) -> csr_array:
        """All effects by those that are left: one row each, in floating point or modulo a prime."""
        row, col, data = list(range(self.size)), list(range(self.size)), [_ONE] * self.size
        for effect, others in self.solved.items():
            data[effect] = Fraction(0)
            row += [effect] * len(others)
            col += list(others)
            data += list(others.values())
        values = [float(x) if p is None else x.numerator * pow(x.denominator, -1, p) % p for x in data]
        kind = np.float64 if p is None else np.int64
        return csr_array((np.array(values, kind), (row, col)), shape=(self.size, self.size))

    @property
    def smooth(self) -> NDArray[np.bool_]:
        """Effects that a prior holds together."""
        out = np.zeros(self.size, np.bool_)
        for one in self.terms:
            out[one.start : one.stop] = one.term.variables[0].kind == "smooth"
        return out

    @property
    def main(self) -> slice:
        """Columns of the term with most of them, all 0 or 1: the one that a forest eliminates."""
        plain = [one for one in self.terms if not any(part.is_number for part in one.term.variables)]
        if not plain:
            return slice(0, 0)
        most = max(plain, key=lambda one: one.stop - one.start)
        return slice(most.start, most.stop)


def find_design(factors: pa.Table) -> EffectDesign | None:
    """Of the formula that ties these factors; None where there is none."""
    formula = formula_of(factors)
    return None if formula is None else build_design(factors, formula)


def build_design(factors: pa.Table, formula: BiasFormula) -> EffectDesign:
    """The design of these factors."""
    numbers: dict[Fraction, int] = {_ONE: 0}
    there: set[frozenset[BiasVariable]] = {frozenset(), *(term.key for term in formula.terms)}
    terms: list[TermColumns] = []
    blocks: list[csr_array] = []
    start = 0
    for term in formula.terms:
        columns, block = _code_term(factors, term, there, start, numbers)
        terms.append(columns)
        blocks.append(block)
        start = columns.stop
    place = csr_array(hstack(blocks, format="csr"))
    return EffectDesign(formula, factors, tuple(terms), place, tuple(numbers))


def _code_term(
    factors: pa.Table, term: BiasTerm, there: set[frozenset[BiasVariable]], start: int, numbers: dict[Fraction, int]
) -> tuple[TermColumns, csr_array]:
    n = factors.num_rows
    level, dropped = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for variable in term.variables:
        if not variable.is_number:
            codes, reference = _encode(factors, variable.column)
            level = np.unique(level * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
            if term.key - {variable} in there:
                dropped |= codes == reference
    _, example = np.unique(level, return_index=True)
    kept = ~dropped[example]
    column = np.where(kept, np.cumsum(kept) - 1, -1)
    values = _expand(factors, term, numbers)
    basis = len(values)
    rows = np.flatnonzero(column[level] >= 0)
    at = (column[level[rows]] * basis)[:, None] + np.arange(basis)
    place = np.stack([values[k][rows] for k in range(basis)], axis=1) + 1
    shape = n, int(column.max(initial=-1) + 1) * basis
    block = csr_array((place.ravel(), (rows.repeat(basis), at.ravel())), shape=shape, dtype=np.int64)
    return TermColumns(term, start, level, column, basis, example), block


def _expand(factors: pa.Table, term: BiasTerm, numbers: dict[Fraction, int]) -> list[Ints]:
    """For each function of the term's number, which of `numbers` a factor has; 1 where the term has none."""
    for variable in term.variables:
        if variable.is_number:
            coded = pc.dictionary_encode(factors[variable.column]).combine_chunks()
            code = coded.indices.to_numpy()
            found = expand_number(variable, coded.dictionary)
            return [np.array([numbers.setdefault(x, len(numbers)) for x in one], np.int64)[code] for one in found]
    return [np.zeros(factors.num_rows, np.int64)]


def _encode(factors: pa.Table, column: str) -> tuple[Ints, int]:
    """Values as codes, and the reference: the one of most factors, of those alike the first."""
    codes = pc.dictionary_encode(factors[column]).combine_chunks().indices.to_numpy().astype(np.int64)
    return codes, int(np.bincount(codes).argmax())
