"""Numbers as text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def format_shortest(values: NDArray[np.float32]) -> Iterator[str]:
    """The shortest decimals that read back as the same 32-bit floats; whole numbers without a point."""
    return (str(value).removesuffix(".0") for value in values)
