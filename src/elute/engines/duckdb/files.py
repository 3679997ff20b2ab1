"""The files that a path, a glob or a folder stands for, and their formats."""

from __future__ import annotations

import glob
from pathlib import Path

from elute._util.urls import hide_secrets
from elute.errors import EluteError

FORMATS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "ndjson": (".ndjson", ".jsonl", ".json", ".ndjson.gz", ".jsonl.gz", ".json.gz"),
}
_SUFFIXES = {suffix: kind for kind, suffixes in FORMATS.items() for suffix in suffixes}


def find_files(path: str) -> list[str]:
    """The files a path, a glob or a folder stands for, in a fixed order."""
    if "://" in path:
        known = "files, duckdb:// and postgres:// tables, and Parquet at s3:// and https://"
        raise EluteError(f"{hide_secrets(path)} cannot be read; elute reads {known}")
    if Path(path).is_dir():
        files = sorted(str(file) for file in Path(path).rglob("*") if _suffix(file.name) and file.is_file())
        if not files:
            raise EluteError(f"folder '{path}' contains no Parquet, CSV or NDJSON file")
        return files
    files = [path] if Path(path).exists() else sorted(glob.glob(path, recursive=True))  # noqa: PTH207 (absolute patterns too)
    if not files:
        raise EluteError(f"no file '{path}'")
    for file in files:
        if Path(file).stat().st_size == 0:
            raise EluteError(f"{file} is empty (0 bytes)")
    return files


def _suffix(file: str) -> str | None:
    return next((suffix for suffix in _SUFFIXES if file.lower().endswith(suffix)), None)


def find_kind(file: str) -> str:
    """Parquet, CSV or NDJSON, by the name."""
    suffix = _suffix(file)
    if suffix is None:
        raise EluteError(f"{file}: unknown format; expected a name ending in .parquet, .csv, .tsv, .ndjson or .jsonl")
    return _SUFFIXES[suffix]
