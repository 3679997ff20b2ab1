"""Numbers of a bias column as exact fractions, and curves over them.

Fractions, because ranks are exact: 0.1, 0.2 and 0.3 lie on a line as they are written, not as they are stored. The
curve is a natural cubic spline (linear beyond its ends) with knots among the values: its basis is x and, for inner
knots, d_k - d_last with d_k = ((x - k)³₊ - (x - end)³₊) / (end - k), x scaled to the column's range.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from elute.cells.formula import BiasVariable
from elute.errors import EluteError

KNOTS = 5
"""Of a spline, or one for each value where there are fewer."""


def expand_number(variable: BiasVariable, values: pa.Array) -> list[list[Fraction]]:
    """For each function of the variable's basis, its value at each of `values`."""
    at = [_read_number(variable, value) for value in values.to_pylist()]
    if variable.kind == "linear":
        return [at]
    knots = sorted(set(at))
    if len(knots) < 2:
        return [at]
    first, width = knots[0], knots[-1] - knots[0]
    places = np.unique(np.linspace(0, len(knots) - 1, min(KNOTS, len(knots))).round().astype(int))
    chosen = [(knots[place] - first) / width for place in places]
    scaled = [(x - first) / width for x in at]
    return [scaled, *([_bend(x, knot, chosen[-2]) for x in scaled] for knot in chosen[:-2])]


def _bend(x: Fraction, knot: Fraction, last: Fraction) -> Fraction:
    return _rise(x, knot) - _rise(x, last)


def _rise(x: Fraction, knot: Fraction) -> Fraction:
    """d_k, of a range that ends at 1."""
    return (max(x - knot, Fraction(0)) ** 3 - max(x - 1, Fraction(0)) ** 3) / (1 - knot)


def _read_number(variable: BiasVariable, value: object) -> Fraction:
    try:
        if isinstance(value, bool):
            raise ValueError
        return Fraction(repr(value) if isinstance(value, float) else str(value))
    except ValueError:
        raise EluteError(
            f"`bias=` has {variable}, but '{variable.column}' holds '{value}', which is no number"
        ) from None
