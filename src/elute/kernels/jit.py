"""The project's one way to compile a function: cached on disk, without the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile `function` with numba on first call; later processes read it from the cache."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))
