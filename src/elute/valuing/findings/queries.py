"""Which queries win and lose by a ranking, with false discoveries controlled.

Of each query the difference of clicks a page has a standard error, from its items' clicks and from the propensities
that it needs; z = difference/error gives a p-value. Benjamini and Hochberg's step-up rule at level q then names those
queries of which no more than a share q is wrong, in expectation; a query named with the wrong sign counts as wrong too
(Benjamini and Yekutieli, 2005). Errors of propensities are shared, so that p-values hang together positively, which the
rule allows. Queries with few clicks are not tested: a normal distribution does not hold for them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from elute.cells.counts import Amounts
from elute.kernels.jit import jit
from elute.valuing.inputs.exposure import VALUED, Exposure
from elute.valuing.worth.find import Setting, Worth
from elute.valuing.worth.influence import DENSE, find_covariance

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.int32]
Ints = NDArray[np.int64]

FALSE_DISCOVERY = 0.1
FEWEST_CLICKS = 5
"""Of a query that is tested."""

GROUPS = ("head", "middle", "tail")
"""Queries by their pages: as few as have a third of these, as few again, the rest."""


class QueryEffects(NamedTuple):
    """By query: `difference` of clicks a page and its standard error, NaN where it is not valued; `q_value`: the least
    level at which it is named, NaN where it was not tested. By group: the sum over its pages, and its error."""

    difference: Floats
    se: Floats
    q_value: Floats
    group: Codes
    of_group: Floats
    group_se: Floats

    @property
    def winners(self) -> Flags:
        return np.asarray((self.q_value <= FALSE_DISCOVERY) & (self.difference > 0))

    @property
    def losers(self) -> Flags:
        return np.asarray((self.q_value <= FALSE_DISCOVERY) & (self.difference < 0))


def find_effects(worth: Worth, row: int, setting: Setting, queries: Flags, losses: bool = True) -> QueryEffects:
    """Of one ranking, by its `row` in the values, over the valued queries. `losses`: whether values can show one."""
    traffic, seen = setting.traffic, setting.seen
    base, which = worth.base[row - 1], worth.values.which[row]
    total = worth.by_query[row] - worth.by_query[base]
    relevance = np.nan_to_num(worth.relevance[min(row - 1, len(worth.relevance) - 1)].value)
    exposure = worth.values.exposure[row] - worth.values.exposure[base]
    plain = worth.values.plain[row] - worth.values.plain[base]
    posterior = setting.posterior
    typical = relevance if posterior is None else posterior.mean
    own = _sum_own(
        *traffic.cells[:3],
        traffic.query,
        traffic.n_queries,
        seen.usable,
        seen.beta,
        np.nan_to_num(typical),
        worth.values.gains[which],
        exposure,
        plain,
    )
    group = _group_queries(traffic.pages, queries)
    own_group = np.bincount(group[queries], own[queries], len(GROUPS))
    shared, shared_group = _share_propensities(worth, row, setting, relevance, exposure, group, queries)
    dispersion = setting.dispersion
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.where(queries, total / traffic.pages, np.nan)
        se = np.where(queries, np.sqrt(own * dispersion + shared) / traffic.pages, np.nan)
        z = np.abs(difference) / se
    tested = queries & (traffic.clicks >= FEWEST_CLICKS) & (se > 0)
    q_value = np.full(traffic.n_queries, np.nan)
    p = np.where(losses | (difference > 0), 2.0 * ndtr(-z), 1.0)
    q_value[tested] = adjust(p[tested])
    of_group = np.bincount(group[queries], total[queries], len(GROUPS)).astype(np.float64)
    return QueryEffects(difference, se, q_value, group, of_group, np.sqrt(own_group * dispersion + shared_group))


def adjust(p: Floats) -> Floats:
    """Benjamini and Hochberg's q-values: the least level at which each is rejected."""
    n = len(p)
    order = np.argsort(p)
    steps = p[order] * n / np.arange(1, n + 1)
    out = np.empty(n)
    out[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return out


def _group_queries(pages: Floats, queries: Flags) -> Codes:
    """The group of every query, by the pages of those that count."""
    out, chosen = np.full(len(pages), len(GROUPS) - 1, np.int32), np.flatnonzero(queries)
    order = chosen[np.argsort(-pages[chosen], kind="stable")]
    before = np.concatenate(([0.0], np.cumsum(pages[order])[:-1]))
    out[order] = np.minimum(before * len(GROUPS) / max(pages[order].sum(), 1.0), len(GROUPS) - 1).astype(np.int32)
    return out


def _share_propensities(
    worth: Worth, row: int, setting: Setting, relevance: Floats, exposure: Floats, group: Codes, queries: Flags
) -> tuple[Floats, Floats]:
    """What errors of propensities add to the variance of each query's sum, and of each group's."""
    traffic, seen = setting.traffic, setting.seen
    if seen.errors == "none" or seen.affine:
        return np.zeros(traffic.n_queries), np.zeros(len(GROUPS))
    groups = int(seen.group.max()) + 1
    if seen.errors == "this log" and groups <= DENSE:
        posterior = setting.posterior
        covariance = find_covariance(
            relevance if posterior is None else np.nan_to_num(posterior.mean), traffic.cells, seen
        )
    else:
        first = np.unique(seen.group, return_index=True)[1]
        covariance = np.nan_to_num(seen.log_se[first]) ** 2
    one: Exposure = setting.exposures[row - 1]
    slope = worth.relevance[min(row - 1, len(worth.relevance) - 1)].by_alpha
    begin = np.argsort(traffic.query, kind="stable")
    at = np.searchsorted(traffic.query[begin], np.arange(traffic.n_queries + 1))
    used = (one.item >= 0) & (one.state == VALUED)
    return _sum_shared(
        at,
        begin,
        *traffic.cells[:2],
        slope,
        exposure,
        traffic.offsets,
        traffic.factor,
        traffic.shown,
        np.where(used, one.item, -1),
        relevance,
        seen.usable,
        seen.group,
        np.ascontiguousarray(np.atleast_2d(covariance)),
        group,
        queries,
        len(GROUPS),
    )


@jit
def _sum_own(
    offsets: Ints,
    factor: Codes,
    impressions: Amounts,
    query: Codes,
    queries: int,
    alpha: Floats,
    beta: Floats,
    relevance: Floats,
    gain: Floats,
    exposure: Floats,
    plain: Floats,
) -> Floats:
    out = np.zeros(queries)
    for item in range(offsets.shape[0] - 1):
        for cell in range(offsets[item], offsets[item + 1]):
            t, n = factor[cell], float(impressions[cell])
            p = min(max(alpha[t] * relevance[item] + beta[t], 0.0), n / (n + 1.0))
            out[query[item]] += (exposure[item] * gain[cell] + plain[item]) ** 2 * n * p * (1.0 - p)
    return out


@jit
def _sum_shared(
    at: Ints,
    items: Ints,
    offsets: Ints,
    factor: Codes,
    slope: Floats,
    exposure: Floats,
    slots: Ints,
    slot_factor: Codes,
    shown: Floats,
    holds: Ints,
    relevance: Floats,
    alpha: Floats,
    group: Codes,
    covariance: Floats,
    part: Codes,
    queries: NDArray[np.bool_],
    parts: int,
) -> tuple[Floats, Floats]:
    """D·V·D of every query's sum, with D its derivatives by log α; V is a diagonal where it has one row."""
    n = covariance.shape[1]
    out, sums, d = np.zeros(at.shape[0] - 1), np.zeros((parts, n)), np.zeros(n)
    touched = np.empty(n, np.int64)
    for query in range(out.shape[0]):
        if not queries[query]:
            continue
        count = 0
        for i in range(at[query], at[query + 1]):
            item = items[i]
            for cell in range(offsets[item], offsets[item + 1]):
                g = group[factor[cell]]
                if d[g] == 0.0:
                    touched[count] = g
                    count += 1
                d[g] += exposure[item] * slope[cell] + 1e-300
        for slot in range(slots[query], slots[query + 1]):
            if holds[slot] >= 0:
                g = group[slot_factor[slot]]
                if d[g] == 0.0:
                    touched[count] = g
                    count += 1
                d[g] += shown[slot] * alpha[slot_factor[slot]] * relevance[holds[slot]] + 1e-300
        for a in range(count):
            i = touched[a]
            sums[part[query], i] += d[i]
            if covariance.shape[0] == 1:
                out[query] += d[i] * d[i] * covariance[0, i]
            else:
                for b in range(count):
                    out[query] += d[i] * covariance[i, touched[b]] * d[touched[b]]
        for a in range(count):
            d[touched[a]] = 0.0
    whole = np.zeros(parts)
    for k in range(parts):
        for i in range(n):
            if covariance.shape[0] == 1:
                whole[k] += sums[k, i] ** 2 * covariance[0, i]
            else:
                for j in range(n):
                    whole[k] += sums[k, i] * covariance[i, j] * sums[k, j]
    return out, whole
