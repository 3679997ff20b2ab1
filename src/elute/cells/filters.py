"""Which rows of a log are read: what a user asks for, before any engine carries it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from elute.cells.factors import has_position_name
from elute.errors import EluteError
from elute.options.takes import take_option


@dataclass(frozen=True)
class Filters:
    """Rows that fail one of them are not read, as if the log did not have them.

    `where`: an SQL expression over the log's columns. `max_position`: at most this in the bias column of positions.
    `min_factor_impressions`: factors that have fewer, after the other two, are left out.
    """

    where: str | None = None
    max_position: int | None = None
    min_factor_impressions: int | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Of `elute.read_log`, or of a file that remembers them; refuses values that mean nothing."""
        given = {name: options.get(name) for name in ("where", "max_position", "min_factor_impressions")}
        return cls(**{name: None if value is None else take_option(name, value) for name, value in given.items()})

    def __bool__(self) -> bool:
        return self != Filters()

    @property
    def by_factor(self) -> Self:
        """Those that keep or leave out whole factors."""
        return type(self)(None, self.max_position, self.min_factor_impressions)

    def to_dict(self) -> dict[str, str | int | None]:
        return asdict(self)

    def describe(self, left_out: int | None) -> str:
        """In words, with the rows that were left out: `only rows with position <= 3 and positions up to 5`."""
        words: list[tuple[object, str]] = [
            (self.where, f"rows with {self.where}"),
            (self.max_position, f"positions up to {self.max_position}"),
            (self.min_factor_impressions, f"factors with at least {self.min_factor_impressions} impressions"),
        ]
        only = "only " + ", ".join(text for value, text in words if value is not None)
        return only if left_out is None else f"{only} ({left_out:,} rows left out)"

    def refuse_empty(self, label: str) -> EluteError:
        """What to say of a log without a row."""
        if not self:
            return EluteError(f"{label} has no rows")
        given = ", ".join(f"`{name}=`" for name, value in self.to_dict().items() if value is not None)
        return EluteError(f"no row of {label} is left: it has none, or none passes {given}; filter less")

    def and_then(self, later: Filters) -> Filters:
        """Both, where `later` keeps or leaves out whole factors of what these have left."""
        return Filters(
            self.where,
            _pick(min, self.max_position, later.max_position),
            _pick(max, self.min_factor_impressions, later.min_factor_impressions),
        )


def describe_filters(fields: Mapping[str, Any]) -> list[str]:
    """What a result's JSON says of them: one sentence, or none where all of a log was read."""
    filters = Filters.from_options(fields.get("filters") or {})
    return [filters.describe(fields.get("rows_filtered"))] if filters else []


def choose_position(bias: Iterable[str], find_flaw: Callable[[str], str | None]) -> str:
    """The bias column whose values `max_position` is compared with. `find_flaw`: why a column's values are not
    numbers, in words; None where they are."""
    columns = list(bias)
    flaws = {column: find_flaw(column) for column in columns if has_position_name(column)}
    found = [column for column, flaw in flaws.items() if flaw is None]
    if len(found) == 1:
        return found[0]
    if found:
        problem = f"{len(found)} bias columns may hold positions ({', '.join(found)})"
        raise EluteError(f"`max_position=`: {problem}; say which rows to keep with `where=`")
    problem = "; ".join(f"column '{column}' {flaw}" for column, flaw in flaws.items())
    problem = problem or f"none of the bias columns ({', '.join(columns)}) is named as one of positions"
    raise EluteError(f"`max_position=`: {problem}; name another with `bias=`, or say which rows to keep with `where=`")


def describe_text(rows: int, example: object) -> str | None:
    """What is wrong with positions that are text, where so many rows have no number."""
    return f"is not a number in {rows:,} {'row' if rows == 1 else 'rows'}, for instance {example!r}" if rows else None


def _pick(choose: Callable[..., int], one: int | None, other: int | None) -> int | None:
    given = [number for number in (one, other) if number is not None]
    return choose(given) if given else None
