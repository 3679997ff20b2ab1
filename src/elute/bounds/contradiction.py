"""Which constraints contradict the log, in a sentence: from a cycle of constraints whose weights sum to less than 0.

Runs of constraints by clicks within a part are one ratio: along the cycle from factor a to factor b they say that
o(b) ≤ exp(sum of weights) · o(a), so a is seen at least exp(-sum) times as often as b.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import exp

import numpy as np
from numpy.typing import NDArray

from elute.bounds.constraints import GIVEN, ITEM, OBSERVED, ORDERED, RATE, RATIO, UNCLICKED, DifferenceSystem

Ints = NDArray[np.int64]

_CLICKS = (RATIO, UNCLICKED)


def describe_cycle(
    found: DifferenceSystem,
    cycle: Ints,
    said: Sequence[str],
    name: Callable[[int], str],
    component: Callable[[int], int],
) -> str:
    """`said`: the options of assumptions on order. `name` and `component`: of a factor."""
    kinds = found.kind[cycle].tolist()
    joined = [RATIO if kind in _CLICKS else kind for kind in kinds]
    first = next((k for k in range(len(cycle)) if joined[k] != joined[k - 1]), 0)
    order = [(k + first) % len(cycle) for k in range(len(cycle))]
    clicks: list[str] = []
    against: list[str] = []
    for kind, run in groupby(order, key=lambda k: joined[k]):
        arrows = cycle[list(run)]
        a, b = int(found.arrows.tail[arrows[0]]) - 1, int(found.arrows.head[arrows[-1]]) - 1
        total = float(found.arrows.weight[arrows].sum())
        if kind == RATIO:
            clicks.append(f"{_compare(total, name(a), name(b))} by the clicks of component {component(a) + 1}")
        elif kind in (RATE, ITEM):
            whose = "all clicks there" if kind == RATE else "those of one item"
            clicks.append(
                f"{name(a)} is seen at least {exp(-total):.2g} of the time by {whose} (relevance is at most 1)"
            )
        elif kind == OBSERVED:
            against.append(f"that {name(b)} is seen no more than always")
        elif kind == GIVEN:
            against.append(_describe_given(found, arrows, name))
        else:
            against.append(said[kind - ORDERED])
    if not clicks:
        return f"These cannot all hold: {' and '.join(dict.fromkeys(against))}."
    return f"{_capitalise(' and '.join(clicks))}, against {' and '.join(dict.fromkeys(against))}."


def _describe_given(found: DifferenceSystem, arrows: Ints, name: Callable[[int], str]) -> str:
    """Ratios along a run of given ones, which leads from factor to factor over the scale of the file."""
    a, b = int(found.arrows.tail[arrows[0]]) - 1, int(found.arrows.head[arrows[-1]]) - 1
    total = float(found.arrows.weight[arrows].sum())
    return f"--propensities ({_compare(total, name(a), name(b))})"


def _compare(total: float, a: str, b: str) -> str:
    """o(b) ≤ exp(total) · o(a) in words."""
    if total <= 0:
        return f"{a} is seen at least {exp(-total):.2g} times as often as {b}"
    return f"{b} is seen at most {exp(total):.2g} times as often as {a}"


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]
