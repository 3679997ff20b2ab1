"""What every verb returns: a sentence, the fields of the command line's JSON, a card, and a file that holds them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from elute._util.files import write_text
from elute.door.fields import mapping, plain
from elute.door.json_file import read_json
from elute.errors import EluteError
from elute.results.card import Card

Fields = Mapping[str, Any]
"""A JSON object: values by the names of its fields."""


class Result(ABC):
    """A result that shows itself.

    A class says in `describe` what is shown of its fields; a result that was saved and read again shows the same,
    without the log behind it.
    """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line, field for field."""

    @classmethod
    @abstractmethod
    def describe(cls, fields: Fields) -> Card:
        """What to show of these fields."""

    def card(self) -> Card:
        """What a notebook shows."""
        return self.describe(self.to_dict())

    @property
    def sentence(self) -> str:
        """The result in words."""
        return self.card().sentence

    def to_json(self) -> str:
        """`to_dict` as one line of text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the JSON, whole or not at all."""
        write_text(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """What `save` wrote, as a result that shows itself; it has no log behind it."""
        return Saved(cls, read_fields(path, cls.__name__, cls.describe))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.sentence}>"

    def _repr_html_(self) -> str:
        return self.card().html()


class Recorded(Result):
    """A result that is its fields, which are attributes too."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def to_dict(self) -> dict[str, Any]:
        return dict(self._fields)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote."""
        return cls(read_fields(path, cls.__name__, cls.describe))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._fields:
            raise AttributeError(f"this {type(self).__name__} has no '{name}'; it has: {', '.join(self._fields)}")
        return self._fields[name]


class Saved(Recorded):
    """A result read from its file, without the log behind it."""

    def __init__(self, kind: type[Result], fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self._kind = kind

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        raise TypeError("a saved result is described by the class it was saved from")

    def card(self) -> Card:
        return self._kind.describe(self._fields)

    def __repr__(self) -> str:
        return f"<saved {self._kind.__name__}: {self.sentence}>"


def read_fields(path: str | Path, kind: str, describe: Callable[[Fields], Card]) -> dict[str, Any]:
    """The fields of a file; they must be such as can be described."""
    fields: dict[str, Any] = read_json(path, mapping(plain), f"a saved {kind}", "save it again")
    try:
        describe(fields)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
        raise EluteError(f"{path} is not a saved {kind} ({problem!r}); save it again") from None
    return fields
