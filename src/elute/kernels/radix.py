"""Sorting 64-bit keys digit by digit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Keys = NDArray[np.uint64]

_DIGIT = 11


@jit
def radix_sort(keys: Keys, scratch: Keys, bits: int) -> Keys:
    """Sort by the lowest `bits` bits (the others must be zero); returns the array holding the result."""
    passes = (bits + _DIGIT - 1) // _DIGIT
    radix = 1 << _DIGIT
    mask = np.uint64(radix - 1)
    counts = np.zeros((passes, radix), dtype=np.int64)
    for key in keys:
        for p in range(passes):
            counts[p, (key >> np.uint64(p * _DIGIT)) & mask] += 1
    for p in range(passes):
        starts = counts[p]
        total = 0
        for digit in range(radix):
            here = starts[digit]
            starts[digit] = total
            total += here
        shift = np.uint64(p * _DIGIT)
        for key in keys:
            digit_of_key = (key >> shift) & mask
            scratch[starts[digit_of_key]] = key
            starts[digit_of_key] += 1
        keys, scratch = scratch, keys
    return keys
