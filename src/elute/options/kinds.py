"""Kinds of values. Each knows, in words, what it wants, and takes a value or refuses it with `ValueError`.

A value that is taken comes back as Python's own type, so that what numpy made of it never reaches a JSON file. Text of
the command line is read by the same kind that checks what Python users give.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from os import PathLike, fspath
from typing import Any, Protocol

LARGEST = 2**63 - 1
"""Whole numbers end here in every file and kernel."""


class Kind(Protocol):
    """What an option may be."""

    @property
    def wanted(self) -> str:
        """In words that follow "give"."""
        ...

    def take(self, value: object) -> Any:
        """The value, as Python has it; `ValueError` for what it may not be."""
        ...

    def read(self, text: str) -> Any:
        """The same, of a word of the command line."""
        ...


@dataclass(frozen=True)
class Whole:
    """A whole number."""

    least: int = 0
    most: int = LARGEST

    @property
    def wanted(self) -> str:
        to = "" if self.most == LARGEST else f" to {self.most:,}"
        return f"a whole number from {self.least:,}{to}"

    def take(self, value: object) -> int:
        if isinstance(value, bool):
            raise ValueError
        try:
            number = value if isinstance(value, int) else operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            raise ValueError from None
        if not self.least <= number <= self.most:
            raise ValueError
        return number

    def read(self, text: str) -> int:
        return self.take(int(text))


@dataclass(frozen=True)
class Number:
    """A finite number; an end is left out where it is `open`."""

    least: float = -math.inf
    most: float = math.inf
    open: tuple[bool, bool] = (False, False)

    @property
    def wanted(self) -> str:
        low = "" if self.least == -math.inf else f"{'above' if self.open[0] else 'from'} {self.least:g}"
        to = "below" if self.open[1] else "up to" if self.open[0] else "to"
        high = "" if self.most == math.inf else f"{to} {self.most:g}"
        between = " and " if low and high and any(self.open) else " "
        return f"a number {low}{between}{high}".strip()

    def take(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, Real | int):
            raise ValueError
        try:
            number = float(value)
        except OverflowError:
            raise ValueError from None
        inside = self.least < number < self.most
        at_end = (number == self.least and not self.open[0]) or (number == self.most and not self.open[1])
        if not math.isfinite(number) or not (inside or at_end):
            raise ValueError
        return value if isinstance(value, int) else number

    def read(self, text: str) -> float:
        return float(self.take(float(text)))


POSITIVE = Number(0, open=(True, False))
PROBABILITY = Number(0, 1)
SHARE = Number(0, 1, (True, False))


@dataclass(frozen=True)
class Text:
    """Text; the empty one is no name."""

    what: str = "text"

    @property
    def wanted(self) -> str:
        return self.what

    def take(self, value: object) -> str:
        if not isinstance(value, str) or not value or "\0" in value:
            raise ValueError
        value.encode()  # half of a surrogate pair is no text, and UnicodeError is a ValueError
        return value

    def read(self, text: str) -> str:
        return self.take(text)


@dataclass(frozen=True)
class Texts(Text):
    """One text, or several."""

    what: str = "a name, or several"

    def take(self, value: object) -> Any:
        if isinstance(value, str):
            return super().take(value)
        if not isinstance(value, Sequence) or isinstance(value, bytes):
            raise ValueError
        return type(value)(map(super().take, value)) if isinstance(value, tuple) else [*map(super().take, value)]


@dataclass(frozen=True)
class TextsOrFormula(Texts):
    """Or an object with columns of its own: an `elute.BiasFormula`, which this room does not know."""

    def take(self, value: object) -> Any:
        return value if hasattr(value, "columns") else super().take(value)


@dataclass(frozen=True)
class OneOf(Text):
    """One of some words."""

    words: tuple[str, ...] = ()

    @property
    def wanted(self) -> str:
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}" if len(self.words) > 1 else self.words[0]

    def take(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise ValueError
        return value


@dataclass(frozen=True)
class WordOr:
    """A word, or what another kind takes."""

    word: str
    other: Whole | Number

    @property
    def wanted(self) -> str:
        return f"{self.other.wanted}, or {self.word}"

    def take(self, value: object) -> Any:
        return value if isinstance(value, str) and value == self.word else self.other.take(value)

    def read(self, text: str) -> Any:
        return text if text == self.word else self.other.read(text)


@dataclass(frozen=True)
class Flag:
    """True or false; numpy's too."""

    wanted: str = "True or False"

    def take(self, value: object) -> bool:
        if not isinstance(value, bool) and type(value).__name__ != "bool":
            raise ValueError
        return bool(value)

    def read(self, text: str) -> bool:
        return self.take({"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else text)


@dataclass(frozen=True)
class PathName:
    """The name of a file or folder."""

    wanted: str = "a path"

    def take(self, value: object) -> Any:
        if not isinstance(value, str | PathLike):
            raise ValueError
        Text().take(fspath(value))
        return value

    def read(self, text: str) -> str:
        return Text().take(text)


@dataclass(frozen=True)
class Numbers:
    """Several numbers, each of a kind; from the command line, joined by commas."""

    each: Number = Number()

    @property
    def wanted(self) -> str:
        return f"several numbers, each {self.each.wanted}"

    def take(self, value: object) -> list[float]:
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            raise ValueError
        found = [self.each.take(one) for one in value]
        if not found:
            raise ValueError
        return found

    def read(self, text: str) -> list[float]:
        return [self.each.read(part) for part in text.split(",")]


@dataclass(frozen=True)
class OneOrMore:
    """A number, or several of its kind; from the command line, joined by commas."""

    each: Whole | Number

    @property
    def wanted(self) -> str:
        return f"{self.each.wanted}, or several"

    def take(self, value: object) -> Any:
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            return self.each.take(value)
        found = [self.each.take(one) for one in value]
        if not found:
            raise ValueError
        return found

    def read(self, text: str) -> Any:
        found = [self.each.read(part) for part in text.split(",")]
        return found if len(found) > 1 else found[0]


@dataclass(frozen=True)
class NamedNumbers:
    """Numbers by name; from the command line, NAME=NUMBER joined by commas."""

    each: Number = Number()

    @property
    def wanted(self) -> str:
        return f"names, and for each {self.each.wanted}"

    def take(self, value: object) -> dict[str, float]:
        if not isinstance(value, Mapping):
            raise ValueError
        return {Text().take(name): self.each.take(number) for name, number in value.items()}

    def read(self, text: str) -> dict[str, float]:
        pairs = [part.partition("=") for part in text.split(",")]
        found = {Text().take(name.strip()): self.each.read(number) for name, _, number in pairs}
        if len(found) < len(pairs):
            raise ValueError
        return found
