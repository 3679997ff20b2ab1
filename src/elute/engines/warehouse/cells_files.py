"""The door of cells from a warehouse: exported files, looked at row by row, as one file of elute's own.

Warehouses write whole numbers as decimals, change capitals in names, and cut an export into many files; programs that
show a result may cut it short. What enters here has the columns of the log by their names, whole numbers of 64 bits,
and as many rows of the log as the statement has read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elute._util import files
from elute.cells.roles import Roles, refuse_lookalikes
from elute.door.fields import Damaged
from elute.door.tables import Ids, Integers, check_columns, open_parquet, refusing
from elute.engines.warehouse import layout
from elute.engines.warehouse.layout import AboutCells
from elute.errors import EluteError

_THEN = "run the statement of `elute.sql` again, and export all of its result as Parquet"
_ROWS_AT_ONCE = 1 << 20

NameRoles = Callable[[list[str]], AboutCells]
"""What cells are about where they do not say so, by their columns."""


@dataclass
class CellsFiles:
    """What was read: where it lies now, what it is about, and figures that belong to all of it."""

    path: Path
    about: AboutCells
    rows: int = 0
    flawed: int = 0
    constants: dict[str, int] = field(default_factory=dict)
    """Of the columns that are the same in each row, those that are there."""


def read_cells_files(names: Sequence[str], target: Path, name_roles: NameRoles) -> CellsFiles:
    """Read exported files, and write what they hold to `target`."""
    with _refusing(names[0]):
        about = _read_about([Path(name) for name in names], name_roles)
    found = CellsFiles(target, about)
    files.write_row_groups(target, _iterate_parts([Path(name) for name in names], found))
    with _refusing(names[0]):
        _check_sums(found)
    return found


def _iterate_parts(paths: Sequence[Path], found: CellsFiles) -> Iterator[pa.Table]:
    """All rows, as they are to be; what they say of the whole is gathered in `found`."""
    schema: pa.Schema | None = None
    for path in paths:
        with _refusing(path):
            for batch in open_parquet(path).iter_batches(_ROWS_AT_ONCE):
                part = _read_part(pa.Table.from_batches([batch]), found)
                schema = schema or part.schema
                yield part.cast(schema)


def _read_part(table: pa.Table, found: CellsFiles) -> pa.Table:
    roles, names = found.about.roles, _match_names(table.column_names, found.about.roles)
    _require_same_about(table, found.about)
    constants = [name for name in (layout.READ, layout.IN_ALL, layout.REPEATED) if name in names]
    ids = {name: _read_ids(name, table[names[name]]) for name in roles.ids}
    sums = {name: _read_whole(name, table[names[name]]) for name in layout.SUMS}
    for name in constants:
        _keep_constant(name, _read_whole(name, table[names[name]]), found.constants)
    amounts = {name: column.to_numpy() for name, column in sums.items()}
    _check_amounts(roles, amounts)
    found.rows += int(amounts[layout.ROWS].sum())
    found.flawed += int(amounts[layout.FLAWED].sum())
    return pa.table({**ids, **sums})


def _match_names(existing: Sequence[str], roles: Roles) -> dict[str, str]:
    """Columns by the names that they are to have; not all warehouses keep capitals."""
    wanted = (*roles.ids, *layout.SUMS, layout.READ, layout.IN_ALL, layout.REPEATED, layout.ABOUT)
    found = {}
    for name in wanted:
        same = [column for column in existing if column == name] or [
            column for column in existing if column.lower() == name.lower()
        ]
        if len(same) > 1:
            raise Damaged(f"it has more than one column '{name}'")
        if same:
            found[name] = same[0]
        elif name in (*roles.ids, *layout.SUMS):
            raise Damaged(f"it has no column '{name}'")
    return found


def _read_about(paths: Sequence[Path], name_roles: NameRoles) -> AboutCells:
    for path in paths:
        file = open_parquet(path)
        own = [name for name in file.schema_arrow.names if name.lower() == layout.ABOUT]
        if not own:
            refuse_lookalikes(file.schema_arrow.names, str(path))
            return name_roles([name for name in file.schema_arrow.names if not name.lower().startswith("elute_")])
        for batch in file.iter_batches(1, columns=own[:1]):
            said = batch.column(0)[0].as_py()
            if not isinstance(said, str):
                raise Damaged(f"column '{layout.ABOUT}' is not as the statement gives it")
            return AboutCells.read(said)
    raise EluteError(f"{paths[0]} has no rows: the log has none, or none passes the filters")


def _require_same_about(table: pa.Table, about: AboutCells) -> None:
    own = [name for name in table.column_names if name.lower() == layout.ABOUT]
    if own and table.num_rows:
        said = pc.unique(table[own[0]])
        if len(said) != 1 or not isinstance(said[0].as_py(), str) or AboutCells.read(said[0].as_py()) != about:
            raise Damaged("its rows come from different statements")


def _read_ids(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole numbers that a warehouse calls decimals are whole numbers."""
    Ids().check(name, column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return _to_integers(name, column) if _is_whole_decimal(column.type) else column


def _read_whole(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_integer(column.type) or _is_whole_decimal(column.type):
        column = _to_integers(name, column)
    check_columns(pa.table({name: column}), {name: Integers()})
    return column


def _is_whole_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) and kind.scale == 0)


