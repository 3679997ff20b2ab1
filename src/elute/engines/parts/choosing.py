"""Which parts of a folder: by key, by a condition on it, the last so many."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from elute.engines.parts.layout import Index, Key, PartEntry
from elute.errors import EluteError

_PAIR = re.compile(r"\s*([^\s=<>!,]+)\s*=\s*([^\s,](?:[^,]*[^\s,])?)\s*")
_CONDITION = re.compile(r"\s*([^\s=<>!,]+)\s*(<=|>=|!=|<|>|=)\s*(.*\S)\s*")
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


def parse_key(text: str) -> Key:
    """`day=2026-11-14`, or several such with commas between them."""
    pairs = [_PAIR.fullmatch(word) for word in text.split(",")]
    key = {pair[1]: pair[2] for pair in pairs if pair is not None}
    if len(key) < len(pairs):
        raise EluteError(f"`key=` is '{text}'; give a name and a value, as in 'day=2026-11-14', or several with commas")
    return key


def order_parts(parts: Iterable[PartEntry], names: Sequence[str]) -> tuple[PartEntry, ...]:
    """By the values of their keys."""
    listed = list(parts)
    order = {name: _order_values({part.key[name] for part in listed}) for name in names}
    return tuple(sorted(listed, key=lambda part: [order[name](part.key[name]) for name in names]))


def find_matching(index: Index, condition: str) -> list[PartEntry]:
    """Parts whose key meets a condition, or several joined by `and`."""
    found = list(index.parts)
    for one in re.split(r"\s+and\s+", condition.strip(), flags=re.IGNORECASE):
        matched = _CONDITION.fullmatch(one)
        if matched is None or matched[1] not in index.key:
            names = ", ".join(index.key)
            raise EluteError(
                f"`drop=` is '{condition}'; compare a name of the keys ({names}) with a value, as in "
                f"'{index.key[0]} < 2026-10-17'"
            )
        name, sign, value = matched.groups()
        value = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
        to_order = _order_values({value, *(part.key[name] for part in index.parts)})
        found = [part for part in found if _COMPARED[sign](to_order(part.key[name]), to_order(value))]
    return found


def choose_parts(index: Index, last: int | None, drop: str | None) -> tuple[PartEntry, ...]:
    """Without those that meet the condition `drop`; of the rest those with the `last` so many values of the key's
    first name."""
    left_out = set() if drop is None else {part.name for part in find_matching(index, drop)}
    kept = [part for part in index.parts if part.name not in left_out]
    if last is not None:
        first = index.key[0]
        values = {part.key[first] for part in kept}
        latest = set(sorted(values, key=_order_values(values))[-last:])
        kept = [part for part in kept if part.key[first] in latest]
    return tuple(kept)


def group_parts(parts: Iterable[PartEntry], name: str) -> dict[str, list[PartEntry]]:
    """By the values of one name of the key, in their order."""
    found: dict[str, list[PartEntry]] = {}
    for part in parts:
        found.setdefault(part.key[name], []).append(part)
    return {value: found[value] for value in sorted(found, key=_order_values(found))}


def spell_key(key: Key) -> str:
    """As it is given."""
    return ",".join(f"{name}={value}" for name, value in key.items())


def _order_values(values: Iterable[str]) -> Callable[[str], Any]:
    """What values are ordered by: as numbers where all of them are, else as text, as dates are written."""
    try:
        numbers = {value: float(value) for value in values}
    except ValueError:
        return str
    return numbers.__getitem__ if all(number == number for number in numbers.values()) else str
