"""Ids that were made up to share a hash: whoever knows DuckDB's can compute them."""

from __future__ import annotations

from reference.siphash import WORD

MURMUR = 0xD6E8FEB86659FD93


def murmur(x: int) -> int:
    """DuckDB's hash of a 64-bit integer."""
    for _ in range(2):
        x = ((x ^ (x >> 32)) * MURMUR) & WORD
    return x ^ (x >> 32)


def undo_murmur(x: int) -> int:
    for _ in range(2):
        x = ((x ^ (x >> 32)) * pow(MURMUR, -1, 2**64)) & WORD
    return x ^ (x >> 32)


def continue_hash(x: int) -> int:
    """What DuckDB makes of a hash before that of the next column comes to it by exclusive or."""
    return ((x ^ (x >> 32)) * MURMUR) & WORD


def craft_pairs(n: int) -> list[tuple[int, int]]:
    """Pairs of integers that share DuckDB's hash."""
    target = continue_hash(murmur(1)) ^ murmur(1)
    found = [(query, undo_murmur(continue_hash(murmur(query)) ^ target)) for query in range(1, n + 1)]
    return [(query, doc - 2**64 if doc >= 2**63 else doc) for query, doc in found]