def _to_integers(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        raise Damaged(f"column '{name}' has numbers beyond 64 bits; make text of them") from None


def _keep_constant(name: str, column: pa.ChunkedArray, known: dict[str, int]) -> None:
    for value in pc.unique(column).to_pylist():
        if known.setdefault(name, value) != value:
            raise Damaged(f"column '{name}' is {known[name]:,} here and {value:,} there: it is of several results")


def _check_amounts(roles: Roles, amounts: dict[str, np.ndarray]) -> None:
    rows, shown, impressions, clicks, flawed = (amounts[name] for name in layout.SUMS)
    sound = flawed == 0
    wrong = (rows < 1) | (shown > rows) | (flawed > rows)
    wrong |= sound & ((clicks > impressions) | (impressions < shown) | ((shown == 0) & (impressions > 0)))
    if roles.impressions is None:
        wrong |= (impressions != rows) | (shown != rows)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise Damaged(
            f"a cell has {clicks[at]:,} clicks of {impressions[at]:,} impressions on {shown[at]:,} of {rows[at]:,} rows"
        )


def _check_sums(found: CellsFiles) -> None:
    """Of all files together."""
    read, in_all = (found.constants.get(name, found.rows) for name in (layout.READ, layout.IN_ALL))
    if found.rows != read:
        told = f"its cells have {found.rows:,} rows of the log, but the statement has read {read:,}"
        raise Damaged(f"{told}: something is missing or there twice, or the log grew meanwhile")
    if in_all < read or (in_all > read and not found.about.filters):
        raise Damaged(f"{read:,} of {in_all:,} rows were read: the log changed meanwhile")
    if found.about.roles.session is not None and layout.REPEATED not in found.constants:
        raise Damaged(f"it has no column '{layout.REPEATED}'")
    if found.flawed:
        raise EluteError(f"{found.about.log}: {_describe_flaws(found)}")


def _describe_flaws(found: CellsFiles) -> str:
    roles, rows = found.about.roles, f"{found.flawed:,} {'row' if found.flawed == 1 else 'rows'}"
    if roles.impressions is None:
        return (
            f"column '{roles.click}' is neither 0 nor 1, true nor false in {rows} (where rows are counts, name the "
            "column of impressions with `impressions=`)"
        )
    return (
        f"columns '{roles.click}' and '{roles.impressions}' are not whole numbers from 0, clicks at most impressions, "
        f"in {rows}"
    )


@contextmanager
def _refusing(path: str | Path) -> Iterator[None]:
    """Whatever is wrong with a file, in one line: it is not elute that wrote it."""
    with refusing(Path(path), _THEN):
        try:
            yield
        except Damaged as error:
            raise EluteError(f"{path} is not what the statement gives: {error}; {_THEN}") from None
