"""Which effects of a formula a log determines, in words and numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.factors import to_rows
from elute.identify.effects.classes import span_forest
from elute.identify.effects.design import EffectDesign, TermColumns, find_design
from elute.identify.effects.span import Span

SHOWN = 20
"""Levels of a term that are listed of those that are not determined; their number is always given."""


class TermDetail(NamedTuple):
    """A term: its levels, or the functions of a number; into how many classes they fall within which they can be
    compared; how many have a class other than the reference's, and the first of these."""

    term: str
    levels: int
    classes: int
    undetermined: int
    open: list[dict[str, Any]]


class Effects(NamedTuple):
    """What a formula asks for and what a log tells of it. `effects`: coefficients of the formula, `rank`: of the
    differences that items show; `rank_possible`: of those between any two factors. `product_components`: those that
    the log has where every combination stands for itself."""

    formula: str
    effects: int
    rank: int
    rank_possible: int
    product_components: int
    terms: list[TermDetail]

    @property
    def missing(self) -> int:
        """Independent comparisons that the log lacks."""
        return self.rank_possible - self.rank

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "missing": self.missing, "terms": [term._asdict() for term in self.terms]}


def describe_effects(root: NDArray[np.int32], factors: pa.Table) -> Effects | None:
    """`root`: the smallest factor of each one's component, with what a plan links; None without a formula."""
    design = find_design(factors)
    if design is None:
        return None
    span = span_forest(design, root)
    whole = span_forest(design, np.zeros_like(root))
    terms = [_describe_term(design, one, span) for one in design.terms]
    return Effects(str(design.formula), design.size, span.rank, whole.rank, len(np.unique(root)), terms)


def _describe_term(design: EffectDesign, one: TermColumns, span: Span) -> TermDetail:
    keys = span.key_effects()[one.start : one.stop]
    if one.basis > 1 or any(part.is_number for part in one.term.variables):
        free = int(keys.any(axis=1).sum())
        return TermDetail(str(one.term), len(keys), 1 + free, free, [])
    full = np.zeros((len(one.column), keys.shape[1]), np.int64)
    full[one.column >= 0] = keys[one.column[one.column >= 0]]
    distinct, code = np.unique(full, axis=0, return_inverse=True)
    lost = np.flatnonzero(code.ravel() != _find_home(one, code.ravel()))
    columns = [part.column for part in one.term.variables]
    rows = to_rows(design.factors.select(columns), one.example[lost[:SHOWN]])
    return TermDetail(str(one.term), len(full), len(distinct), len(lost), rows)


def _find_home(one: TermColumns, code: NDArray[np.intp]) -> int:
    """The class that the reference is in; without one, that of most levels."""
    reference = np.flatnonzero(one.column < 0)
    return int(code[reference[0]] if len(reference) else np.bincount(code).argmax())
