"""Inverse propensity weighting written plainly: one impression after the other (limits paper, Eq. 6 and 15).

A table of cells is a list of (item, factor, impressions, clicks).
"""

from __future__ import annotations

import itertools
import math
from statistics import mean


def impressions(table, item):
    """(clicked, factor) of every impression of an item."""
    for x, factor, n, c in table:
        if x == item:
            yield from [(1, factor)] * c + [(0, factor)] * (n - c)


def relevance(table, item, alpha, beta, clip=0.0, policy_aware=False):
    """The mean over impressions of (c - β)/max(α, τ), or with the mean α of the impressions in place of α."""
    seen = list(impressions(table, item))
    average = mean(alpha[t] for _, t in seen)
    return mean((c - beta[t]) / max(average if policy_aware else alpha[t], clip) for c, t in seen)


def outcomes(shown, p):
    """All clicks that impressions `shown` by factor can bring, and their probability."""
    for clicks in itertools.product(*(range(n + 1) for n in shown)):
        terms = (math.comb(n, c) * q**c * (1 - q) ** (n - c) for n, c, q in zip(shown, clicks, p, strict=True))
        yield clicks, math.prod(terms)
