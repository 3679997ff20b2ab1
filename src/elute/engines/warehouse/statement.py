"""The statement that counts a log's cells where the log is: a tree of sqlglot's, written in a warehouse's dialect.

Rows with a null id stay in it, as cells without a name: they are what a counts folder says of nulls. Names and texts
are leaves of the tree, never pieces of text that are put together; what is written is read again and compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import sqlglot
from sqlglot import exp

from elute.cells.filters import choose_position
from elute.engines.warehouse import layout
from elute.engines.warehouse.condition import parse_condition
from elute.engines.warehouse.dialects import DIALECTS, Dialect
from elute.engines.warehouse.layout import AboutCells
from elute.errors import EluteError

_LOG, _KEPT, _ROWS, _CELLS, _PAGES = "elute_log", "elute_kept", "elute_kept_rows", "elute_cells", "elute_pages"
_SHOWN, _CLICKED, _FLAWED, _SESSION, _TIMES = (
    f"elute_{of}" for of in ("shown", "clicked", "flawed", "session", "times")
)
_PART = re.compile(r'"(?:[^"]|"")+"|[^.]+')
_MOST_PARTS = 4


def write_statement(about: AboutCells, dialect: str) -> str:
    """In a dialect of `DIALECTS`; one statement, without a semicolon."""
    tree = _Builder(about, DIALECTS[dialect]).build()
    written = tree.sql(dialect=dialect, pretty=True, comments=False)
    read = sqlglot.parse(written, dialect=dialect)
    if len(read) != 1 or read[0] is None or read[0].sql(dialect=dialect, pretty=True, comments=False) != written:
        raise EluteError(f"a name or `where=` cannot be written safely in {dialect}; use a view instead")
    return written


class _Builder:
    def __init__(self, about: AboutCells, dialect: Dialect) -> None:
        self._about, self._roles, self._dialect = about, about.roles, dialect
        self._table = _name_table(about.log, dialect)

    def build(self) -> exp.Select:
        """From the last step, which names the others."""
        least = self._about.filters.min_factor_impressions
        steps = {_LOG: self._select_log()}
        rows = _LOG
        if least is not None:
            steps |= {_KEPT: self._select_kept(least), _ROWS: self._select_kept_rows()}
            rows = _ROWS
        steps[_CELLS] = self._select_cells(rows)
        constants = {layout.READ: _count_rows(exp.to_table(rows)), layout.IN_ALL: _count_rows(self._table.copy())}
        if self._roles.session is not None:
            steps[_PAGES] = self._select_pages(rows)
            repeated = exp.Sum(this=_own(_TIMES) - 1)
            constants[layout.REPEATED] = exp.select(
                _whole(exp.func("COALESCE", repeated, exp.Literal.number(0)))
            ).from_(_PAGES)
        columns: list[exp.Expr] = [_own(name) for name in (*self._roles.ids, *layout.SUMS)]
        columns += [_name(select.subquery(), name) for name, select in constants.items()]
        columns.append(_name(exp.Literal.string(self._about.write()), layout.ABOUT))
        out = exp.select(*columns).from_(_CELLS)
        for name, select in steps.items():
            out = out.with_(name, as_=select)
        return out

    def _select_log(self) -> exp.Select:
        """The rows that pass, with their ids by the names that they are to have, and numbers that can be added."""
        roles, where = self._roles, self._about.filters.where
        columns = [_name(self._column(name), name) for name in roles.ids]
        if roles.session is not None:
            columns.append(_name(self._column(roles.session), _SESSION))
        shown, clicked, sound = self._read_amounts()
        conditions: list[exp.Expr] = [] if where is None else [exp.paren(parse_condition(where, self._dialect.name))]
        position = self._limit_position()
        if position is not None:
            passes, is_number = position
            conditions.append(passes)
            sound = sound if is_number is None else exp.and_(sound, is_number)
        columns += [_name(shown, _SHOWN), _name(clicked, _CLICKED), _name(_choose(sound, 0, 1), _FLAWED)]
        selected = exp.select(*columns).from_(self._table.copy())
        return selected.where(*conditions) if conditions else selected

    def _read_amounts(self) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
        """Impressions and clicks of a row, and whether they are such."""
        dialect, click = self._dialect, self._column(str(self._roles.click))
        if self._roles.impressions is None:
            clicked = dialect.is_click(click)
            return exp.Literal.number(1), _choose(clicked, 1, 0), exp.or_(clicked.copy(), dialect.is_no_click(click))
        shown = self._column(self._roles.impressions)
        impressions, clicks = (
            exp.case().when(dialect.is_amount(one), _whole(dialect.number(one))).else_(exp.Literal.number(0))
            for one in (shown, click)
        )
        most = exp.LTE(this=dialect.number(click), expression=dialect.number(shown))
        return impressions, clicks, exp.and_(dialect.is_amount(shown), dialect.is_amount(click), most)

    def _limit_position(self) -> tuple[exp.Expr, exp.Expr | None] | None:
        """What keeps a row for its position; and, where text that is no number would be left out without a word, what
        tells it, so that such rows are kept and refused."""
        most = self._about.filters.max_position
        if most is None:
            return None
        column = self._column(choose_position(self._roles.bias, lambda _: None))
        passes: exp.Expr = self._dialect.number(column) <= most
        if self._dialect.is_number is None:
            return passes, None
        is_number = self._dialect.is_number(column.copy())
        named = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
        kept = exp.paren(exp.or_(passes, exp.and_(named, exp.Not(this=exp.paren(is_number.copy())))))
        return kept, is_number

    def _select_kept(self, least: int) -> exp.Select:
        """Factors with enough impressions on rows without a null id."""
        bias = [_own(name) for name in self._roles.bias]
        enough = exp.Sum(this=_own(_SHOWN)) >= least
        kept = exp.select(*bias).from_(_LOG).where(*_not_null(self._roles.ids))
        return kept.group_by(*(one.copy() for one in bias)).having(enough)

    def _select_kept_rows(self) -> exp.Select:
        session = [] if self._roles.session is None else [_SESSION]
        columns = [_own(name, _LOG) for name in (*self._roles.ids, *session, _SHOWN, _CLICKED, _FLAWED)]
        same = [exp.EQ(this=_own(name, _LOG), expression=_own(name, _KEPT)) for name in self._roles.bias]
        return exp.select(*columns).from_(_LOG).join(_KEPT, on=exp.and_(*same), join_type="inner")

    def _select_cells(self, rows: str) -> exp.Select:
        ids = [_own(name) for name in self._roles.ids]
        sums = {
            layout.ROWS: exp.Count(this=exp.Star()),
            layout.SHOWN: exp.Sum(this=_choose(_own(_SHOWN) > 0, 1, 0)),
            layout.IMPRESSIONS: exp.Sum(this=_own(_SHOWN)),
            layout.CLICKS: exp.Sum(this=_own(_CLICKED)),
            layout.FLAWED: exp.Sum(this=_own(_FLAWED)),
        }
        columns = [*ids, *(_name(_whole(amount), name) for name, amount in sums.items())]
        return exp.select(*columns).from_(rows).group_by(*(one.copy() for one in ids))

    def _select_pages(self, rows: str) -> exp.Select:
        """How often each item is on each page: a session's and, where there is one, a query's."""
        roles = self._roles
        page = dict.fromkeys((_SESSION, *((roles.query,) if roles.query else ()), *roles.item))
        times = _name(exp.Count(this=exp.Star()), _TIMES)
        return exp.select(times).from_(rows).where(*_not_null(page)).group_by(*(_own(name) for name in page))

    def _column(self, name: str) -> exp.Column:
        """A column of the log, by its name there."""
        return exp.column(self._dialect.identifier(name))


def _name_table(table: str, dialect: Dialect) -> exp.Table:
    """`schema.table` and the like; a part in double quotes may have dots, and is meant as it is written."""
    parts, at = [], 0
    while at < len(table):
        found = _PART.match(table, at)
        if found is None or (found.end() < len(table) and table[found.end()] != "."):
            break
        parts.append(found[0])
        at = found.end() + 1
    if not 1 <= len(parts) <= _MOST_PARTS or at != len(table) + 1:
        raise EluteError(f"'{table}' does not name a table; write its name, or schema.table")
    if len(parts) == 1 and table.strip('"').lower().startswith("elute_"):
        raise EluteError(f"'{table}' is called like a step of the statement; name its schema too, or a view")
    named = [
        exp.to_identifier(part[1:-1].replace('""', '"'), quoted=True) if _is_quoted(part) else dialect.identifier(part)
        for part in parts
    ]
    first = named[0] if len(named) == 1 else exp.Dot.build(named) if len(named) == _MOST_PARTS else None
    if first is not None:
        return exp.Table(this=first)
    *catalog, schema, name = named
    return exp.Table(this=name, db=schema, catalog=catalog[0] if catalog else None)


def _is_quoted(part: str) -> bool:
    return re.fullmatch(r'"(?:[^"]|"")+"', part) is not None


def _own(name: str, of: str | None = None) -> exp.Column:
    """A column of an earlier step."""
    return exp.column(exp.to_identifier(name, quoted=True), table=of)


def _name(expression: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=expression, alias=exp.to_identifier(name, quoted=True))


def _whole(amount: exp.Expr) -> exp.Cast:
    return exp.cast(amount, "BIGINT")


def _choose(condition: exp.Expr, then: int, otherwise: int) -> exp.Case:
    return exp.case().when(condition.copy(), exp.Literal.number(then)).else_(exp.Literal.number(otherwise))


def _count_rows(table: exp.Table) -> exp.Select:
    return exp.select(_whole(exp.Count(this=exp.Star()))).from_(table)


def _not_null(columns: Iterable[str]) -> Sequence[exp.Expr]:
    return [exp.Not(this=exp.Is(this=_own(name), expression=exp.Null())) for name in columns]
