"""Arrays by name in one npz file: without pickle, and written completely or not at all. numpy only, so that models can
be saved where no engine is installed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute._util.atomic import write_atomically


def write_npz(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays; a file that is already there is replaced. Objects, which only pickle could write, are refused.

    (numpy before 2.2 takes `allow_pickle` for the name of one more array.)
    """
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise TypeError(f"array '{objects[0]}' holds Python objects")
    with write_atomically(Path(path)) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # mypy takes an array for allow_pickle
        file.flush()
        os.fsync(file.fileno())
