"""Documents by grade, scores by rank.

Conditional mutual information is the mean over grades of the information within each (Eq. 12), and within a grade it
does not change when a score is transformed monotonically: so ranks are all that any estimator here sees, and scores
of any scale and shape are alike to it. Tied documents are ranked in a random (seeded) order. That is no
approximation: the order within a tie is drawn without a look at the other score, so the information is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.errors import EluteError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_GRADES = 20
"""More distinct grades than this are a continuous quantity, and are cut into as many parts of equal size."""
SMALLEST = 20
"""Documents that a grade needs: with fewer, the error of its information is above any information worth knowing."""


@dataclass(frozen=True, eq=False)
class Stratum:
    """The documents of one grade, by the ranks (0 to n - 1) of their two scores."""

    grade: float
    x: Ints
    """Rank of the model's score."""
    y: Ints
    """Rank of the policy's score."""
    x_level: Ints
    """Which distinct value of the model's score, from 0: tied documents share it."""
    y_level: Ints
    rows: Ints
    """Where its documents stand among those given."""

    @property
    def n(self) -> int:
        return len(self.x)

    @property
    def is_constant(self) -> bool:
        """Whether one of the scores is: then it says nothing about the other."""
        return bool(self.x_level.max() == 0 or self.y_level.max() == 0)


def stratify(
    scores: ArrayLike, policy_scores: ArrayLike, grades: ArrayLike, rng: np.random.Generator
) -> tuple[list[Stratum], list[str]]:
    """The strata that can be used, and in words what was done to get them."""
    x, y, grade = (np.asarray(a, np.float64) for a in (scores, policy_scores, grades))
    if x.ndim != 1 or x.shape != y.shape or x.shape != grade.shape:
        raise EluteError(
            f"scores, policy_scores and grades must be equally long, not {x.shape}, {y.shape}, {grade.shape}"
        )
    for name, values in (("scores", x), ("policy_scores", y), ("grades", grade)):
        if np.isnan(values).any():
            raise EluteError(f"{np.isnan(values).sum():,} of {name} are NaN; leave these documents out")
    notes = []
    code, values = cut_grades(grade)
    distinct = len(np.unique(grade))
    if distinct > MOST_GRADES:
        notes.append(
            f"{distinct:,} distinct grades: cut into {MOST_GRADES} parts by quantile; what depends on the grade "
            "within a part counts as dependence on the policy"
        )
    members = [np.flatnonzero(code == g) for g in range(len(values))]
    kept = [g for g, rows in enumerate(members) if len(rows) >= SMALLEST]
    if not kept:
        raise EluteError(f"no grade has {SMALLEST} documents; CMIP needs more judged documents")
    left_out = [g for g, rows in enumerate(members) if 0 < len(rows) < SMALLEST]
    if left_out:
        count = sum(len(members[g]) for g in left_out)
        named = ", ".join(f"{values[g]:g}" for g in left_out)
        notes.append(f"grades with fewer than {SMALLEST} documents left out: {named} ({count} documents)")
    strata = [Stratum(float(values[g]), *_rank_scores(x[members[g]], y[members[g]], rng), members[g]) for g in kept]
    constant = [s for s in strata if s.is_constant]
    if constant:
        named = ", ".join(f"{s.grade:g}" for s in constant)
        notes.append(f"a score is constant, which tells nothing and counts 0, within grade {named}")
    return strata, notes


def cut_grades(grade: Floats) -> tuple[Ints, Floats]:
    """The stratum of every document, and the grade of each stratum, or where it begins."""
    values, code = np.unique(grade, return_inverse=True)
    if len(values) > MOST_GRADES:
        values = np.quantile(grade, np.arange(MOST_GRADES) / MOST_GRADES)
        code = np.searchsorted(values, grade, "right") - 1
    return code.astype(np.int64), values


def _rank_scores(x: Floats, y: Floats, rng: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints]:
    ranks, levels = [], []
    for values in (x, y):
        order = np.lexsort((rng.random(len(values)), values))
        rank = np.empty(len(values), np.int64)
        rank[order] = np.arange(len(values))
        ranks.append(rank)
        levels.append(np.unique(values, return_inverse=True)[1].astype(np.int64))
    return ranks[0], ranks[1], levels[0], levels[1]
