"""The project's one way to compile a function: cached on disk, without the interpreter lock.

numba keeps what it compiled beside the source, or in the user's home. Where neither can be written to, as in containers
and under cron, it goes to a folder of this user's among the temporary ones; where there is no such folder either, it is
not kept. What is kept is code that later processes run: so it lies only where nobody else can write.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from elute._util.scratch import keep_folder

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile `function` with numba on first call; later processes read it from the cache."""
    if not find_fallback.cache_info().currsize:
        try:
            return _compile(function)
        except RuntimeError:  # numba found no place for its cache
            pass
    folder = find_fallback()
    if folder is None:
        return cast(F, numba.njit(nogil=True)(function))
    config: Any = numba.config
    asked, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return _compile(function)
    finally:
        config.CACHE_DIR = asked


@cache
def find_fallback() -> Path | None:
    """Where kernels are kept, if anywhere, that can be kept neither beside the source nor in the home folder."""
    return keep_folder("kernels")


def describe_fallback() -> str | None:
    """What to know of where kernels are kept; None where all is as usual."""
    if not find_fallback.cache_info().currsize:
        return None
    folder = find_fallback()
    where = "are not kept" if folder is None else f"are kept in {folder}"
    return f"kernels {where}: neither the install nor the home folder can be written to; NUMBA_CACHE_DIR names another"


def _compile(function: F) -> F:
    return cast(F, numba.njit(cache=True, nogil=True)(function))
