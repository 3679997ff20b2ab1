"""Text files as chunks of whole lines: how a file of any size is read in a fixed amount of memory."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from elute._util.paths import find_matches, require_name
from elute.errors import EluteError

CHUNK_BYTES = 1 << 22
"""Bytes of text read at a time."""

Paths = str | Path | Sequence[str | Path]

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SUFFIXES = (".txt", ".dat", ".svm", ".svmlight", ".libsvm", ".letor")
_SPLITS = re.compile(r"(?:^|[^a-z])(train|vali|test|dev|heldout)", re.IGNORECASE)


def find_files(source: Paths) -> list[Path]:
    """The files that a path, a glob, a folder, or a list of these stands for: a list in its order, the rest by name."""
    parts = [source] if isinstance(source, str | Path) else list(source)
    if not parts:
        raise EluteError("no file to read: the list of paths is empty")
    for part in parts:
        require_name(part)
    return [file for part in parts for file in _find_path_files(Path(part))]


def read_chunks(path: Path, size: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The text of a file, gzip or not, in pieces of about `size` bytes that end at a line's end."""
    try:
        with path.open("rb") as raw:
            compressed = raw.read(2) == _GZIP
            raw.seek(0)
            text = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if compressed else raw
            yield from _read_whole_lines(text, size)
    except (OSError, EOFError, zlib.error) as error:
        raise EluteError(f"cannot read {path}: {error}") from error


def _read_whole_lines(text: BinaryIO, size: int) -> Iterator[bytes]:
    rest = text.read(len(_BYTE_ORDER_MARK)).removeprefix(_BYTE_ORDER_MARK)
    while more := text.read(size):
        end = more.rfind(b"\n") + 1
        if end:
            yield rest + more[:end]
            rest = more[end:]
        else:
            rest += more
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def _find_path_files(path: Path) -> list[Path]:
    if path.is_dir():
        found = [file for file in path.iterdir() if _is_data(file.name) and file.is_file()]
        if not found:
            raise EluteError(f"folder '{path}' contains no file ending in {', '.join(_SUFFIXES)} (or these with .gz)")
        splits = sorted({match[1].lower() for file in found for match in _SPLITS.finditer(file.name)})
        if len(splits) > 1:
            raise EluteError(f"folder '{path}' contains several splits ({', '.join(splits)}); pass the files of one")
    elif path.exists():
        found = [path]
    else:
        found = [Path(file) for file in find_matches(path)]
        if not found:
            raise EluteError(f"no file '{path}'")
    for file in found:
        require_name(file)
    return sorted(found, key=_natural_order)


def _is_data(name: str) -> bool:
    return name.lower().removesuffix(".gz").endswith(_SUFFIXES) and not name.startswith(".")


def _natural_order(path: Path) -> list[tuple[int, str]]:
    """Part 10 after part 9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path)) if part]
