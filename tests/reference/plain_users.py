"""Every user's story told plainly, one decision at a time, and the exact distribution of how it can end.

A story takes `pick(weights)`, which returns an index, and returns the set of places clicked. `endings` runs it once
for every way its decisions can fall. No formula for click probabilities appears anywhere here.
"""

from __future__ import annotations

import math
from collections import defaultdict


def endings(story):
    """{pattern of clicks: probability} of a story, by following every branch."""
    total: defaultdict[frozenset[int], float] = defaultdict(float)
    script: list[int] = []
    while True:
        taken: list[tuple[int, int, float]] = []  # turn, options, share

        def pick(weights, taken=taken, script=script):
            options = [i for i, w in enumerate(weights) if w > 0]
            turn = script[len(taken)] if len(taken) < len(script) else 0
            taken.append((turn, len(options), weights[options[turn]] / sum(weights)))
            return options[turn]

        clicked = frozenset(story(pick))
        total[clicked] += math.prod(share for _, _, share in taken)
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return dict(total)
        script = [turn for turn, _, _ in taken[:-1]] + [taken[-1][0] + 1]


def happens(pick, probability):
    return pick([probability, 1 - probability]) == 0


def position_based(relevance, propensities, eta):
    def story(pick):
        return [k for k, r in enumerate(relevance) if happens(pick, propensities[k] ** eta) and happens(pick, r)]

    return story


def contextual(relevance, context, vectors, weights, propensities):
    def story(pick):
        clicked = []
        for k, r in enumerate(relevance):
            exponent = sum(w * x for w, x in zip(weights, vectors[context[k]], strict=True)) + 1
            examined = happens(pick, propensities[k] ** exponent) if exponent > 0 else True
            if examined and happens(pick, r):
                clicked.append(k)
        return clicked

    return story


def trust(relevance, propensities, plus, minus):
    def story(pick):
        clicked = []
        for k, r in enumerate(relevance):
            if happens(pick, propensities[k]):
                relevant = happens(pick, r)
                if happens(pick, plus[k] if relevant else minus[k]):
                    clicked.append(k)
        return clicked

    return story


def cascade(relevance):
    def story(pick):
        for k, r in enumerate(relevance):
            if happens(pick, r):
                return [k]
        return []

    return story


def dependent_click(relevance, continuation):
    def story(pick):
        clicked = []
        for k, r in enumerate(relevance):
            if happens(pick, r):
                clicked.append(k)
                if not happens(pick, continuation[k]):
                    break
        return clicked

    return story


def browsing(relevance, table):
    """`table[rank - 1][distance - 1]`, the distance counted from a click at rank 0 before any other."""

    def story(pick):
        last, clicked = 0, []
        for rank, r in enumerate(relevance, start=1):
            if happens(pick, table[rank - 1][rank - last - 1]) and happens(pick, r):
                clicked.append(rank - 1)
                last = rank
        return clicked

    return story


def _reads(pick, places, relevance, satisfaction, continuation):
    clicked = []
    for k in places:
        if happens(pick, relevance[k]):
            clicked.append(k)
            if happens(pick, satisfaction[k]):
                break
        if not happens(pick, continuation):
            break
    return clicked


def dynamic_bayesian(relevance, satisfaction, continuation):
    def story(pick):
        return _reads(pick, range(len(relevance)), relevance, satisfaction, continuation)

    return story


def mixture_dbn(relevance, satisfaction, continuation, top_down):
    def story(pick):
        places = list(range(len(relevance)))
        if not happens(pick, top_down):
            places.reverse()
        return _reads(pick, places, relevance, satisfaction, continuation)

    return story


def carousel(relevance, satisfaction, row_length, row_bias, continuation):
    def story(pick):
        rows = [list(range(len(relevance)))[i : i + row_length] for i in range(0, len(relevance), row_length)]
        weights = [row_bias[i] * sum(relevance[k] for k in row) / len(row) for i, row in enumerate(rows)]
        if not rows:
            return []
        row = rows[pick(weights)] if sum(weights) > 0 else rows[0]
        return _reads(pick, row, relevance, satisfaction, continuation)

    return story


def choice(relevance):
    def story(pick):
        return [pick(relevance)] if sum(relevance) > 0 else []

    return story
