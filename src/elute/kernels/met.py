"""What was met before: a table of 64-bit keys that threads share without a lock.

Each slot is one word, so that it is whole whoever writes it. A key that is lost is met again; none that is not there is
taken for met.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.kernels.keys import BLOCK, EMPTY, IN_CACHE, ODD, ONE

Keys = NDArray[np.uint64]

MAX_LOAD = 0.8
"""Share of slots in use beyond which a table is to grow. Nobody looks for a key in a full one: the search would not
end."""

_LEAST = 12


def make_met(expected: int) -> Keys:
    """Room for so many keys. Memory: 8 bytes a slot, 10 to 20 bytes a key."""
    return np.zeros(1 << max(int(expected / MAX_LOAD).bit_length(), _LEAST), np.uint64)


def grow_met(met: Keys, expected: int) -> Keys:
    """A larger copy, with room for so many keys in all."""
    larger = make_met(max(expected, len(met)))
    _refill(met, larger)
    return larger


@jit
def meet(met: Keys, keys: Keys, checks: Keys, rows: NDArray[np.int64]) -> tuple[int, np.uint64]:
    """How many rows have a key that was not met, or not with this check; `rows` receives them."""
    mask = np.uint64(met.shape[0] - 1)
    ahead = np.uint64(0)
    n = 0
    for begin in range(0, keys.shape[0], BLOCK):
        end = min(begin + BLOCK, keys.shape[0])
        if met.shape[0] > IN_CACHE:  # slots are fetched side by side, as in `keys`
            for i in range(begin, end):
                ahead += met[_join(keys[i], checks[i]) & mask]
        for i in range(begin, end):
            key = _join(keys[i], checks[i])
            slot = key & mask
            held = met[slot]  # read once: another thread may write there
            while held != EMPTY and held != key:
                slot = (slot + ONE) & mask
                held = met[slot]
            if held == EMPTY:
                met[slot] = key
                rows[n] = i
                n += 1
    return n, ahead


@jit
def _join(key: np.uint64, check: np.uint64) -> np.uint64:
    """Of both; never `EMPTY`."""
    return max(key ^ (check * ODD), ONE)


@jit
def _refill(old: Keys, new: Keys) -> None:
    mask = np.uint64(new.shape[0] - 1)
    for at in range(old.shape[0]):
        key = old[at]
        if key == EMPTY:
            continue
        slot = key & mask
        while new[slot] != EMPTY:
            slot = (slot + ONE) & mask
        new[slot] = key
