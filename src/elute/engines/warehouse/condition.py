"""`where`, in the words of a warehouse: taken apart, and put together again from its parts.

It must be one condition on a row. What the clock says may be part of it, as the statement runs once.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.errors import SqlglotError

from elute.errors import EluteError

_REFUSED: dict[type[exp.Expr], str] = {
    exp.Query: "a subquery",
    exp.Window: "a window function",
    exp.AggFunc: "a function of several rows",
    exp.Star: "'*'",
    exp.Placeholder: "a parameter",
    exp.Parameter: "a parameter",
    exp.SessionParameter: "a variable",
    exp.Rand: "a random number",
    exp.Randn: "a random number",
    exp.Uuid: "a random number",
    exp.Command: "a command",
    exp.DDL: "a command",
    exp.DML: "a command",
}
_NO_CONDITION = (exp.Literal, exp.Alias, exp.Tuple, exp.Null)


def parse_condition(where: str, dialect: str) -> exp.Expr:
    """The condition; everything else is refused in one line."""
    try:
        found = Grammar.get_or_raise(dialect).parse_into(exp.Condition, where)
    except SqlglotError:
        found = []
    except RecursionError:
        raise _refuse("this is nested too deeply") from None
    if len(found) != 1 or found[0] is None:
        raise _refuse(f"this is not one condition in {dialect}")
    condition = found[0]
    if isinstance(condition, _NO_CONDITION):
        raise _refuse("this is not true or false")
    for part in condition.walk():
        for kind, words in _REFUSED.items():
            if isinstance(part, kind):
                raise _refuse(f"{words} is not allowed")
    return condition


def _refuse(problem: str) -> EluteError:
    return EluteError(f"`where=`: {problem}; write one SQL condition on a row, such as position <= 10")
