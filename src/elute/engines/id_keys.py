"""Keys of ids: 64 bits that stand for an item or a query while a log is counted.

SipHash-1-3 (Aumasson and Bernstein, 2012) with a key that is drawn for each run. Whoever writes ids into a log does not
know it, so that ids cannot be made up to collide, nor to fill one place of a table: two different ids share a key with
a probability of 2⁻⁶⁴, whatever they are. No result may depend on the key. So there is a second hash, the same in every
run, that says in which partition a row is counted and thereby in which order items come; nothing is told apart by it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.arrow import view
from elute.errors import EluteError
from elute.kernels.jit import jit
from elute.kernels.keys import ODD

Keys = NDArray[np.uint64]

_INIT = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_END = np.uint64(0xFF)
_BLOCK = 1024
_LEAST = 16
"""Bytes of a column, so that there are words to read."""

_13, _16, _17, _21, _32 = (np.uint64(n) for n in (13, 16, 17, 21, 32))
_WORD, _BITS = np.uint64(64), np.uint64(8)


_NUMBERS: NDArray[np.int64] = np.empty(0, np.int64)


class HashedIds(NamedTuple):
    """By row: the key of its id, and its place, which does not depend on the run; where ids lie within others, the key
    of that."""

    keys: Keys
    places: Keys
    outer: Keys


class IdHash:
    """A key, and what it makes of ids. A column is 64-bit numbers, which stand for its values one to one, or text, or
    bytes."""

    def __init__(self, key: tuple[int, int] | None = None) -> None:
        """`key`: two 64-bit numbers; drawn where none is given."""
        first, second = key or (secrets.randbits(64), secrets.randbits(64))
        self._start = np.array([of ^ (second if at % 2 else first) for at, of in enumerate(_INIT)], np.uint64)

    def hash_ids(self, columns: Sequence[pa.Array]) -> HashedIds:
        """Ids made of these columns."""
        return self._hash(columns, 0, len(columns))

    def hash_nested(self, outer: pa.Array, inner: Sequence[pa.Array], by_inner: bool) -> HashedIds:
        """Ids made of a column and of others, which lie within those that are made of the first alone: items within
        queries. `by_inner`: their places are their own, not those of what they lie within."""
        return self._hash([outer, *inner], 1, 1 + len(inner) if by_inner else 1)

    def _hash(self, columns: Sequence[pa.Array], outer: int, placed: int) -> HashedIds:
        """The first `outer` columns are what ids lie within, the first `placed` say the place."""
        opened, rows = tuple(_open(column) for column in columns), len(columns[0])
        keys, places = np.empty(rows, np.uint64), np.zeros(rows, np.uint64)
        around = np.empty(rows if outer else 0, np.uint64)
        if rows:
            _hash_rows(opened, self._start, outer, placed, keys, places, around)
        return HashedIds(keys, places, around)


class _Column(NamedTuple):
    """Values as bytes: a 64-bit number at each of them, the bytes, and where each value begins; of numbers, which have
    eight bytes each, nothing."""

    words: Keys
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]


def _open(column: pa.Array) -> _Column:
    """In place. Every column gives arrays of the same kinds, so that one kernel takes them all."""
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    if not (wide or pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return _give_words(view(column, np.uint64).view(np.uint8), _NUMBERS)
    if column.null_count:
        raise EluteError("the log changed while it was being read: nulls appeared; run again")
    _, places, held = column.buffers()
    kind = np.dtype(np.int64 if wide else np.int32)
    offsets = np.frombuffer(places, kind, len(column) + 1, kind.itemsize * column.offset).astype(np.int64)
    return _give_words(np.frombuffer(held, np.uint8) if held else np.empty(0, np.uint8), offsets)


def _give_words(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> _Column:
    held = data.view() if len(data) >= _LEAST else np.concatenate((data, np.zeros(_LEAST, np.uint8)))
    held.flags.writeable = False
    return _Column(np.ndarray(len(held) - 7, np.uint64, held, strides=(1,)), held, offsets)


@jit
def _hash_rows(
    columns: tuple[_Column, ...], start: Keys, outer: int, placed: int, keys: Keys, places: Keys, around: Keys
) -> None:
    """Some rows at a time: their states stay in the cache from column to column."""
    room = np.empty((5, _BLOCK), np.uint64)
    for begin in range(0, keys.shape[0], _BLOCK):
        end = min(begin + _BLOCK, keys.shape[0])
        n = end - begin
        v0, v1, v2, v3, word = room[0, :n], room[1, :n], room[2, :n], room[3, :n], room[4, :n]
        v0[:], v1[:], v2[:], v3[:] = start[0], start[1], start[2], start[3]
        for number in range(len(columns)):
            words, data, offsets = columns[number]
            folded = places[begin:end] if number < placed else places[:0]
            if offsets.shape[0] == 0:
                for row in range(n):
                    word[row] = words[8 * (begin + row)]
                _absorb(word, v0, v1, v2, v3, folded)
            else:
                _absorb_bytes(words, data, offsets[begin : end + 1], word, v0, v1, v2, v3, folded)
            if number + 1 == outer:
                _finish(v0, v1, v2, v3, around[begin:end])
        _finish(v0, v1, v2, v3, keys[begin:end])


@jit
def _turn(value: np.uint64, by: np.uint64) -> np.uint64:
    return (value << by) | (value >> (_WORD - by))


@jit
def _mix(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """A round of SipHash."""
    v0 += v1
    v1 = _turn(v1, _13) ^ v0
    v0 = _turn(v0, _32)
    v2 += v3
    v3 = _turn(v3, _16) ^ v2
    v0 += v3
    v3 = _turn(v3, _21) ^ v0
    v2 += v1
    v1 = _turn(v1, _17) ^ v2
    v2 = _turn(v2, _32)
    return v0, v1, v2, v3


@jit
def _fold(place: np.uint64, word: np.uint64) -> np.uint64:
    """The hash that has no key."""
    place = (place ^ word) * ODD
    return place ^ (place >> _32)


@jit
def _absorb(word: Keys, v0: Keys, v1: Keys, v2: Keys, v3: Keys, places: Keys) -> None:
    """A word of each row: a loop that processors do for several rows at once."""
    for row in range(word.shape[0]):
        a, b, c, d = _mix(v0[row], v1[row], v2[row], v3[row] ^ word[row])
        v0[row], v1[row], v2[row], v3[row] = a ^ word[row], b, c, d
    if places.shape[0] > 0:
        for row in range(word.shape[0]):
            places[row] = _fold(places[row], word[row])


@jit
def _absorb_bytes(
    words: Keys,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    word: Keys,
    v0: Keys,
    v1: Keys,
    v2: Keys,
    v3: Keys,
    places: Keys,
) -> None:
    """Eight bytes at a time, zeros after the last, then how many there were: no two rows give the same words. Those
    that all rows have are taken side by side; `word`: room for them."""
    rows = word.shape[0]
    shortest = offsets[1] - offsets[0]
    for row in range(rows):
        shortest = min(shortest, offsets[row + 1] - offsets[row])
    shared = (shortest + 7) // 8
    for step in range(shared):
        for row in range(rows):
            word[row] = _read_word(words, data, offsets[row] + 8 * step, offsets[row + 1])
        _absorb(word, v0, v1, v2, v3, places)
    for row in range(rows):
        for start in range(offsets[row] + 8 * shared, offsets[row + 1], 8):
            more = _read_word(words, data, start, offsets[row + 1])
            a, b, c, d = _mix(v0[row], v1[row], v2[row], v3[row] ^ more)
            v0[row], v1[row], v2[row], v3[row] = a ^ more, b, c, d
            if places.shape[0] > 0:
                places[row] = _fold(places[row], more)
        word[row] = np.uint64(offsets[row + 1] - offsets[row])
    _absorb(word, v0, v1, v2, v3, places)


@jit
def _read_word(words: Keys, data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """The bytes from `start` on, eight at most."""
    size = min(end - start, 8)
    word: np.uint64
    if start < words.shape[0]:
        word = words[start]
        if size < 8:
            word &= (np.uint64(1) << (_BITS * np.uint64(size))) - np.uint64(1)
        return word
    word = np.uint64(0)
    for byte in range(size):
        word |= np.uint64(data[start + byte]) << (_BITS * np.uint64(byte))
    return word


@jit
def _finish(v0: Keys, v1: Keys, v2: Keys, v3: Keys, keys: Keys) -> None:
    for row in range(keys.shape[0]):
        a, b, c, d = v0[row], v1[row], v2[row] ^ _END, v3[row]
        for _ in range(3):
            a, b, c, d = _mix(a, b, c, d)
        keys[row] = a ^ b ^ c ^ d
