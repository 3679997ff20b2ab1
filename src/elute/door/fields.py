"""What a JSON file may hold: kinds of values, put together as the file is.

A kind is a function that takes a value and where it stands, and raises `Damaged` with a few words where the value is
not of that kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Kind = Callable[[Any, str], None]

LARGEST = 2**63 - 1
"""What an integer of 64 bits holds."""

_SHOWN = 60
"""Characters of a value in a message."""


class Damaged(ValueError):
    """What a file holds is not what elute writes."""


def text(value: Any, at: str) -> None:
    """Any text."""
    if not isinstance(value, str):
        raise _refuse(value, at, "text")


def flag(value: Any, at: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise _refuse(value, at, "true or false")


def scalar(value: Any, at: str) -> None:
    """An id as JSON holds it: text, a number, true, false or null. Whole numbers may be of 64 bits without a sign."""
    if isinstance(value, int) and not isinstance(value, bool):
        _check_range(value, at, -LARGEST - 1, 2**64 - 1)
    elif not (value is None or isinstance(value, str | bool)):
        number()(value, at)


def plain(value: Any, at: str) -> None:
    """Scalars, and lists and objects of them: what a page or another file can hold."""
    if isinstance(value, list):
        each(plain)(value, at)
    elif isinstance(value, dict):
        mapping(plain)(value, at)
    else:
        scalar(value, at)


def anything(value: Any, at: str) -> None:
    """What is only kept, never used."""


def whole(least: int = 0, most: int = LARGEST) -> Kind:
    """A whole number."""

    def check(value: Any, at: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _refuse(value, at, "a whole number")
        _check_range(value, at, least, most)

    return check


def number(least: float = -math.inf, most: float = math.inf) -> Kind:
    """A number that is neither infinite nor NaN."""

    def check(value: Any, at: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refuse(value, at, "a number")
        if (isinstance(value, int) and abs(value) > LARGEST) or not math.isfinite(value):
            raise _refuse(value, at, "a number in range")
        _check_range(value, at, least, most)

    return check


def choice(*values: str) -> Kind:
    """One of these words."""

    def check(value: Any, at: str) -> None:
        if not isinstance(value, str) or value not in values:
            raise _refuse(value, at, f"one of {', '.join(values)}")

    return check


def maybe(kind: Kind) -> Kind:
    """A value of this kind, or null."""

    def check(value: Any, at: str) -> None:
        if value is not None:
            kind(value, at)

    return check


def each(kind: Kind, least: int = 0, unique: bool = False) -> Kind:
    """A list of values of this kind, so many of them at least."""

    def check(value: Any, at: str) -> None:
        if not isinstance(value, list):
            raise _refuse(value, at, "a list")
        if len(value) < least:
            raise Damaged(f"'{at}' has {len(value)} entries, not {least} or more")
        for place, entry in enumerate(value):
            kind(entry, f"{at}[{place}]")
        if unique and len(set(value)) < len(value):
            raise Damaged(f"'{at}' names something twice")

    return check


def mapping(kind: Kind, least: int = 0) -> Kind:
    """Values of this kind, under whichever names."""

    def check(value: Any, at: str) -> None:
        if not isinstance(value, dict):
            raise _refuse(value, at, "an object")
        if len(value) < least:
            raise Damaged(f"'{at}' has {len(value)} entries, not {least} or more")
        for name, entry in value.items():
            kind(entry, _join(at, name))

    return check


def record(needed: Mapping[str, Kind], optional: Mapping[str, Kind] | None = None, closed: bool = False) -> Kind:
    """An object with these fields; with others too, unless it is `closed`."""
    known = {**needed, **(optional or {})}

    def check(value: Any, at: str) -> None:
        if not isinstance(value, dict):
            raise _refuse(value, at, "an object")
        for name in needed:
            if name not in value:
                raise Damaged(f"'{_join(at, name)}' is missing")
        for name, entry in value.items():
            if name in known:
                known[name](entry, _join(at, name))
            elif closed:
                raise Damaged(f"'{_join(at, _show(name))}' does not belong there")

    return check


def both(*kinds: Kind) -> Kind:
    """A value that is of all these kinds."""

    def check(value: Any, at: str) -> None:
        for kind in kinds:
            kind(value, at)

    return check


def _check_range(value: float, at: str, least: float, most: float) -> None:
    if not least <= value <= most:
        bound = f"{least} or more" if value < least else f"{most} or less"
        raise Damaged(f"'{at}' is {_show(value)}, not {bound}")


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _refuse(value: object, at: str, wanted: str) -> Damaged:
    return Damaged(f"'{at or 'it'}' is {_show(value)}, not {wanted}")


def _show(value: object) -> str:
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and abs(value) > LARGEST:
        return "a number beyond 64 bits"
    shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return repr(shown) if len(shown) <= _SHOWN and isinstance(value, str) else shown[:_SHOWN]
