"""The posterior of every item's attraction r under p = r·o and a Beta prior of its own, by quadrature.

In log odds u an item's density is smooth, has one maximum and falls exponentially on both sides:

    log f(u) = (C + a)·log r + b·log(1 - r) + Σ skips·log(1 - r·o),    r = 1/(1 + e^-u)

The trapezoidal rule in t, u = mode + scale·sinh t, reaches far into such tails with few nodes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NODES, _REACH = 21, 4.0
"""Nodes, and the t of the last."""

_STEPS = 50
_CLOSE = 1e-3
"""A mode is found when log r changes by less: it only places the nodes."""


@jit
def integrate_items(
    offsets: Ints, cell: Ints, skips: Floats, clicks: Floats, o: Floats, a: Floats, b: Floats, odds: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """By item: the log of the integral of f, and the posterior means of r, log r and log(1 - r). `odds`, by pair of
    item and cell, is written: the posterior mean of r·o/(1 - r·o). All o lie below 1."""
    items = offsets.shape[0] - 1
    evidence, mean, mean_log, mean_log_not = np.empty(items), np.empty(items), np.empty(items), np.empty(items)
    step = 2.0 * _REACH / (_NODES - 1)
    height, r_at, width = np.empty(_NODES), np.empty(_NODES), np.empty(_NODES)
    for item in range(items):
        begin, end = offsets[item], offsets[item + 1]
        wanted = a[item]
        for pair in range(begin, end):
            wanted += clicks[pair]
        mode, scale = _find_mode(cell[begin:end], skips[begin:end], o, wanted, b[item])
        top = -math.inf
        for node in range(_NODES):
            t = -_REACH + node * step
            u = mode + scale * math.sinh(t)
            log_r = -math.log1p(math.exp(-u)) if u > 0.0 else u - math.log1p(math.exp(u))
            r = math.exp(log_r)
            value = wanted * log_r + b[item] * (log_r - u)
            for pair in range(begin, end):
                if skips[pair] > 0.0:
                    value += skips[pair] * math.log1p(-r * o[cell[pair]])
            height[node], r_at[node], width[node] = value, r, scale * math.cosh(t) * step
            top = max(top, value)
        mass = first = logs = logs_not = 0.0
        for node in range(_NODES):
            t = -_REACH + node * step
            u = mode + scale * math.sinh(t)
            log_r = -math.log1p(math.exp(-u)) if u > 0.0 else u - math.log1p(math.exp(u))
            share = math.exp(height[node] - top) * width[node]
            height[node] = share
            mass += share
            first += share * r_at[node]
            logs += share * log_r
            logs_not += share * (log_r - u)
        evidence[item] = top + math.log(mass)
        mean[item], mean_log[item], mean_log_not[item] = first / mass, logs / mass, logs_not / mass
        for pair in range(begin, end):
            total = 0.0
            if skips[pair] > 0.0:
                for node in range(_NODES):
                    p = r_at[node] * o[cell[pair]]
                    total += height[node] * p / (1.0 - p)
            odds[pair] = total / mass
    return evidence, mean, mean_log, mean_log_not


@jit
def _find_mode(cell: Ints, skips: Floats, o: Floats, wanted: float, b: float) -> tuple[float, float]:
    """Where f is highest, and 1/√(-f'') there. In log r the equation skipped = wanted is increasing and convex: one
    step of Newton's method lands right of the root, and the next ones come back to it."""
    r = wanted / (wanted + b)
    for pair in range(cell.shape[0]):
        r = min(r, wanted / (wanted + skips[pair] * o[cell[pair]]))
    curvature = 0.0
    for _ in range(_STEPS):
        of_prior = b * r / (1.0 - r)
        skipped, slope = of_prior, of_prior / (1.0 - r)
        curvature = (wanted + b) * r * (1.0 - r)
        for pair in range(cell.shape[0]):
            under = o[cell[pair]]
            p = r * under
            part = skips[pair] * p / (1.0 - p)
            skipped += part
            slope += part / (1.0 - p)
            curvature += part * (1.0 - r) * ((1.0 - 2.0 * r) * (1.0 - p) + p * (1.0 - r)) / (1.0 - p)
        change = math.log(skipped / wanted) * skipped / slope
        r = min(r * math.exp(-min(max(change, -3.0), 3.0)), 1.0 - (1.0 - r) / 8.0)
        if abs(change) < _CLOSE:
            break
    return math.log(r / (1.0 - r)), 1.0 / math.sqrt(max(curvature, 1e-6))
