"""What people know beside the log: which of two factors is seen no more often, and ratios measured elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.cells.factors import index_rows, row_key, to_rows
from elute.errors import EluteError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Ordered(NamedTuple):
    """Factors that are seen at most as often as others: rows of the log's factors, pair by pair. `said`: the option
    that says so."""

    said: str
    below: Ints
    above: Ints


class KnownRatios(NamedTuple):
    """log o of some factors as another source has it: rows of the log's factors, the scale of each, errors; `left_out`:
    rows that no factor has, or that have no number."""

    factor: Ints
    scale: Ints
    log_o: Floats
    log_se: Floats
    left_out: int


@dataclass(frozen=True, eq=False)
class Assumptions:
    """`monotone`: columns with which log o does not rise, all else equal. `at_most`: expressions
    `COL=VALUE[,COL=VALUE] <= COL=VALUE[,COL=VALUE]`. `propensities`: a table with the bias columns, `propensity`, and
    perhaps `log_se` and `component`."""

    monotone: tuple[str, ...] = ()
    at_most: tuple[str, ...] = ()
    propensities: pa.Table | None = None

    @classmethod
    def collect(
        cls,
        monotone: str | Iterable[str] | None = None,
        at_most: str | Iterable[str] | None = None,
        propensities: pa.Table | None = None,
    ) -> Assumptions:
        """As people give them: one or several, columns with commas between them, expressions with semicolons."""
        return cls(tuple(_split(monotone, ",")), tuple(_split(at_most, ";")), propensities)

    def require(self, factors: pa.Table) -> None:
        """Refuse what does not match these factors, before anything is computed."""
        self.order(factors)
        self.match(factors)

    def order(self, factors: pa.Table) -> list[Ordered]:
        """The factors that are seen at most as often as others; raises `EluteError` for what does not match."""
        found = [_order_by(factors, column) for column in self.monotone]
        return found + [_order_as_said(factors, said) for said in self.at_most]

    def match(self, factors: pa.Table) -> KnownRatios | None:
        """The ratios of `propensities`."""
        return None if self.propensities is None else _match(factors, self.propensities)


def _split(given: str | Iterable[str] | None, mark: str) -> Iterator[str]:
    for one in () if given is None else (given,) if isinstance(given, str) else given:
        yield from (word.strip() for word in one.split(mark) if word.strip())


def _order_by(factors: pa.Table, column: str) -> Ordered:
    """Neighbours in a column, where all others are equal."""
    _require_column(factors, column, f"`monotone='{column}'`")
    try:
        value = factors[column].cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise EluteError(
            f"`monotone='{column}'`: its values are not numbers, so nothing says which is larger"
        ) from None
    rest = _code_rows(factors, [name for name in factors.column_names if name != column])
    rows = np.flatnonzero(np.isfinite(value))
    rows = rows[np.lexsort((value[rows], rest[rows]))]
    same = rest[rows[1:]] == rest[rows[:-1]]
    return Ordered(f"--monotone {column}", rows[1:][same], rows[:-1][same])


def _order_as_said(factors: pa.Table, said: str) -> Ordered:
    """Two sides of an inequality, matched where the columns that it does not name are equal."""
    shape = "write 'position=2 <= position=1', or with more columns 'page=2,position=1 <= page=1,position=1'"
    sides = said.split("<=")
    named = [_read_side(side) for side in sides]
    if len(named) != 2 or None in named:
        raise EluteError(f"`at_most=` is '{said}', which is not an inequality of two factors; {shape}")
    low, high = (side or {} for side in named)
    if list(low) != list(high) and sorted(low) != sorted(high):
        raise EluteError(f"`at_most=` is '{said}': both sides must name the same columns; {shape}")
    for column in low:
        _require_column(factors, column, f"'{said}' in `at_most=`")
    rest = _code_rows(factors, [name for name in factors.column_names if name not in low])
    below, above = (_select(factors, side, said) for side in (low, high))
    place = dict(zip(rest[above].tolist(), above.tolist(), strict=True))
    pairs = [(t, place[code]) for t, code in zip(below.tolist(), rest[below].tolist(), strict=True) if code in place]
    pairs = [(a, b) for a, b in pairs if a != b]
    if not pairs:
        raise EluteError(f"`at_most=` is '{said}', and no two factors differ in that alone; check its values")
    a, b = np.array(pairs, np.int64).T
    return Ordered(f"--at-most '{said}'", a, b)


def _read_side(text: str) -> dict[str, str] | None:
    """Columns and their values; None for what is not that."""
    out = {}
    for word in text.split(","):
        column, mark, value = (part.strip() for part in word.partition("="))
        if not (column and mark and value) or column in out:
            return None
        out[column] = value
    return out


def _select(factors: pa.Table, side: dict[str, str], said: str) -> Ints:
    """The factors with these values, compared as their column has them."""
    chosen = np.ones(factors.num_rows, np.bool_)
    for column, text in side.items():
        kind = factors[column].type
        try:
            value = pa.scalar(text).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise EluteError(f"`at_most=` is '{said}', but '{column}' has values of type {kind}, not {text}") from None
        equal = pc.fill_null(pc.equal(factors[column], value), False).to_numpy(zero_copy_only=False)
        if not equal.any():
            raise EluteError(f"`at_most=` is '{said}', but no factor has {column} {text}; check the value")
        chosen &= equal.astype(np.bool_)
    return np.flatnonzero(chosen)


def _match(factors: pa.Table, given: pa.Table) -> KnownRatios:
    names = factors.column_names
    absent = [name for name in (*names, "propensity") if name not in given.column_names]
    if absent:
        has = ", ".join(given.column_names)
        raise EluteError(f"the table of `propensities=` has no column '{absent[0]}' (it has {has}); add it")
    try:
        named = pa.table({name: given[name].cast(factors[name].type) for name in names})
        errors = [_read_numbers(given, name) for name in ("log_se", "log_se_clusters") if name in given.column_names]
        value = _read_numbers(given, "propensity")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EluteError(f"the columns of `propensities=` do not match the log's ({error}); name them alike") from error
    keys = [row_key(row) for row in to_rows(named, range(named.num_rows))]
    if len(set(keys)) < len(keys):
        raise EluteError("the table of `propensities=` has two rows for one factor; keep one for each")
    place = index_rows(factors)
    factor = np.array([place.get(key, -1) for key in keys], np.int64)
    scale = np.unique(given["component"].to_numpy(), return_inverse=True)[1] if "component" in given.column_names else 0
    log_se = np.zeros(len(value)) if not errors else np.fmax.reduce(errors)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_o = np.log(value)
    used = (factor >= 0) & np.isfinite(log_o) & np.isfinite(log_se)
    if not used.any():
        raise EluteError(
            "no factor of the log has a propensity above 0 in `propensities=`; are these its bias columns?"
        )
    scales = np.broadcast_to(scale, len(value))[used].astype(np.int64)
    return KnownRatios(factor[used], scales, log_o[used], log_se[used], int((~used).sum()))


def _read_numbers(table: pa.Table, column: str) -> Floats:
    return np.asarray(table[column].cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def _code_rows(factors: pa.Table, columns: Sequence[str]) -> Ints:
    """Equal numbers for rows that are equal in these columns."""
    code = np.zeros(factors.num_rows, np.int64)
    for column in columns:
        values = pc.dictionary_encode(factors[column].combine_chunks(), null_encoding="encode")
        code = np.unique(code * (len(values.dictionary) + 1) + values.indices.to_numpy(), return_inverse=True)[1]
    return code


def _require_column(factors: pa.Table, column: str, where: str) -> None:
    if column not in factors.column_names:
        bias = ", ".join(factors.column_names)
        raise EluteError(f"{where}: '{column}' is no bias column; there are: {bias} (name others with `bias=`)")
