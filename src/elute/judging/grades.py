"""From relevance to grades, by a rule that can be stated in a sentence.

Relevance is known up to a scale for each component. Quantiles stay within a query, so no scale matters. Thresholds
compare with fixed numbers, and so hold only where one scale does: within one component.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVELS = 4
"""Grades 0 to 3, the scale that Quepid's scorers have."""


@dataclass(frozen=True)
class Quantiles:
    """Equal shares of each query's items: ⌊levels · (below + alike/2) / items⌋, with the items of less relevance and
    those of the same, the item among them. Items alike get the same grade."""

    levels: int = LEVELS

    @property
    def description(self) -> str:
        return (
            f"grades 0 to {self.levels - 1} by quantiles of relevance within the query; "
            "queries whose items are all alike are left out"
        )

    def grades(self, relevance: Floats, query: Ints) -> Ints:
        """By item; `query` holds codes from 0."""
        order = np.lexsort((relevance, query))
        r, q = relevance[order], query[order]
        at = np.arange(len(order))
        starts = np.flatnonzero(np.concatenate(([True], (q[1:] != q[:-1]) | (r[1:] != r[:-1]))))
        alike = np.diff(starts, append=len(order))
        first = np.concatenate(([True], q[1:] != q[:-1])) if len(q) else np.zeros(0, np.bool_)
        begins = np.maximum.accumulate(np.where(first, at, 0))
        below = np.repeat(starts, alike) - begins
        items = np.bincount(query)[q]
        # in whole numbers, so that the edge of a quantile does not hang on rounding
        grade = self.levels * (2 * below + np.repeat(alike, alike)) // (2 * items)
        out = np.empty(len(order), np.int64)
        out[order] = grade
        return out


@dataclass(frozen=True)
class Thresholds:
    """The number of thresholds that relevance reaches."""

    cuts: tuple[float, ...]

    @property
    def levels(self) -> int:
        return len(self.cuts) + 1

    @property
    def description(self) -> str:
        cuts = ", ".join(f"{cut:g}" for cut in self.cuts)
        return f"grades 0 to {len(self.cuts)}: how many of the thresholds {cuts} relevance reaches"

    def grades(self, relevance: Floats, query: Ints) -> Ints:
        """By item, whatever its query."""
        return np.searchsorted(np.array(self.cuts), relevance, side="right").astype(np.int64)


Rule = Quantiles | Thresholds


def parse_rule(text: str | None, levels: int | None) -> Rule:
    """The rule in words of the command line: `quantiles`, or thresholds such as `0.1,0.3`."""
    if text is None or text == "quantiles":
        return Quantiles(LEVELS if levels is None else levels)
    try:
        cuts = tuple(float(cut) for cut in text.split(","))
    except ValueError:
        raise EluteError(f"`grades=` is '{text}', neither 'quantiles' nor thresholds such as 0.1,0.3,0.6") from None
    rising = all(a < b for a, b in pairwise(cuts))
    if not rising or not all(math.isfinite(cut) and cut > 0 for cut in cuts):
        raise EluteError(f"`grades='{text}'`: thresholds must be numbers above 0 in rising order, as in 0.1,0.3,0.6")
    if levels is not None and levels != len(cuts) + 1:
        raise EluteError(
            f"`grades='{text}'` makes {len(cuts) + 1} grades, not the {levels} of `levels=`; drop one of them"
        )
    return Thresholds(cuts)
