"""Decimal numbers in bytes, read so that their float32 is the one nearest to what Python's `float` gives.

Up to 2⁵³ and 10^±22 one division or product is correctly rounded. Beyond that the product is off by less than 2⁻⁵⁰ of
itself: where both ends of that interval round to one float32, so does the truth between them; where they do not, the
number is left to `float` itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit

Bytes = NDArray[np.uint8]

MAX_FLOAT32 = 3.4028235677973366e38
"""From here on a number rounds to infinity in float32."""
ZERO_POWER = 280
POWERS = np.array([float(f"1e{k}") for k in range(-ZERO_POWER, ZERO_POWER + 1)])
"""The powers of ten; 10⁰ is at ZERO_POWER."""
SURE, UNSURE, WRONG = 0, 1, 2
"""The float32 of what was read is right; is left to `float`; there is no number."""

_DIGITS = 19  # of these, any number fits 64 bits
_EXACT = np.uint64(1 << 53)
_SLACK = 2.0**-50
_SPACE, _DOT, _MINUS, _PLUS = 32, 46, 45, 43


@jit
def parse_plain(text: Bytes, i: int) -> tuple[int, int, int]:
    """The common case, kept short: at most 15 digits and no exponent. Gives the byte after the number, its digits and
    the places after the point; places are −1 where the number is of another kind."""
    if text[i] == _MINUS:
        i += 1
    start = i
    mantissa = np.int64(0)
    while 48 <= text[i] <= 57:
        mantissa = mantissa * 10 + np.int64(text[i]) - 48
        i += 1
    digits = i - start
    places = 0
    if text[i] == _DOT:
        i += 1
        start = i
        while 48 <= text[i] <= 57:
            mantissa = mantissa * 10 + np.int64(text[i]) - 48
            i += 1
        places = i - start
        digits += places
    return i, int(mantissa), places if text[i] <= _SPACE and 0 < digits <= 15 else -1


@jit
def parse_number(text: Bytes, i: int, powers: NDArray[np.float64]) -> tuple[float, int, int]:
    """The number at byte i, the byte after it, and whether its float32 is sure. Ends at the first byte not its own."""
    negative = text[i] == _MINUS
    if negative or text[i] == _PLUS:
        i += 1
    mantissa = np.uint64(0)
    significant = 0
    exponent = np.int64(0)
    some = False
    fraction = False
    dropped = False
    while True:
        digit = np.int64(text[i]) - 48
        if 0 <= digit <= 9:
            some = True
            if significant < _DIGITS:
                mantissa = mantissa * np.uint64(10) + np.uint64(digit)
                if mantissa > 0:
                    significant += 1
                if fraction:
                    exponent -= 1
            else:
                if digit > 0:
                    dropped = True
                if not fraction:
                    exponent += 1
        elif text[i] == _DOT and not fraction:
            fraction = True
        else:
            break
        i += 1
    if not some:
        return 0.0, i, WRONG
    if text[i] | 32 == 101:  # e, E
        i += 1
        down = text[i] == _MINUS
        if down or text[i] == _PLUS:
            i += 1
        written = np.int64(0)
        some = False
        while 48 <= text[i] <= 57:
            some = True
            written = min(written * 10 + np.int64(text[i]) - 48, np.int64(100_000_000))
            i += 1
        if not some:
            return 0.0, i, WRONG
        exponent += -written if down else written
    sign = -1.0 if negative else 1.0
    if mantissa == 0:
        return sign * 0.0, i, SURE
    if mantissa <= _EXACT and not dropped and -22 <= exponent <= 22:
        if exponent < 0:
            return sign * np.float64(mantissa) / powers[ZERO_POWER - exponent], i, SURE
        return sign * np.float64(mantissa) * powers[ZERO_POWER + exponent], i, SURE
    if exponent < -ZERO_POWER or exponent > ZERO_POWER:
        return 0.0, i, UNSURE
    number = sign * np.float64(mantissa) * powers[ZERO_POWER + exponent]
    agree = np.float32(number * (1.0 - _SLACK)) == np.float32(number * (1.0 + _SLACK))
    return number, i, SURE if agree else UNSURE
