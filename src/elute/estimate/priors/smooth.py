"""A Gaussian prior on log-propensities: neighbouring positions, and contexts alike, have similar propensities.

Where few items hold a log together, maximum likelihood follows their noise. The prior adds to the
log-likelihood the penalty ½ Σ_k λ_k ‖D_k u‖² over u = (φ, latent effects), which keeps it concave:

- one bias column that is ordered (a position, or floating-point numbers): a random walk, one row
  φ(v') - φ(v) for each two neighbouring values. That of a position walks about a power law, which is how
  propensities usually fall: with k the rank of the value, the row is φ(v') - φ(v) + η·log(k'/k). The exponent
  η is as good as free (normal, with standard deviation 3);
- one that is not (names, codes): values scatter about a shared mean, one row φ(v) - h;
- several: φ = the sum of one effect a column + a deviation. Effects are random walks or scatter about 0 as
  above, deviations scatter about 0, and every column, and the deviations, have a strength λ of their own.

So the penalty has one row a factor and one a value, never one a pair. Whole numbers that are not positions
may be codes and count as names. Factors joined by a merge plan share one φ, drawn to the mean of what its
members' columns say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from elute.cells.factors import is_position
from elute.estimate.solve.problem import Codes, Problem
from elute.identify.effects.design import EffectDesign

_EXPONENT_SD = 3.0


class SmoothPrior(NamedTuple):
    """The prior's terms by name, each a matrix D over (factors, then latent effects); `size`: how many those are."""

    terms: dict[str, csr_array]
    size: int
    fixed: csr_array
    """Rows that no strength scales."""

    def root(self, strengths: Mapping[str, float]) -> csr_array:
        """R with RᵀR the prior's precision: the rows of every D times √λ."""
        return csr_array(vstack([self.fixed, *(rows * strengths[name] ** 0.5 for name, rows in self.terms.items())]))


class _BiasColumn(NamedTuple):
    """A bias column as codes: in order of value where `ordered`."""

    name: str
    code: Codes
    values: int
    ordered: bool
    position: bool


def build_smooth_prior(problem: Problem) -> SmoothPrior:
    """The prior for the factors of `problem`; without terms where no column has two values."""
    columns = [
        column for name in problem.factors.column_names if (column := _encode_column(problem.factors, name)).values > 1
    ]
    n = problem.n_factors
    if len(columns) > 1:
        return _build_additive(columns, problem.merged, n)
    if not columns:
        return SmoothPrior({}, n, csr_array((0, n)))
    (only,) = columns
    nodes = np.empty(only.values, np.int64)
    nodes[only.code] = problem.merged
    if not only.ordered:
        return SmoothPrior(
            {only.name: _build_rows(n + 1, nodes, [np.full(only.values, n)])}, n + 1, csr_array((0, n + 1))
        )
    size = n + only.position
    return SmoothPrior(
        {only.name: _build_walk(size, nodes, n if only.position else None)},
        size,
        _build_exponents(size, [n][: only.position]),
    )


def build_effect_prior(design: EffectDesign) -> tuple[SmoothPrior, csr_array]:
    """The prior of a formula's smooth terms, whose latent effects are the effects of their levels, and an exponent each
    that is a position; and how these follow from the effects and exponents, whose columns come last. Levels that have
    no order scatter about 0."""
    n, size = design.place.shape
    smooth = [one for one in design.terms if one.term.variables[0].kind == "smooth"]
    columns = [_encode_column(design.factors, one.term.variables[0].column) for one in smooth]
    exponents = {column.name: k for k, column in enumerate(column for column in columns if column.position)}
    starts = n + np.cumsum([0, *(column.values for column in columns)])
    total = int(starts[-1]) + len(exponents)
    terms, row, at = {}, [], []
    for start, one, column in zip(starts, smooth, columns, strict=False):
        nodes = start + np.arange(column.values)
        exponent = int(starts[-1]) + exponents[column.name] if column.position else None
        terms[column.name] = _build_walk(total, nodes, exponent) if column.ordered else _build_rows(total, nodes, [])
        code = np.empty(len(one.example), np.int64)
        code[one.level] = column.code
        effect = one.column >= 0
        row.append(nodes[code[effect]] - n)
        at.append(one.start + one.column[effect])
    row.append(np.arange(len(exponents)) + total - n - len(exponents))
    at.append(size + np.arange(len(exponents)))
    place = np.concatenate(row), np.concatenate(at)
    follow = csr_array((np.ones(len(place[0])), place), shape=(total - n, size + len(exponents)))
    latent = [int(starts[-1]) + k for k in exponents.values()]
    return SmoothPrior(terms, total, _build_exponents(total, latent)), follow


