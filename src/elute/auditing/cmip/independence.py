"""Are the scores independent within grades: a permutation test that does not need a single permutation.

Ranks go into 16 classes of equal size, which gives a table of counts for each grade. Were the policy's scores permuted
within grades, the table would be a random one with the same margins, and such tables can be drawn as they are
(Patefield 1981): the test is that of permutations, exact, at a cost that does not grow with the documents.

The statistic is Σ n Σ_jk ρ²_jk / (j(j + 1) k(k + 1)) over grades, ρ_jk the correlation of the j-th Legendre polynomial
of one rank with the k-th of the other: (1, 1) is Spearman's, the others see dependence that is not monotone. The
weights are those of Anderson and Darling.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import legendre

from elute.auditing.cmip.strata import Floats, Stratum

CLASSES = 16
DEGREES = 6


def p_value(strata: list[Stratum], permutations: int, rng: np.random.Generator) -> float:
    """Share of permutations, the observed one among them, with dependence as strong as observed."""
    from scipy.stats import random_table  # slow to import

    basis = weigh_classes()
    observed, permuted = 0.0, np.zeros(permutations)
    for stratum in strata:
        x, y = (rank * CLASSES // stratum.n for rank in (stratum.x, stratum.y))
        table = np.bincount(x * CLASSES + y, minlength=CLASSES**2).reshape(CLASSES, CLASSES).astype(np.float64)
        drawn = random_table.rvs(table.sum(1), table.sum(0), size=permutations, random_state=rng)
        observed += float(_statistic(table[None], basis)[0])
        permuted += _statistic(drawn.reshape(-1, CLASSES, CLASSES), basis)
    return float((1 + np.sum(permuted >= observed * (1 - 1e-12))) / (1 + permutations))


def weigh_classes() -> Floats:
    """Weighted Legendre polynomials of degree 1 to 6 at the middles of the classes: (classes, degrees)."""
    middle = (2 * np.arange(CLASSES) + 1) / CLASSES - 1
    degree = np.arange(1, DEGREES + 1)
    values = legendre.legvander(middle, DEGREES)[:, 1:]
    return np.asarray(values * np.sqrt((2 * degree + 1) / (degree * (degree + 1))), np.float64)


def _statistic(tables: Floats, basis: Floats) -> Floats:
    """n Σ ρ² of each of some tables."""
    products = basis.T @ tables @ basis
    return np.asarray(np.sum(products**2, axis=(1, 2)) / tables.sum((1, 2)), np.float64)
