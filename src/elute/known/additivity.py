"""Do clicks contradict a formula? Score tests of what it leaves out, with clusters.

A structure of effects says that two columns act together as the product of what each does (or that one does nothing at
all). Columns E beside those of the formula, X, would show otherwise. The score of E at the fit, less what X explains of
it, has expectation 0 if the formula is right:

    U = Σ_g u_g,  u_g = Eᵀs_g - I_EX·I_XX⁻¹·Xᵀs_g

with s_g the clicks of cluster g less those expected given every item's number of clicks (`dependence`), and I the
information. Uᵀ(Σ u_g·u_gᵀ)⁻¹U, scaled as F(q, G - q) for q columns and G clusters, then tests it, however clicks of a
cluster depend on each other. Columns with many values are taken in bands of like effect: few questions, asked of many
clicks each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from scipy.special import fdtrc

from elute.cells.counts import Cells
from elute.cells.formula import BiasFormula
from elute.estimate.solve.effect_errors import inform_effects, tie
from elute.estimate.solve.effects import EffectSpace
from elute.estimate.solve.laplacian import conjugate_columns, diagonal, multiply_columns
from elute.estimate.solve.problem import Floats
from elute.identify.effects.design import EffectDesign
from elute.known.dependence import ScoreParts

Ints = NDArray[np.int64]

BANDS = 4
"""Of a column's values, at most, where two columns may act otherwise than by the product."""

SHOWN = 6
"""Cells that are named, those farthest off first."""

LEVEL = 0.05
_DENSE = 1_000
"""Effects up to which their information is one dense matrix; that of more is solved step by step."""
_SINGULAR, _SINGULAR_STEPS = 1e-9, 1e-7
"""Information on a question, of the most on any, that is rounding: of a dense matrix, and of steps."""
_SHARE, _STEPS = 1e-10, 5_000
_FEWEST = 10
"""Clusters for each question asked: with fewer none is."""


class ColumnTest(NamedTuple):
    """Whether `columns` act otherwise than the formula says: how sure that is, how far clicks are off (the root mean
    square of log observed/expected, over expected clicks), and where most. `p_value` is None where the log cannot
    tell."""

    columns: tuple[str, ...]
    p_value: float | None
    questions: int
    distortion: float
    cells: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "columns": list(self.columns)}


class FormulaNull(NamedTuple):
    """A fit: the cells, propensities, the formula's columns that are determined, information and scores by cluster."""

    factors: pa.Table
    cells: Cells
    o: Floats
    x: csr_array
    w: Floats
    scores: ScoreParts


