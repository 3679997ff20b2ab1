"""From posteriors of relevance to grades, by a rule that can be stated in a sentence.

An item's grade is the one that its posterior makes most probable, and not the one of its estimate: where items were
shown a few times, their estimates are mostly noise.

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
from elute.judging.bands import ProbableGrades, grade_places, grade_relevance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

LEVELS = 4
"""Grades 0 to 3, the scale that Quepid's scorers have."""


@dataclass(frozen=True)
class Quantiles:
    """Equal bands of an item's place within its query."""

    levels: int = LEVELS

    @property
    def description(self) -> str:
        return (
            f"grades 0 to {self.levels - 1}: the most probable of {self.levels} equal bands of place within the query"
        )

    def grade(
        self, shape: Floats, rate: Floats, query: Ints, population: tuple[float, float], wanted: Mask | None = None
    ) -> ProbableGrades:
        """By item; `query` holds codes. Items that are not `wanted` are only compared with."""
        return grade_places(shape, rate, query, population, self.levels, wanted)


@dataclass(frozen=True)
class Thresholds:
    """Bands of relevance between fixed numbers."""

    cuts: tuple[float, ...]

    @property
    def levels(self) -> int:
        return len(self.cuts) + 1

    @property
    def description(self) -> str:
        cuts = ", ".join(f"{cut:g}" for cut in self.cuts)
        return f"grades 0 to {len(self.cuts)}: how many of the thresholds {cuts} relevance most probably reaches"

    def grade(
        self, shape: Floats, rate: Floats, query: Ints, population: tuple[float, float], wanted: Mask | None = None
    ) -> ProbableGrades:
        """By item, whatever its query."""
        return grade_relevance(shape, rate, self.cuts)


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
