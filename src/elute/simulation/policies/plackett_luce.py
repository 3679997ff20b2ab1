"""Rankings from the Plackett–Luce model: each next document is drawn from those left, in proportion to
w = exp(score / temperature).

The common way (the Gumbel trick) draws a number and takes a logarithm for every document of the query, of which few are
shown. Here the work goes with what is shown. Documents are sorted by falling weight, and S_i is the sum of the weights
from place i on. With f the first place not yet taken, draw uniformly from the mass S_f and look the place up by
bisection; where it is taken already, draw again. That is exact: what is left is drawn in proportion. And draws seldom
fail: what was taken after f weighs at most w_f a document, so that at least one draw in `width` succeeds, whatever the
weights. The sums are of positive numbers from the small end up, so they keep their relative precision.

Two cases go another way. Where most documents are shown, the Gumbel trick without its logarithms is cheaper: the
smallest E/w come first, E exponential. And where weights underflow (scores more than about 640 temperatures below the
query's best) the next document is found among those left by the Gumbel trick itself, in differences of scores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]

_TINY = 1e-280
_NEVER = -50.0  # a document this far below the best left, in temperatures, is never the next


@jit
def suffix_weights(scores: Floats, offsets: NDArray[np.int64], temperature: float) -> Floats:
    """For scores that fall within each query: the weights from every place on, in units of the query's largest."""
    out = np.empty_like(scores)
    for query in range(offsets.shape[0] - 1):
        total = 0.0
        for i in range(offsets[query + 1] - 1, offsets[query] - 1, -1):
            total += np.exp((scores[i] - scores[offsets[query]]) / temperature)
            out[i] = total
    return out


@jit
def expected_ranks(scores: Floats, offsets: NDArray[np.int64], temperature: float) -> Floats:
    """E[rank of i] = 1 + Σ_j P(j before i) = 1 + Σ_j w_j / (w_i + w_j), for scores that fall within each query."""
    out = np.ones_like(scores)
    for query in range(offsets.shape[0] - 1):
        for i in range(offsets[query], offsets[query + 1]):
            for j in range(i + 1, offsets[query + 1]):
                i_first = 1.0 / (1.0 + np.exp((scores[j] - scores[i]) / temperature))
                out[i] += 1.0 - i_first
                out[j] += i_first
    return out


@jit
def fill(
    offsets: NDArray[np.int64],
    order: NDArray[np.int32],
    scores: Floats,
    suffix: Floats,
    temperature: float,
    query: NDArray[np.integer],
    rng: np.random.Generator,
    rows: NDArray[np.int32],
) -> None:
    """Draw a ranking for every session into `rows`; `order`, `scores` and `suffix` by falling score within queries."""
    longest = 0
    for q in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    taken = np.full(longest, -1, np.int64)  # by which session
    times = np.empty(rows.shape[1])
    for session in range(rows.shape[0]):
        start = offsets[query[session]]
        end = offsets[query[session] + 1]
        length = min(end - start, rows.shape[1])
        for place in range(length, rows.shape[1]):
            rows[session, place] = -1
        if 0 < end - start <= 2 * length and suffix[end - 1] > _TINY:
            n = 0
            for i in range(start, end):
                time = rng.standard_exponential() / (suffix[i] - (suffix[i + 1] if i + 1 < end else 0.0))
                if n < length:
                    n += 1
                elif time >= times[n - 1]:
                    continue
                at = n - 1
                while at > 0 and times[at - 1] > time:
                    times[at] = times[at - 1]
                    rows[session, at] = rows[session, at - 1]
                    at -= 1
                times[at] = time
                rows[session, at] = order[i]
            continue
        first = start
        for place in range(length):
            while taken[first - start] == session:
                first += 1
            mass = suffix[first]
            if mass > _TINY:
                while True:
                    x = rng.random() * mass
                    chosen, beyond = first, end  # to be the last place with a mass above x from it on
                    while beyond - chosen > 1:
                        middle = (chosen + beyond) >> 1
                        if suffix[middle] > x:
                            chosen = middle
                        else:
                            beyond = middle
                    if taken[chosen - start] != session:
                        break
            else:
                chosen = _draw_by_gumbel(start, first, end, scores, temperature, taken, session, rng)
            taken[chosen - start] = session
            rows[session, place] = order[chosen]


@jit
def _draw_by_gumbel(
    start: int,
    first: int,
    end: int,
    scores: Floats,
    temperature: float,
    taken: NDArray[np.int64],
    session: int,
    rng: np.random.Generator,
) -> int:
    """The next document by the largest score plus Gumbel noise."""
    chosen, best = first, -np.inf
    for i in range(first, end):
        distance = (scores[i] - scores[first]) / temperature
        if distance < _NEVER:
            break
        if taken[i - start] != session:
            key = distance - np.log(rng.standard_exponential())
            if key > best:
                chosen, best = i, key
    return chosen
