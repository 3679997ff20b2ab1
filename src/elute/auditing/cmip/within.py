"""Documents of a query depend on each other: ranks, permutations and errors that know of queries.

With query effects in both scores, a test that takes documents for independent rejects a true null in up to half of all
logs. Ranks within queries have no query effects left; permuting them within a query (and grade) is exact whatever the
queries share; and the error of a mean comes from the sums of queries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from elute.auditing.cmip.independence import CLASSES, weigh_classes
from elute.auditing.cmip.strata import Floats, Ints, Stratum


def rank_within(scores: ArrayLike, query: Ints) -> Floats:
    """Where a document stands in its query, between 0 and 1; tied ones share the middle of their places."""
    level = np.unique(np.asarray(scores, np.float64), return_inverse=True)[1]
    pair, back, size = np.unique(query * (level.max(initial=0) + 1) + level, return_inverse=True, return_counts=True)
    owner = pair // (level.max(initial=0) + 1)
    of_query = np.bincount(query)
    middle = np.cumsum(size) - size / 2 - (np.cumsum(of_query) - of_query)[owner]
    return np.asarray((middle / of_query[owner])[back], np.float64)


def permute_within(query: Ints, strata: list[Stratum], permutations: int, rng: np.random.Generator) -> float:
    """The p-value of `elute.auditing.cmip.independence`'s statistic, by permutations within query and grade."""
    weight = weigh_classes()
    observed, permuted = 0.0, np.zeros(permutations)
    for stratum in strata:
        own = query[stratum.rows]
        order = np.argsort(own, kind="stable")
        x, y = (weight[(rank * CLASSES // stratum.n)[order]] for rank in (stratum.x, stratum.y))
        own = own[order]
        observed += float(np.sum((x.T @ y) ** 2) / stratum.n)
        for draw in range(permutations):
            shuffled = np.argsort(own + rng.random(stratum.n))
            permuted[draw] += float(np.sum((x.T @ y[shuffled]) ** 2) / stratum.n)
    return float((1 + np.sum(permuted >= observed * (1 - 1e-12))) / (1 + permutations))


def cluster_variance(values: Floats, query: Ints) -> float:
    """Of the mean, where values of one query depend on each other; infinite where there is one query."""
    sums = np.bincount(query, values - values.mean())
    queries = len(np.unique(query))
    if queries < 2:
        return float("inf")
    return float(np.sum(sums**2) / len(values) ** 2 * queries / (queries - 1))