def list_untested(formula: BiasFormula, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """What a formula leaves out: columns, and pairs of its own that it does not join."""
    joined = [{one.column for one in term.variables} for term in formula.terms]
    alone = [(column,) for column in columns if column not in formula.columns]
    pairs = combinations([column for column in columns if column in formula.columns], 2)
    return [*alone, *(pair for pair in pairs if not any(set(pair) <= term for term in joined))]


def build_null(
    design: EffectDesign, cells: Cells, o: Floats, apart: NDArray[np.bool_], cluster: NDArray[np.integer]
) -> FormulaNull:
    """At the propensities of a conditional fit (`estimate.solve.conditional`). `apart`: factors without a finite one,
    whose items are left out; `cluster`: of every item."""
    items = len(cells.offsets) - 1
    item = np.repeat(np.arange(items), np.diff(cells.offsets))
    seen = cells.impressions * o[cells.factor]
    clicks, reach = (np.bincount(item, amounts, items) for amounts in (cells.clicks, seen))
    lost = np.bincount(item, apart[cells.factor], items) > 0
    rate = np.divide(clicks, reach, out=np.zeros(items), where=(reach > 0) & ~lost)
    w = rate[item] * seen
    span, _ = tie(design, *cells[:2], w, np.arange(len(o)))
    codes = np.unique(cluster, return_inverse=True)[1][item]
    amount = np.where(lost[item], 0.0, cells.clicks - w)
    scores = ScoreParts(codes, cells.factor.astype(np.int64), amount, int(codes.max(initial=-1)) + 1)
    return FormulaNull(design.factors, cells, o, EffectSpace.of(design, span).x, w, scores)


def assess_columns(null: FormulaNull, columns: tuple[str, ...]) -> ColumnTest:
    """Whether these columns act as the formula says."""
    for most in range(BANDS, 1, -1):  # few clusters answer few questions
        bands = [find_bands(null, column, most) for column in columns]
        block = np.ravel_multi_index(tuple(bands), tuple(int(one.max()) + 1 for one in bands))
        block = np.asarray(np.unique(block, return_inverse=True)[1], np.int64)
        p_value, questions = _test_columns(null, np.eye(int(block.max()) + 1)[block])
        if p_value is not None:
            break
    distortion, cells = _list_cells(null, columns, block)
    return ColumnTest(columns, p_value, questions, distortion, cells)


def find_bands(null: FormulaNull, column: str, most: int) -> Ints:
    """By factor, the band of its value: values in order of their mean propensity, as many clicks in each band."""
    codes = pc.dictionary_encode(null.factors[column]).combine_chunks().indices.to_numpy().astype(np.int64)
    mass = np.bincount(null.cells.factor, null.w, len(codes))
    total = np.bincount(codes, mass)
    mean = np.bincount(codes, mass * np.log(np.where(null.o > 0, null.o, 1.0))) / np.maximum(total, 1e-300)
    order = np.argsort(mean, kind="stable")
    upto = np.cumsum(total[order]) - total[order] / 2
    band = np.empty(len(total), np.int64)
    band[order] = np.minimum((upto / max(total.sum(), 1e-300) * most).astype(np.int64), most - 1)
    band = band if len(total) > most else np.arange(len(total))
    return np.asarray(np.unique(band, return_inverse=True)[1][codes], np.int64)


def _test_columns(null: FormulaNull, extra: Floats) -> tuple[float | None, int]:
    """The p-value and how many questions were asked."""
    n, scores = len(null.o), null.scores
    explained, left, least = _explain(null, extra)
    value, vector = np.linalg.eigh((left + left.T) / 2)
    asks = vector[:, value > least]
    questions, clusters = asks.shape[1], scores.clusters
    if not questions or clusters < _FEWEST * questions:
        return None, questions
    table = csr_array((scores.amount, (scores.cluster, scores.factor)), shape=(clusters, n))
    parts = np.asarray((table @ extra) - (table @ null.x) @ explained) @ asks
    total = parts.sum(axis=0)
    centred = parts - total / clusters
    spread = centred.T @ centred * (clusters / (clusters - 1))
    found = float(total @ np.linalg.pinv(spread, rcond=1e-12, hermitian=True) @ total)
    scaled = found * (clusters - questions) / (questions * (clusters - 1))
    return float(fdtrc(questions, clusters - questions, scaled)), questions


def _explain(null: FormulaNull, extra: Floats) -> tuple[Floats, Floats, float]:
    """I_XX⁻¹·I_XE, the information I_EE - I_EX·I_XX⁻¹·I_XE that is left to E, and how much of it is none."""
    known, x, cells = null.x.shape[1], null.x, null.cells[:2]
    if known <= _DENSE:
        inform = inform_effects(*cells, null.w, csr_array(hstack((x, csr_array(extra)), format="csr")))
        explained = np.asarray(
            np.linalg.lstsq(inform[:known, :known], inform[:known, known:], rcond=None)[0], np.float64
        )
        left = inform[known:, known:] - inform[known:, :known] @ explained
        return explained, left, _SINGULAR * max(float(np.diagonal(inform).max(initial=0.0)), 1e-300)
    image = multiply_columns(*cells, null.w, extra)
    both, own = np.asarray(x.T @ image), extra.T @ image
    scale = x.power(2).T @ diagonal(*cells, null.w, len(null.o))
    explained = conjugate_columns(
        lambda v: np.asarray(x.T @ multiply_columns(*cells, null.w, x @ v)), both, scale, _SHARE, _STEPS
    )
    return explained, own - both.T @ explained, _SINGULAR_STEPS * max(float(np.diagonal(own).max()), 1e-300)


def _list_cells(null: FormulaNull, columns: tuple[str, ...], block: Ints) -> tuple[float, list[dict[str, Any]]]:
    """How far off clicks are, and the blocks where most: each named by the values that meet in it."""
    off = np.bincount(null.scores.factor, null.scores.amount, len(null.o))
    expected = np.bincount(null.cells.factor, null.w, len(null.o))
    more, much = np.bincount(block, off), np.bincount(block, expected)
    ratio = np.log(np.maximum(much + more, 0.5) / np.maximum(much, 0.5))
    rows = [
        {
            **{column: _name_values(null.factors, column, block == one) for column in columns},
            "clicks": round(float(much[one] + more[one]), 1),
            "expected": round(float(much[one]), 1),
            "log_ratio": float(f"{ratio[one]:.4g}"),
        }
        for one in np.argsort(-np.abs(more) / np.sqrt(np.maximum(much, 1.0)), kind="stable")[:SHOWN]
    ]
    return float(np.sqrt((much * ratio**2).sum() / max(much.sum(), 1e-300))), rows


def _name_values(factors: pa.Table, column: str, some: NDArray[np.bool_]) -> list[Any]:
    """The values that a block has, the first few."""
    values = pc.unique(factors[column].filter(pa.array(some))).to_pylist()
    return [value if isinstance(value, str | int | float | bool) else str(value) for value in values[:BANDS]]
