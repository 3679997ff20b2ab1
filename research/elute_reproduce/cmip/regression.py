"""How well metrics known in advance predict perplexity under another policy (section 6.2 of the CMIP paper).

A regression tree without limits, repeated two-fold cross-validation, adjusted R². A table needs hundreds of thousands
of trees on some 35 rows each; so the tree is a compiled kernel, tested against scikit-learn's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REPETITIONS = 1_000


def cross_validate(features: Floats, target: Floats, repetitions: int, rng: np.random.Generator) -> Floats:
    """Adjusted R² of both folds of every repetition, on the rows that the tree has not seen."""
    orders = np.array([rng.permutation(len(target)) for _ in range(repetitions)])
    return _score_folds(np.ascontiguousarray(features), target, orders, rng.integers(1 << 30, size=(repetitions, 2)))


def leave_groups_out(features: Floats, target: Floats, group: NDArray[np.int64]) -> float:
    """R² over all rows, each predicted by a tree that has not seen any row of its group."""
    predicted = np.empty(len(target))
    for g in np.unique(group):
        own = group == g
        predicted[own] = predict(features[~own], target[~own], features[own], int(g))
    return r_squared(target, predicted)


def r_squared(target: Floats, predicted: Floats) -> float:
    """1 less the share of the variance that is left."""
    return float(1.0 - np.sum((target - predicted) ** 2) / np.sum((target - target.mean()) ** 2))


@jit
def _score_folds(features: Floats, target: Floats, orders: Ints, seeds: Ints) -> Floats:
    """For each order of the rows, both halves in turn: 1 - (1 - R²)(n - 1)/(n - p - 1) with p metrics."""
    half = orders.shape[1] // 2
    out = np.empty(2 * orders.shape[0])
    for repetition in range(orders.shape[0]):
        for fold in range(2):
            first, second = orders[repetition, :half], orders[repetition, half:]
            seen, held = (second, first) if fold == 0 else (first, second)
            wanted = target[held]
            error = wanted - predict(features[seen], target[seen], features[held], seeds[repetition, fold])
            left = np.sum(error * error) / np.sum((wanted - wanted.mean()) ** 2)
            n = held.shape[0]
            out[2 * repetition + fold] = 1.0 - left * (n - 1) / (n - features.shape[1] - 1)
    return out


@jit
def predict(features: Floats, target: Floats, wanted: Floats, seed: int) -> Floats:
    """What a regression tree grown on `features` until its leaves are pure says of `wanted`.

    Splits lie midway between neighbouring values and are those that leave the least squared error. Metrics often do
    equally well (two rows are told apart by any): then one is drawn, from `seed`, as scikit-learn does; always taking
    the first would favour it. Rows of a node are kept together in `rows`, wanted ones in `asked`.
    """
    n, m = target.shape[0], wanted.shape[0]
    out = np.empty(m)
    rows, asked = np.arange(n), np.arange(m)
    stack = np.empty((2 * n + 2, 4), np.int64)
    stack[0] = (0, n, 0, m)
    depth = 1
    while depth > 0:
        depth -= 1
        first, last, ask_first, ask_last = stack[depth]
        if ask_first == ask_last:
            continue
        own = rows[first:last]
        seed = (seed * 1103515245 + 12345) % (1 << 31)
        feature, threshold = _split(features, target, own, seed >> 12)
        if feature < 0:
            out[asked[ask_first:ask_last]] = target[own].mean()
            continue
        middle = _partition(features, rows, first, last, feature, threshold)
        ask_middle = _partition(wanted, asked, ask_first, ask_last, feature, threshold)
        stack[depth] = (first, middle, ask_first, ask_middle)
        stack[depth + 1] = (middle, last, ask_middle, ask_last)
        depth += 2
    return out


@jit
def _split(features: Floats, target: Floats, rows: Ints, chance: int) -> tuple[int, float]:
    """The best split of some rows: metric and threshold; metric -1 where they are alike.

    Of equals the first in an order drawn by `chance`: a start and a direction, which of three metrics is any order.
    """
    n, p = rows.shape[0], features.shape[1]
    start, step = (chance >> 1) % p, 1 if chance % 2 == 0 else p - 1
    best, found, threshold = 0.0, -1, 0.0
    mean = target[rows].mean()
    if np.abs(target[rows] - mean).max() <= 1e-14:
        return found, threshold
    for shift in range(p):
        feature = (start + shift * step) % p
        order = rows[np.argsort(features[rows, feature], kind="mergesort")]
        left = 0.0
        for i in range(n - 1):
            left += target[order[i]] - mean
            low, high = features[order[i], feature], features[order[i + 1], feature]
            if high <= low:
                continue
            # The sums of deviations left and right are opposite: what the split explains is left²(1/n_l + 1/n_r).
            gain = left * left * (1.0 / (i + 1) + 1.0 / (n - i - 1))
            if gain > best * (1.0 + 1e-12):
                best, found, threshold = gain, feature, 0.5 * (low + high)
    return found, threshold


@jit
def _partition(features: Floats, rows: Ints, first: int, last: int, feature: int, threshold: float) -> int:
    """Bring the rows at or below the threshold to the front; returns where the others begin."""
    at = first
    for i in range(first, last):
        if features[rows[i], feature] <= threshold:
            rows[i], rows[at] = rows[at], rows[i]
            at += 1
    return at
