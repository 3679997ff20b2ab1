"""How several bias columns act together: a formula over them.

`position,device` gives every combination of values a propensity of its own. `position + device` says that each column
has an effect and that effects multiply: log o(t) is a sum of one term a column. `position:device` is one effect for
each combination of these two; `position * device` is `position + device + position:device`, which says no less than
the comma. `smooth(position)`: neighbouring values are alike, as much as held-out clicks say. `linear(height)`: the
logarithm is linear in a number; `spline(height)`: a smooth curve of it. A name in backticks is taken as it is.

The formula travels with the table of factors, in its schema: whoever has the factors knows how they are tied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, get_args

from elute.errors import EluteError

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["level", "smooth", "linear", "spline"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_CALLS = KINDS[1:]

_MARK = b"elute.bias"
_TOKEN = re.compile(r"\s*(?:(?P<quoted>`[^`]+`)|(?P<sign>[+*:()])|(?P<name>[^+*:()`,]+))")
_SIGNS = re.compile(r"[+:()`]|\s\*|\*\s")
_PLAIN = re.compile(r"[^+*:()`,\s](?:[^+*:()`,]*[^+*:()`,\s])?")


@dataclass(frozen=True)
class BiasVariable:
    """A bias column, and how its values act."""

    column: str
    kind: Kind = "level"

    @property
    def is_number(self) -> bool:
        return self.kind in ("linear", "spline")

    def __str__(self) -> str:
        name = self.column if _PLAIN.fullmatch(self.column) else f"`{self.column}`"
        return name if self.kind == "level" else f"{self.kind}({name})"


@dataclass(frozen=True)
class BiasTerm:
    """Columns with one effect for each combination of their values."""

    variables: tuple[BiasVariable, ...]

    @property
    def key(self) -> frozenset[BiasVariable]:
        """What two terms that say the same have in common."""
        return frozenset(self.variables)

    def roughen(self) -> BiasTerm:
        """Without a prior."""
        return BiasTerm(tuple(BiasVariable(one.column) if one.kind == "smooth" else one for one in self.variables))

    def __str__(self) -> str:
        return ":".join(map(str, self.variables))


@dataclass(frozen=True)
class BiasFormula:
    """A sum of terms. `BiasFormula.parse` reads one; `BiasFormula.add` makes one of columns."""

    terms: tuple[BiasTerm, ...]

    @classmethod
    def add(cls, *columns: str) -> BiasFormula:
        """One effect a column."""
        return cls(tuple(BiasTerm((BiasVariable(column),)) for column in dict.fromkeys(columns)))

    @classmethod
    def parse(cls, text: str) -> BiasFormula:
        """Read a formula; what cannot be read is an `EluteError`."""
        return cls(_Reader(text).read())

    @property
    def columns(self) -> tuple[str, ...]:
        """Each once, in the order of the formula."""
        return tuple(dict.fromkeys(one.column for term in self.terms for one in term.variables))

    @property
    def saturated(self) -> bool:
        """Whether every combination has an effect of its own, as with commas."""
        plain = frozenset(map(BiasVariable, self.columns))
        return any(term.key == plain for term in self.terms) and all(term.key <= plain for term in self.terms)

    def __str__(self) -> str:
        return " + ".join(map(str, self.terms))


class _Reader:
    """Tokens of a formula: sums of products of interactions."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._at = text, [], 0
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self._refuse(f"'{text[at:].strip()[0]}' has no meaning here; join columns by + or :")
            self._tokens.append(found[0].strip())
            at = found.end()

    def read(self) -> tuple[BiasTerm, ...]:
        terms = self._read_products()
        while self._peek() == "+":
            self._at += 1
            terms += self._read_products()
        if self._peek():
            raise self._refuse(f"'{self._peek()}' is not expected; terms are joined by +")
        used = {one for term in terms for one in term.variables}
        for one in used:
            if one.kind == "smooth" and any(one.column == other.column and one != other for other in used):
                raise self._refuse(f"'{one.column}' is smooth and something else; name one")
        unique = {term.key: term for term in reversed(terms)}
        return tuple(term for term in terms if unique[term.key] is term)

    def _read_products(self) -> list[BiasTerm]:
        """`a * b` is a, b and a:b."""
        parts = [self._read_interaction()]
        while self._peek() == "*":
            self._at += 1
            parts.append(self._read_interaction())
        chosen = (some for size in range(1, len(parts) + 1) for some in combinations(parts, size))
        return [self._join(one for part in some for one in part) for some in chosen]

    def _join(self, variables: Iterable[BiasVariable]) -> BiasTerm:
        term = BiasTerm(tuple(dict.fromkeys(variables)))
        if len(term.variables) > 1 and any(one.kind == "smooth" for one in term.variables):
            raise self._refuse(f"smooth() stands alone, not in '{term}'")
        if sum(one.is_number for one in term.variables) > 1:
            raise self._refuse(f"'{term}' has two numbers; one of a term at most")
        return term

    def _read_interaction(self) -> list[BiasVariable]:
        found = [self._read_variable()]
        while self._peek() == ":":
            self._at += 1
            found.append(self._read_variable())
        return found

    def _read_variable(self) -> BiasVariable:
        name = self._read_name()
        if self._peek() != "(":
            return BiasVariable(name)
        kind = next((call for call in _CALLS if call == name), None)
        if kind is None:
            raise self._refuse(f"no '{name}(…)'; there are: {', '.join(_CALLS)}")
        self._at += 1
        column = self._read_name()
        if self._peek() != ")":
            raise self._refuse(f"'{name}({column}' needs one column and then ')'")
        self._at += 1
        return BiasVariable(column, kind)

    def _read_name(self) -> str:
        name = self._peek()
        if not name or name in "+*:()":
            raise self._refuse(f"a column is missing before '{name}'" if name else "a column is missing at its end")
        self._at += 1
        return name.strip("`")

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _refuse(self, why: str) -> EluteError:
        return EluteError(f"`bias=` is '{self._text}', which is no formula: {why}")


def read_formula(text: str, existing: Sequence[str]) -> BiasFormula | None:
    """The formula that `text` is; None where it is a list of names. A sign that may be part of a name, or of a pattern,
    is so unless blanks or the log's columns say otherwise."""
    if _SIGNS.search(text):
        return BiasFormula.parse(text)
    names = [name.strip() for name in text.split("*")]
    return BiasFormula.parse(text) if len(names) > 1 and all(name in existing for name in names) else None


def tie_factors(factors: pa.Table, formula: BiasFormula | None) -> pa.Table:
    """Factors that say by which formula they are tied."""
    others = {key: value for key, value in (factors.schema.metadata or {}).items() if key != _MARK}
    mark = {} if formula is None else {_MARK: str(formula).encode()}
    return factors.replace_schema_metadata({**others, **mark} or None)


def formula_of(factors: pa.Table) -> BiasFormula | None:
    """By which factors are tied; None where each stands for itself."""
    text = (factors.schema.metadata or {}).get(_MARK)
    return None if text is None else BiasFormula.parse(text.decode())
