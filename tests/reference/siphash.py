"""SipHash-1-3 on 64-bit words, as its authors' paper says it: slow and plain."""

from __future__ import annotations

from collections.abc import Iterable

WORD = 2**64 - 1


def siphash_1_3(key: tuple[int, int], words: Iterable[int]) -> int:
    """One round after each word, three at the end. The last word is the caller's: the paper has the length in it."""
    v = [
        key[0] ^ 0x736F6D6570736575,
        key[1] ^ 0x646F72616E646F6D,
        key[0] ^ 0x6C7967656E657261,
        key[1] ^ 0x7465646279746573,
    ]
    for word in words:
        v[3] ^= word
        _round(v)
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        _round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def words_of(value: int | bytes) -> list[int]:
    """What elute feeds to it: a number is a word; bytes are eight to a word, little end first, then how many."""
    if isinstance(value, int):
        return [value]
    return [*(int.from_bytes(value[at : at + 8], "little") for at in range(0, len(value), 8)), len(value)]


def _round(v: list[int]) -> None:
    v[0] = (v[0] + v[1]) & WORD
    v[1] = _turn(v[1], 13) ^ v[0]
    v[0] = _turn(v[0], 32)
    v[2] = (v[2] + v[3]) & WORD
    v[3] = _turn(v[3], 16) ^ v[2]
    v[0] = (v[0] + v[3]) & WORD
    v[3] = _turn(v[3], 21) ^ v[0]
    v[2] = (v[2] + v[1]) & WORD
    v[1] = _turn(v[1], 17) ^ v[2]
    v[2] = _turn(v[2], 32)


def _turn(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & WORD
