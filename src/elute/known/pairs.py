"""Which of two items is better, and how sure that is: from posteriors to the order within queries.

An item's relevance has a Gamma posterior (`elute.estimate.priors.gamma`): `shape`, `rate`. With r = X/rate, X of Gamma
distribution, X_i / (X_i + X_j) has a Beta distribution, so

    P(r_i > r_j) = I_z(shape_j, shape_i),   z = rate_j / (rate_i + rate_j)

is exact, given the posteriors; how sure its sign is, all pairs of the log decide (`elute.known.signs`). A comparison
whose probability is P has variance P(1 - P); knowing nothing, 1/4. An item's place in its query is *known* when the
comparisons with the others of the query have at most half of that variance on average, and its own impressions are at
least half of its posterior (`evidence`): the clicks then say more than the prior alone, which knows where an item was
shown. Where an item is alone it is compared with the population instead.

A pair is *certain* at 95% when max(P, 1 - P) is at least `CERTAIN` and both items have that evidence. The expected
share of pairs in the right order is the mean of max(P, 1 - P): what an order by the posteriors gets right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from elute._util.threads import map_threads, split_evenly
from elute.known.signs import Signs, count_pairs, fit_signs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CERTAIN = 0.96
"""How sure a sign must be that is called certain at 95%: a point more, for what no mixture of normals holds."""
KNOWN = 0.5
"""Share of the variance of its comparisons that may be left in an item whose place is known."""

OWN = 0.5
"""Share of its posterior that an item's own impressions must make up."""

OTHERS = 200
"""Items of its query, evenly spaced, that each item is compared with where a query has more."""

_JUDGED = 4_000
"""Queries, at most, whose pairs show how sure signs are."""

_MANY = 100_000
"""Comparisons that are worth several threads."""

_PAIRS = 4_000_000
"""Comparisons made at a time."""


class Order(NamedTuple):
    """What is known of the order of items.

    By item: `place`, the expected share of the others that it beats; `open`, the share of its comparisons' variance
    that the clicks leave; `evidence` as given. By query that has two items or more: `right`, the
    expected share of pairs in the right order, and `certain`, the share of pairs certain at 95%; `query`: its code."""

    place: Floats
    open: Floats
    evidence: Floats
    query: Ints
    right: Floats
    certain: Floats

    @property
    def known(self) -> NDArray[np.bool_]:
        """By item: whether its place is known."""
        return np.asarray((self.open <= KNOWN) & (self.evidence >= OWN))


def beats(shape: Floats, rate: Floats, other_shape: Floats, other_rate: Floats) -> Floats:
    """P(r > other r)."""
    given = np.broadcast_arrays(other_shape, shape, other_rate / (rate + other_rate))
    if given[0].size < _MANY:
        return np.asarray(betainc(*given))
    out = np.empty(given[0].shape)

    def fill(ends: tuple[int, int]) -> None:
        some = slice(*ends)
        out[some] = betainc(*(part[some] for part in given))

    map_threads(fill, split_evenly(len(out)))
    return out


