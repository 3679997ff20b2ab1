"""Dense codes for 64-bit keys, in order of first appearance.

An open-addressing table of (key, code) records, so that a look-up costs one cache miss. Rows are
handled in blocks: a first loop only reads the home slot of every row of the block, which lets the
processor fetch them side by side; the second loop then finds them in the cache. That halves the time
on tables larger than the cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.kernels.jit import jit

Keys = NDArray[np.uint64]
Codes = NDArray[np.int32]

MAX_LOAD = 0.7
"""Share of slots in use beyond which the table doubles."""

MAX_KEYS = 2**31 - 1
"""Codes are 32-bit integers."""

MISSING = -1

BLOCK = 512
IN_CACHE = 1 << 17
EMPTY = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)
HALF = np.uint64(32)
ODD = np.uint64(0x9E3779B97F4A7C15)


@jit
def touch(table: Keys, keys: Keys, begin: int, end: int) -> np.uint64:
    """Read the home slots of a block, unless the table is in the cache anyway. Callers must hand the sum on
    to theirs: a result that nobody uses is optimised away, and the reads with it."""
    mask = np.uint64(table.shape[0] // 2 - 1)
    total = np.uint64(0)
    if table.shape[0] > IN_CACHE:
        for i in range(begin, end):
            total += table[(keys[i] & mask) * TWO]
    return total


@jit
def _insert(table: Keys, used: int, keys: Keys, codes: Codes, fresh: NDArray[np.int64]) -> tuple[int, np.uint64]:
    """Code every key, adding unknown ones; `fresh` receives the rows where a key was first seen."""
    ahead = np.uint64(0)
    mask = np.uint64(table.shape[0] // 2 - 1)
    known = used
    for begin in range(0, keys.shape[0], BLOCK):
        end = min(begin + BLOCK, keys.shape[0])
        ahead += touch(table, keys, begin, end)
        for i in range(begin, end):
            key = keys[i]
            slot = key & mask
            while True:
                code = table[slot * TWO + ONE]
                if code == EMPTY:
                    table[slot * TWO] = key
                    table[slot * TWO + ONE] = np.uint64(used + 1)
                    fresh[used - known] = i
                    codes[i] = used
                    used += 1
                    break
                if table[slot * TWO] == key:
                    codes[i] = np.int32(code - ONE)
                    break
                slot = (slot + ONE) & mask
    return used, ahead


@jit
def _find(table: Keys, keys: Keys, codes: Codes) -> np.uint64:
    ahead = np.uint64(0)
    mask = np.uint64(table.shape[0] // 2 - 1)
    for begin in range(0, keys.shape[0], BLOCK):
        end = min(begin + BLOCK, keys.shape[0])
        ahead += touch(table, keys, begin, end)
        for i in range(begin, end):
            slot = keys[i] & mask
            while True:
                code = table[slot * TWO + ONE]
                if code == EMPTY:
                    codes[i] = MISSING
                    break
                if table[slot * TWO] == keys[i]:
                    codes[i] = np.int32(code - ONE)
                    break
                slot = (slot + ONE) & mask
    return ahead


@jit
def _find_new(
    table: Keys, keys: Keys, checks: Keys, seen: Keys, rows: NDArray[np.int64], codes: Codes
) -> tuple[int, bool, np.uint64]:
    """Rows whose key is there and was not met before, and the codes of these; how many, and whether some key has two
    different checks. `seen`: by code, the check that its key came with, or 0."""
    ahead = np.uint64(0)
    mask = np.uint64(table.shape[0] // 2 - 1)
    n = 0
    for begin in range(0, keys.shape[0], BLOCK):
        end = min(begin + BLOCK, keys.shape[0])
        ahead += touch(table, keys, begin, end)
        for i in range(begin, end):
            slot = keys[i] & mask
            while table[slot * TWO + ONE] != EMPTY and table[slot * TWO] != keys[i]:
                slot = (slot + ONE) & mask
            found = table[slot * TWO + ONE]
            if found == EMPTY:
                continue
            code = np.int64(found - ONE)
            check = max(checks[i], ONE)
            if seen[code] == EMPTY:
                seen[code] = check
                rows[n] = i
                codes[n] = np.int32(code)
                n += 1
            elif seen[code] != check:
                return n, True, ahead
    return n, False, ahead


@jit
def _refill(old: Keys, new: Keys) -> None:
    mask = np.uint64(new.shape[0] // 2 - 1)
    for record in range(0, old.shape[0], 2):
        if old[record + 1] == EMPTY:
            continue
        slot = old[record] & mask
        while new[slot * TWO + ONE] != EMPTY:
            slot = (slot + ONE) & mask
        new[slot * TWO] = old[record]
        new[slot * TWO + ONE] = old[record + 1]


@jit
def find_slot(key: np.uint64, mask: np.uint64) -> np.uint64:
    """Of a small table, which holds codes alone. What is left of a key may end in zeros."""
    return ((key * ODD) >> HALF) & mask


@jit
def fill_table(keys: Keys, used: int, slots: int) -> Codes:
    """A small table of the first `used` keys: -1 where a slot is empty."""
    table = np.full(slots, MISSING, np.int32)
    mask = np.uint64(slots - 1)
    for code in range(used):
        slot = find_slot(keys[code], mask)
        while table[slot] >= 0:
            slot = (slot + ONE) & mask
        table[slot] = code
    return table


@jit
def number_keys(keys: Keys, codes: Codes, distinct: Keys) -> int:
    """Codes from 0 in the order in which keys are first seen; `distinct` gets the keys by code. How many there are."""
    slots = 1 << 8
    table = fill_table(distinct, 0, slots)
    mask = np.uint64(slots - 1)
    used = 0
    for i in range(keys.shape[0]):
        slot = find_slot(keys[i], mask)
        while table[slot] >= 0 and distinct[table[slot]] != keys[i]:
            slot = (slot + ONE) & mask
        if table[slot] >= 0:
            codes[i] = table[slot]
            continue
        table[slot] = used
        distinct[used] = keys[i]
        codes[i] = used
        used += 1
        if 2 * used > slots:
            slots *= 4
            table = fill_table(distinct, used, slots)
            mask = np.uint64(slots - 1)
    return used


def make_table(expected: int) -> Keys:
    """Room for `expected` keys."""
    slots = 1 << max(int(expected / MAX_LOAD).bit_length(), 12)
    return np.zeros(2 * slots, dtype=np.uint64)


def grow_table(table: Keys, used: int, more: int) -> Keys:
    """The table, or a larger copy, so that `more` keys can be added to the `used` ones."""
    if used + more > MAX_KEYS:
        raise EluteError(f"more than {MAX_KEYS:,} distinct ids: too many for one machine")
    while used + more > table.shape[0] // 2 * MAX_LOAD:
        larger = np.zeros(table.shape[0] * 2, dtype=np.uint64)
        _refill(table, larger)
        table = larger
    return table


class KeyTable:
    """Maps 64-bit keys to codes 0, 1, 2, … Memory: 16 bytes a slot, 23 to 46 bytes a key.

    A record stores its code plus one, so that zero marks an empty slot and every 64-bit value,
    zero included, can be a key.
    """

    def __init__(self, expected: int = 0) -> None:
        """`expected`: keys to make room for at once; more may come."""
        self._table = make_table(expected)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def insert(self, keys: Keys) -> tuple[Codes, NDArray[np.int64]]:
        """Codes of `keys`, and the rows at which new keys first appeared (in the order of their codes)."""
        self._table = grow_table(self._table, self._used, keys.shape[0])
        codes = np.empty(keys.shape[0], dtype=np.int32)
        fresh = np.empty(keys.shape[0], dtype=np.int64)
        known = self._used
        self._used, _ = _insert(self._table, known, keys, codes, fresh)
        return codes, fresh[: self._used - known]

    def keys(self) -> Keys:
        """The keys, in the order of their codes."""
        records = self._table.reshape(-1, 2)
        records = records[records[:, 1] != EMPTY]
        ordered = np.empty(self._used, np.uint64)
        ordered[records[:, 1] - ONE] = records[:, 0]
        return ordered

    def find_new(self, keys: Keys, checks: Keys, seen: Keys) -> tuple[NDArray[np.int64], Codes] | None:
        """Rows at which keys are met for the first time, and their codes. `seen`: zeros by code to begin with, which
        several threads may share: a key may then be met for the first time by each. `checks`: another hash of what the
        keys are of; None where that shows a key to stand for two things."""
        rows, codes = np.empty(keys.shape[0], np.int64), np.empty(keys.shape[0], np.int32)
        n, clash, _ = _find_new(self._table, keys, checks, seen, rows, codes)
        return None if clash else (rows[:n], codes[:n])

    def find(self, keys: Keys) -> Codes:
        """Codes of `keys`; -1 where a key was never inserted."""
        codes = np.empty(keys.shape[0], dtype=np.int32)
        _find(self._table, keys, codes)
        return codes
