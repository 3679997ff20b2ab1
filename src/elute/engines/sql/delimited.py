"""CSV and TSV files as one relation.

The header is read here and every setting is given to DuckDB: left to guess, its reader may skip lines or
take them for comments to make sense of a broken file, and rows would be lost without a word.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path

from elute.cells.roles import refuse_lookalikes
from elute.engines.sql import quoting
from elute.errors import EluteError

_DELIMITERS = ",\t;|"


def csv_relation(files: Sequence[str], quoted: Sequence[str], options: str) -> str:
    """SQL for the rows of all files, columns matched by name, every value as text. `quoted`: the files in SQL;
    `options`: more for DuckDB's reader."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for file, named in zip(files, quoted, strict=True):
        groups.setdefault(read_header(file), []).append(named)
    parts = [f"SELECT * FROM {_reader_sql(header, group, options)}" for header, group in groups.items()]
    return f"({' UNION ALL BY NAME '.join(parts)})"


def _reader_sql(header: tuple[str, ...], quoted: Sequence[str], options: str) -> str:
    delimiter, *columns = header
    types = ", ".join(f"{quoting.text(column)}: 'VARCHAR'" for column in columns)
    return (
        f"read_csv([{', '.join(quoted)}], {options}, auto_detect = false, header = true, columns = {{{types}}}, "
        f"delim = {quoting.text(delimiter)}, quote = '\"', escape = '\"', comment = '', strict_mode = true)"
    )


def read_header(file: str) -> tuple[str, ...]:
    """The delimiter, the likeliest of the first line, and the column names."""
    try:
        with gzip.open(file) if file.lower().endswith(".gz") else Path(file).open("rb") as stream:
            lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            first = lines.readline(1 << 20)
            delimiter = max(_DELIMITERS, key=first.count)
            columns = next(csv.reader([first, *lines.readlines(1 << 20)], delimiter=delimiter), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
        raise EluteError(f"cannot read {file} as CSV in UTF-8: {error}") from error
    columns = [column or f"_c{place}" for place, column in enumerate(columns)]  # pandas leaves its index unnamed
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise EluteError(f"{file}: two columns are named '{twice}'; rename one")
    refuse_lookalikes(columns, file)
    return delimiter, *columns