def order_items(
    shape: Floats,
    rate: Floats,
    evidence: Floats,
    query: Ints,
    component: NDArray[np.integer],
    population: tuple[float, float],
    signs: Signs,
) -> Order:
    """Compare the items of every query; `query` holds codes. Items of different components cannot be compared.

    `population`: shape and rate of what an item that is alone in its query is compared with. Items without a posterior
    (NaN) are compared with nothing: all is open. `signs`: of `find_signs`."""
    place, left = np.full(len(shape), 0.5), np.ones(len(shape))
    usable, own = sort_usable(shape, rate), evidence >= OWN

    def order(rows: Ints) -> tuple[Ints, Floats, Floats] | None:
        n = rows.shape[1]
        if n == 1:
            one = rows[:, 0]
            p = beats(shape[one], rate[one], *np.broadcast_arrays(*map(np.float64, population)))
            place[one], left[one] = p, 4.0 * p * (1.0 - p)
            return None
        others = np.unique(np.linspace(0, n - 1, min(n, OTHERS)).astype(np.int64))
        a, b = rows[:, :, None], rows[:, None, others]
        apart = component[a] != component[b]
        p = compare(shape, rate, evidence, a, b, signs)
        p = np.where(apart | np.isnan(p), 0.5, p)
        p[:, others, np.arange(len(others))] = np.nan  # itself
        place[rows], left[rows] = np.nanmean(p, axis=2), np.nanmean(4.0 * p * (1.0 - p), axis=2)
        sure = np.fmax(p, 1.0 - p)
        certain = np.where(np.isnan(p), np.nan, (sure >= CERTAIN) & own[a] & own[b])
        return query[rows[:, 0]], np.nanmean(sure, axis=(1, 2)), np.nanmean(certain, axis=(1, 2))

    stacks = stack_queries(query, usable)
    few = len(usable) * OTHERS <= 2 * _PAIRS  # as many fit into memory at once
    found = [one for one in (map_threads(order, stacks) if few else map(order, stacks)) if one is not None]
    codes, right, sure = (
        (np.concatenate(part) for part in zip(*found, strict=True))
        if found
        else (np.empty(0, np.int64), np.empty(0), np.empty(0))
    )
    return Order(place, left, evidence, codes, right, sure)


def compare(shape: Floats, rate: Floats, evidence: Floats, a: Ints, b: Ints, signs: Signs) -> Floats:
    """P(r_a > r_b) by numbers of items. Of a pair that has evidence of its own, as sure as the log shows signs to be.
    Of another the prior is the most part, and how far to believe it the log does not show: halfway between the two."""
    p, own = beats(shape[a], rate[a], shape[b], rate[b]), (evidence[a] >= OWN) & (evidence[b] >= OWN)
    told = signs.adjust(p, np.where(own, (evidence[a] + evidence[b]) / 2, 1.0))
    return np.where(own, told, (p + told) / 2)


def find_signs(shape: Floats, rate: Floats, evidence: Floats, query: Ints, component: NDArray[np.integer]) -> Signs:
    """How sure signs are, from the pairs of items with evidence of their own; of many queries, some."""
    usable = sort_usable(shape, rate)
    items = usable[evidence[usable] >= OWN]
    codes = np.unique(query[items])
    some = codes[np.unique(np.linspace(0, len(codes) - 1, min(len(codes), _JUDGED)).astype(np.int64))]
    items = items if len(some) == len(codes) else items[np.isin(query[items], some)]
    counted = np.zeros_like(count_pairs(np.empty(0), np.empty(0)))
    for rows in stack_queries(query, items):
        one, other = np.triu_indices(min(rows.shape[1], OTHERS), 1)
        a, b = rows[:, one].ravel(), rows[:, other].ravel()
        same = component[a] == component[b]
        a, b = a[same], b[same]
        counted += count_pairs(beats(shape[a], rate[a], shape[b], rate[b]), (evidence[a] + evidence[b]) / 2)
    return fit_signs(counted)


def sort_usable(shape: Floats, rate: Floats) -> Ints:
    """Items with a posterior by their mean, so that evenly spaced ones do not hang on the order of a table."""
    usable = np.flatnonzero(np.isfinite(shape) & np.isfinite(rate) & (rate > 0))
    return usable[np.lexsort((rate[usable], shape[usable] / rate[usable]))]


def stack_queries(query: Ints, usable: Ints) -> Iterator[Ints]:
    """Rows of queries with equally many items, a query a line, not too many at a time; a line is in the order of
    `usable`."""
    order = usable[np.argsort(query[usable], kind="stable")]
    starts = np.flatnonzero(np.diff(query[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    for n in np.unique(sizes).tolist():
        first = starts[sizes == n]
        at_once = max(1, _PAIRS // (n * min(n, OTHERS)))
        for begin in range(0, len(first), at_once):
            yield order[first[begin : begin + at_once, None] + np.arange(n)]
