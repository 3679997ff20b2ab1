"""Arrays in npz files that elute wrote: without pickle, and none is made before the file is known to hold it.

numpy only, so that models can be read where no engine is installed.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.door.fields import Damaged

_BROKEN = (
    *(OSError, ValueError, EOFError, KeyError, TypeError, NotImplementedError, RuntimeError, SyntaxError),
    *(OverflowError, MemoryError, zipfile.BadZipFile, zlib.error, struct.error),
)
"""What numpy and zipfile raise on bytes that are not theirs."""


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """All arrays by name; `Damaged` where it is not such a file."""
    try:
        with zipfile.ZipFile(path) as packed:
            found = {part.filename: _read_part(packed, part) for part in packed.infolist()}
    except FileNotFoundError:
        raise Damaged("there is no such file") from None
    except _BROKEN as error:
        raise Damaged(str(error).partition("\n")[0] or type(error).__name__) from None
    return {name.removesuffix(".npy"): array for name, array in found.items()}


def _read_part(packed: zipfile.ZipFile, part: zipfile.ZipInfo) -> NDArray[Any]:
    """An array; elute packs without compressing, so that what a file claims it also weighs."""
    if part.compress_type != zipfile.ZIP_STORED or part.file_size != part.compress_size:
        raise Damaged(f"'{part.filename}' is compressed")
    with packed.open(part) as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise Damaged(f"'{part.filename}' is of another version")
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
        data = file.read()
    if dtype.hasobject or len(data) != dtype.itemsize * _count(shape):
        raise Damaged(f"'{part.filename}' does not hold what it says")
    array: NDArray[Any] = np.frombuffer(data, dtype).copy()
    return array.reshape(shape, order="F" if by_column else "C")


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count
