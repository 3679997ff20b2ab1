"""What warehouses do differently, as far as the statement needs it; the rest is sqlglot's to know."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from elute.engines.sql.values import MOST
from elute.errors import EluteError

_ONE = ("1", "1.0", "1.0e0", "true")
_NONE = ("0", "0.0", "0.0e0", "-0", "-0.0", "-0.0e0", "false")
_NUMBER = "^[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?$"
_USUAL = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True)
class Dialect:
    """`capitals`: names that are not quoted are meant in capitals. `escapes`: a backslash in a quoted name is not just
    that. `true_is_text`: a truth value can be written as text."""

    name: str
    capitals: bool = False
    escapes: bool = False
    true_is_text: bool = True
    is_number: Callable[[exp.Expr], exp.Expr] | None = None
    """Where text becomes 0 silently instead of failing: whether a value is a number."""

    def identifier(self, name: str) -> exp.Identifier:
        """A name, quoted. As in SQL, small letters alone stand for a name that nobody quoted when it was made."""
        if self.escapes and ("\\" in name or "`" in name):
            raise EluteError(f"'{name}' cannot be quoted safely in {self.name}; select it by another name in a view")
        if self.capitals and _USUAL.fullmatch(name):
            name = name.upper()
        return exp.to_identifier(name, quoted=True)

    def number(self, column: exp.Expr) -> exp.Expr:
        """A column's value as a number with a point; null, or an error of the warehouse, where it is none."""
        value = exp.cast(column.copy(), "DOUBLE")
        return value if self.is_number is None else exp.case().when(self.is_number(column.copy()), value)

    def is_amount(self, column: exp.Expr) -> exp.Expr:
        """Whether a value is a whole number from 0. NaN is not: it is above everything here, below nothing there."""
        value = self.number(column)
        floor = exp.cast(value.copy(), "BIGINT") if self.name == "sqlite" else exp.Floor(this=value.copy())
        return exp.and_(value >= 0, value.copy() <= MOST, exp.EQ(this=value.copy(), expression=floor))

    def is_click(self, column: exp.Expr) -> exp.Expr:
        """Whether a value says that a row was clicked, whatever its type."""
        return self._is_one_of(column, _ONE, 1)

    def is_no_click(self, column: exp.Expr) -> exp.Expr:
        """Whether it says that it was not."""
        return self._is_one_of(column, _NONE, 0)

    def _is_one_of(self, column: exp.Expr, words: tuple[str, ...], number: int) -> exp.Expr:
        if not self.true_is_text:
            return exp.EQ(this=self.number(column), expression=exp.Literal.number(number))
        said = exp.Lower(this=exp.Trim(this=exp.cast(column.copy(), "TEXT")))
        return exp.In(this=said, expressions=[exp.Literal.string(word) for word in words])


def _has_number_type(column: exp.Expr) -> exp.Expr:
    kinds = [exp.Literal.string(kind) for kind in ("integer", "real")]
    return exp.In(this=exp.Anonymous(this="TYPEOF", expressions=[column]), expressions=kinds)


def _is_written_as_number(column: exp.Expr) -> exp.Expr:
    return exp.RegexpLike(this=exp.cast(column, "TEXT"), expression=exp.Literal.string(_NUMBER))


DIALECTS = {
    one.name: one
    for one in (
        Dialect("bigquery", escapes=True),
        Dialect("clickhouse", escapes=True),
        Dialect("databricks"),
        Dialect("duckdb"),
        Dialect("mysql", is_number=_is_written_as_number),
        Dialect("postgres"),
        Dialect("redshift", true_is_text=False),
        Dialect("snowflake", capitals=True),
        Dialect("spark"),
        Dialect("sqlite", is_number=_has_number_type),
        Dialect("trino"),
    )
}
"""By name; `elute.options.table` has the same names, and a test compares them."""
