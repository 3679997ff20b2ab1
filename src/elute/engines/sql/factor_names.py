"""Names of factors from sources without types."""

from __future__ import annotations

import pyarrow as pa


def numbers_from_text(table: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    """Factors of an untyped source: a column becomes a number where every value is written as one
    would write it (1, not 01), and the rows are ordered anew."""
    for column in columns:
        for kind in (pa.int64(), pa.float64()):
            try:
                cast = table[column].cast(kind)
            except pa.ArrowInvalid:
                continue
            if cast.cast(pa.string()).equals(table[column].cast(pa.string())):
                table = table.set_column(table.column_names.index(column), column, cast)
                break
    return table.sort_by([(column, "ascending") for column in columns])
