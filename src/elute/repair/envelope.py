"""The cheapest line of another colour: lower envelopes of lines, split by the bits of their colours.

The cost of swapping item x out of factor s is a line u + v·b in b = 1/o(t), with v = 1/r(x) and
u = 1/(r(x)·o(s)) (Eq. 3). Which item of any OTHER component comes cheapest at a given b? Two different
components differ in some bit of their numbers. So one lower envelope for each bit and each of its two
values, over the lines that have it, answers all queries that have the other: 2·log₂ K envelopes, each
built and read in one pass over sorted lines and sorted queries, instead of K.

Most of millions of items never matter. Between two values of b, the lines lowest of their colour at
either end meet in a peak, and any other line of the colour counts only if it passes below that peak.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@jit
def find_cheapest_of_each(u: Floats, v: Floats, colour: Ints, colours: int, b: float) -> Ints:
    """The line of each colour that is lowest at b (-1: none)."""
    best = np.full(colours, -1)
    for line in range(u.shape[0]):
        held = best[colour[line]]
        if held < 0 or u[line] + v[line] * b < u[held] + v[held] * b:
            best[colour[line]] = line
    return best


@jit
def _find_contenders(u: Floats, v: Floats, colour: Ints, at_low: Ints, at_high: Ints) -> NDArray[np.bool_]:
    """True for lines that can be lowest of their colour somewhere between the two ends."""
    keep = np.empty(u.shape[0], dtype=np.bool_)
    for line in range(u.shape[0]):
        one, two = at_low[colour[line]], at_high[colour[line]]
        keep[line] = line in (one, two)
        if not keep[line] and v[one] > v[two]:
            peak = (u[two] - u[one]) / (v[one] - v[two])
            keep[line] = u[line] + v[line] * peak < u[one] + v[one] * peak
    return keep


@jit
def _build_hull(u: Floats, v: Floats, colour: Ints, bit: int, value: int, hull: Ints) -> int:
    """Indices of the lines with this bit on the lower envelope, in the order of rising b; their number.

    Lines come with falling slope v and, at equal slope, rising u.
    """
    n = 0
    for line in range(u.shape[0]):
        if (colour[line] >> bit) & 1 != value or (n > 0 and v[line] == v[hull[n - 1]]):
            continue
        while n > 1:
            one, two = hull[n - 2], hull[n - 1]
            if (u[line] - u[one]) * (v[one] - v[two]) > (u[two] - u[one]) * (v[one] - v[line]):
                break
            n -= 1
        hull[n] = line
        n += 1
    return n


@jit
def _find_cheapest(u: Floats, v: Floats, colour: Ints, b: Floats, own: Ints, bits: int) -> Ints:
    winner = np.full(b.shape[0], -1)
    hull = np.empty(u.shape[0], dtype=np.int64)
    for bit in range(bits):
        for value in range(2):
            n = _build_hull(u, v, colour, bit, value, hull)
            at = 0
            for query in range(b.shape[0] if n > 0 else 0):
                if (own[query] >> bit) & 1 == value:
                    continue
                x = b[query]
                while at + 1 < n and u[hull[at + 1]] + v[hull[at + 1]] * x < u[hull[at]] + v[hull[at]] * x:
                    at += 1
                line, best = hull[at], winner[query]
                if best < 0 or u[line] + v[line] * x < u[best] + v[best] * x:
                    winner[query] = line
    return winner


def find_cheapest_of_another(u: Floats, v: Floats, colour: Ints, b: Floats, own: Ints, colours: int) -> Ints:
    """For each query (b, own) the line of a colour other than `own` that is lowest at b (-1: none)."""
    ends = (find_cheapest_of_each(u, v, colour, colours, end) for end in (b.min(), b.max()))
    lines = np.flatnonzero(_find_contenders(u, v, colour, *ends))
    lines = lines[np.lexsort((u[lines], -v[lines]))]
    queries = np.argsort(b, kind="stable")
    bits = (colours - 1).bit_length()
    found = _find_cheapest(u[lines], v[lines], colour[lines], b[queries], own[queries], bits)
    winner = np.full(len(b), -1)
    winner[queries[found >= 0]] = lines[found[found >= 0]]
    return winner
