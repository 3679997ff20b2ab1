"""Files on this machine as one relation: those that were named and no others, with the columns that are in them.

DuckDB takes names for patterns and the names of folders (`date=2020`) for columns, wherever they stand in a path. Here
a name is a name, and a folder's name is a column only below a folder that was named as a whole, as Spark has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from elute.engines.duckdb.files import escape, find_kind, find_placed_files, list_columns
from elute.engines.sql import delimited, quoting
from elute.errors import EluteError

_NO_COLUMNS = "hive_partitioning = false"


class LocalFiles:
    """`kind`: parquet, csv or ndjson. `label`: what messages call them."""

    def __init__(self, paths: Sequence[str], label: str) -> None:
        placed = [file for path in paths for file in find_placed_files(path)]
        self.names = [file.path for file in placed]
        kinds = {find_kind(name) for name in self.names}
        if len(kinds) > 1:
            raise EluteError(f"{label}: mixed formats ({', '.join(sorted(kinds))}); pass one format at a time")
        self.kind, self._label = kinds.pop(), label
        self._columns = {column for file in placed for column in file.columns}
        """From the names of folders."""

    def relation(self, describe: Callable[[str], Iterable[str]]) -> str:
        """The rows of all files in SQL. `describe`: the columns of a relation."""
        if not self._columns:
            return self._read(_NO_COLUMNS)
        seen = {column for name in self.names for column in list_columns(Path(name).absolute().parent)}
        self._refuse_twice(seen, describe(self._read(_NO_COLUMNS)))
        above = sorted(seen - self._columns)
        relation = self._read(self._folders)
        return f"(SELECT * EXCLUDE ({quoting.names(above)}) FROM {relation})" if above else relation

    def typed_relation(self, types: Mapping[str, str]) -> str:
        """Of NDJSON, columns of these types."""
        columns = ", ".join(
            f"{quoting.text(column)}: {quoting.text(kind)}"
            for column, kind in types.items()
            if column not in self._columns
        )
        return f"read_json([{self._listed}], {self._folders}, format = 'newline_delimited', columns = {{{columns}}})"

    @property
    def _folders(self) -> str:
        """Whether the names of folders are columns; in CSV these are text, as all are."""
        text = ", hive_types_autocast = false" if self.kind == "csv" else ""
        return f"hive_partitioning = true{text}" if self._columns else _NO_COLUMNS

    @property
    def _listed(self) -> str:
        return ", ".join(quoting.text(escape(name)) for name in self.names)

    def _read(self, folders: str) -> str:
        if self.kind == "csv":
            return delimited.csv_relation(self.names, [quoting.text(escape(name)) for name in self.names], folders)
        if self.kind == "parquet":
            return f"read_parquet([{self._listed}], {folders}, union_by_name = true)"
        guessed = "format = 'newline_delimited', union_by_name = true, sample_size = -1"
        return f"read_json([{self._listed}], {folders}, {guessed})"

    def _refuse_twice(self, seen: Iterable[str], columns: Iterable[str]) -> None:
        """A column of the files that the name of a folder would hide."""
        own = {column.lower() for column in columns}
        for column in sorted(seen):
            if column.lower() in own:
                raise EluteError(hidden_column(self._label, column))


def hidden_column(label: str, column: str) -> str:
    """What to say of a column that is in files and in the names of their folders."""
    return (
        f"{label}: '{column}' is a column of the files and a part of their folders' names ({column}=…); to read the "
        "files' own, name the files, as in 'folder/*/*.parquet'"
    )
