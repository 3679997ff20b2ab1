"""The files that a path, a glob or a folder stands for, and their formats."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from elute._util.paths import find_matches, is_hidden, require_name
from elute._util.urls import hide_secrets
from elute.errors import EluteError

FORMATS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "ndjson": (".ndjson", ".jsonl", ".json", ".ndjson.gz", ".jsonl.gz", ".json.gz"),
}
_SUFFIXES = {suffix: kind for kind, suffixes in FORMATS.items() for suffix in suffixes}


class FoundFile(NamedTuple):
    """A file, and the columns that folders below the one that was named stand for: `date=2020` for a column `date`."""

    path: str
    columns: tuple[str, ...] = ()


def find_files(path: str) -> list[str]:
    """The files a path, a pattern or a folder stands for, in a fixed order."""
    return [file.path for file in find_placed_files(path)]


def find_placed_files(path: str) -> list[FoundFile]:
    """`find_files`, with where they lie."""
    if "://" in path:
        known = "files, duckdb:// and postgres:// tables, and Parquet at s3:// and https://"
        raise EluteError(f"{hide_secrets(path)} cannot be read; elute reads {known}")
    found = find_matches(path)
    if not found:
        raise EluteError(f"no file '{path}'")
    return [file for match in found for file in _list_match(Path(match), match)]


def _list_match(place: Path, name: str) -> list[FoundFile]:
    if place.is_dir():
        return _list_folder(place)
    if place.stat().st_size == 0:
        raise EluteError(f"{name} is empty (0 bytes)")
    return [FoundFile(name)]


def _list_folder(folder: Path) -> list[FoundFile]:
    """All data below it, but for what is hidden."""
    files = sorted(
        (file for file in folder.rglob("*") if _suffix(file.name) and not is_hidden(file, folder) and file.is_file()),
        key=str,
    )
    if not files:
        raise EluteError(f"folder '{folder}' contains no Parquet, CSV or NDJSON file")
    for file in files:
        require_name(file)
    return [FoundFile(str(file), list_columns(file.relative_to(folder).parent)) for file in files]


def list_columns(folders: Path) -> tuple[str, ...]:
    """What the names of these folders are columns of."""
    return tuple(unquote(part.partition("=")[0]) for part in folders.parts if "=" in part)


def escape(path: str) -> str:
    """The absolute path as DuckDB reads it, which takes every name for a pattern."""
    whole = str(Path(path).absolute())
    escaped = re.sub(r"[*?\[]", r"[\g<0>]", whole)
    if escaped != whole and "\\" in whole:
        raise EluteError(f"{path} cannot be read under this name, which has a backslash beside *, ? or [; rename it")
    return escaped


def _suffix(file: str) -> str | None:
    return next((suffix for suffix in _SUFFIXES if file.lower().endswith(suffix)), None)


def find_kind(file: str) -> str:
    """Parquet, CSV or NDJSON, by the name."""
    suffix = _suffix(file)
    if suffix is None:
        raise EluteError(f"{file}: unknown format; expected a name ending in .parquet, .csv, .tsv, .ndjson or .jsonl")
    return _SUFFIXES[suffix]
