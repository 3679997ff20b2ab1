"""What a folder's JSON says of the files beside it, so that one cut short, changed or of another run is known.

A seal is a file's length and a checksum: of Parquet, which may be large, of its end, where it has what it says of all
its parts; the parts carry checksums of their own, which are compared as they are read (`elute.door.tables`). Of other
files the checksum is of all of it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from elute.door.fields import Kind, mapping, record, whole
from elute.errors import EluteError

_END = 2**20
"""Bytes of Parquet that the checksum is of."""

Seals = dict[str, dict[str, int]]
"""By a file's name: `bytes`, `crc32`."""

SEALS: Kind = mapping(record({"bytes": whole(), "crc32": whole(most=2**32 - 1)}))


def seal(folder: Path, names: Iterable[str]) -> Seals:
    """Of files just written; of those that are there."""
    return {name: _seal(folder / name) for name in names if (folder / name).exists()}


def require_sealed(folder: Path, seals: Mapping[str, Any] | None, mark: str, then: str) -> None:
    """Refuse a folder whose files are not those that its JSON, `mark`, was written with. `seals`: None in folders of
    older versions. `then`: what to do."""
    for name, known in (seals or {}).items():
        path = folder / name
        if path.parent != folder or not path.is_file():
            raise EluteError(f"{path} is missing; {then}")
        now = _seal(path)
        if now["bytes"] != known["bytes"]:
            told = f"has {now['bytes']:,} bytes, but {mark} was written with {known['bytes']:,}"
            raise EluteError(f"{path} {told}: it was cut short, or belongs to another run; {then}")
        if now["crc32"] != known["crc32"]:
            raise EluteError(f"{path} is not the file that {mark} was written with, or is damaged; {then}")


def _seal(path: Path) -> dict[str, int]:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _END, 0) if path.suffix == ".parquet" else 0)
        return {"bytes": size, "crc32": zlib.crc32(file.read())}
