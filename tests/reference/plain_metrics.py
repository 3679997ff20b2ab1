"""Ranking and click metrics as their definitions read: loops, and every order of tied documents tried."""

from __future__ import annotations

import math
from itertools import permutations, product


def orders(scores, ties):
    """Every order of documents that the scores allow; under "stable" the one that keeps ties as given."""
    if ties == "stable":
        return [sorted(range(len(scores)), key=lambda i: -scores[i])]
    groups = [[i for i, s in enumerate(scores) if s == value] for value in sorted(set(scores), reverse=True)]
    return [[i for part in parts for i in part] for parts in product(*(permutations(group) for group in groups))]


def expected(metric, grades, scores, ties):
    tried = orders(scores, ties)
    return sum(metric([grades[i] for i in order]) for order in tried) / len(tried)


def dcg(ranked, k):
    return sum((2**g - 1) / math.log2(rank + 1) for rank, g in enumerate(ranked[:k], 1))


def ndcg(grades, scores, k, ties, without):
    ideal = dcg(sorted(grades, reverse=True), k)
    if ideal == 0:
        return {"zero": 0.0, "one": 1.0, "skip": math.nan}[without]
    return expected(lambda ranked: dcg(ranked, k), grades, scores, ties) / ideal


def err(grades, scores, k, highest, ties):
    def of(ranked):
        total, reads_on = 0.0, 1.0
        for rank, g in enumerate(ranked[:k], 1):
            satisfied = (2**g - 1) / 2**highest
            total += reads_on * satisfied / rank
            reads_on *= 1 - satisfied
        return total

    return expected(of, grades, scores, ties)


def mrr(grades, scores, k, relevant, ties):
    def of(ranked):
        return next((1 / rank for rank, g in enumerate(ranked[:k], 1) if g >= relevant), 0.0)

    return expected(of, grades, scores, ties)


def perplexity(pages):
    """`pages`: lists of (rank, probability, click)."""
    bits: dict[int, float] = {}
    shown: dict[int, int] = {}
    for page in pages:
        for rank, p, c in page:
            happened = p if c else 1 - p
            bits[rank] = bits.get(rank, 0.0) - (math.log2(happened) if happened > 0 else -math.inf)
            shown[rank] = shown.get(rank, 0) + 1
    at_rank = {rank: 2 ** (bits[rank] / shown[rank]) for rank in bits}
    return at_rank, sum(at_rank.values()) / len(at_rank)