def _build_additive(columns: list[_BiasColumn], merged: Codes, n: int) -> SmoothPrior:
    """Effects by column and deviations; after the effects, exponents. The overall level is that of the first
    ordered column, or one more latent."""
    starts = n + np.cumsum([0, *(column.values for column in columns)])
    ordered = [column.name for column in columns if column.ordered]
    exponents = {column.name: int(starts[-1]) + k for k, column in enumerate(c for c in columns if c.position)}
    size = int(starts[-1]) + len(exponents) + (not ordered)
    effects = [start + column.code for start, column in zip(starts, columns, strict=False)]
    if not ordered:
        effects.append(np.full(len(merged), size - 1))
    terms = {}
    for start, column in zip(starts, columns, strict=False):
        nodes = start + np.arange(column.values)
        if not column.ordered:
            rows = _build_rows(size, nodes, [])
        else:
            rows = _build_walk(size, nodes, exponents.get(column.name))
            if column.name != ordered[0]:
                rows = vstack([rows, _build_rows(size, nodes[:1], [])])
        terms[column.name] = csr_array(rows)
    terms[" × ".join(column.name for column in columns)] = _build_rows(size, merged.astype(np.int64), effects)
    return SmoothPrior(terms, size, _build_exponents(size, list(exponents.values())))


def _build_walk(size: int, nodes: NDArray[np.int64], exponent: int | None) -> csr_array:
    """A row for each two neighbours, with their share of the power law."""
    rows = _build_rows(size, nodes[1:], [nodes[:-1]])
    if exponent is None:
        return rows
    ranks = np.arange(1, len(nodes) + 1)
    fall = np.log(ranks[1:] / ranks[:-1])[nodes[1:] != nodes[:-1]]
    at = np.arange(len(fall)), np.full(len(fall), exponent)
    return csr_array(rows + csr_array((fall, at), shape=rows.shape))


def _build_exponents(size: int, nodes: list[int]) -> csr_array:
    """The prior of the exponents themselves."""
    return csr_array(
        (np.full(len(nodes), 1.0 / _EXPONENT_SD), (np.arange(len(nodes)), nodes)), shape=(len(nodes), size)
    )


def _build_rows(size: int, plus: NDArray[np.int64], minus: list[NDArray[np.int64]]) -> csr_array:
    """One row for each entry of `plus`: 1 there, -1 at the same entry of each `minus`; none where they cancel."""
    row = np.tile(np.arange(len(plus)), 1 + len(minus))
    value = np.repeat([1.0, *[-1.0] * len(minus)], len(plus))
    matrix = csr_array((value, (row, np.concatenate((plus, *minus)))), shape=(len(plus), size))
    matrix.eliminate_zeros()
    return csr_array(matrix[np.flatnonzero(np.diff(matrix.indptr))])


def _encode_column(table: pa.Table, name: str) -> _BiasColumn:
    column = table[name].combine_chunks()
    if (is_position(table, name) or pa.types.is_floating(column.type)) and not column.null_count:
        numbers = column.to_numpy(zero_copy_only=False)
        if not np.isnan(numbers).any():
            values, code = np.unique(numbers, return_inverse=True)
            return _BiasColumn(name, code.astype(np.int32), len(values), True, is_position(table, name))
    encoded = column.dictionary_encode(null_encoding="encode")
    code = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return _BiasColumn(name, code, len(encoded.dictionary), False, False)
