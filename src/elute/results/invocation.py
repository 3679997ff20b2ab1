"""How a log was named, so that a page can print the next command in full."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from elute._util.text import format_number
from elute._util.urls import hide_secrets
from elute.cells.roles import DEFAULT_BIAS, DEFAULT_CLICK, DEFAULT_DOC, DEFAULT_QUERY

DEFAULTS: dict[str, Any] = {
    "query": DEFAULT_QUERY,
    "doc": DEFAULT_DOC,
    "item": None,
    "bias": DEFAULT_BIAS,
    "click": DEFAULT_CLICK,
    "impressions": None,
    "session": None,
    "where": None,
    "max_position": None,
    "min_factor_impressions": None,
    "last": None,
    "drop": None,
    "engine": "duckdb",
    "exact": False,
    "memory": None,
    "spill": None,
    "threads": None,
}
"""What `elute.read_log` and the command line take where nothing is said."""

FILTERS = ("where", "max_position", "min_factor_impressions")
"""Those of them that say which rows are read."""


@dataclass(frozen=True)
class Invocation:
    """A log's sources and options, as the command line spells them."""

    sources: tuple[str, ...]
    options: dict[str, Any]

    @classmethod
    def from_call(cls, source: object, options: Mapping[str, Any]) -> Self:
        """As `elute.read_log` was called; a source that is no file goes by the name LOG."""
        given = source if isinstance(source, list | tuple) else [source]
        named = all(isinstance(part, str | Path) for part in given)
        return cls(tuple(map(str, given)) if named else ("LOG",), dict(options))

    def with_option(self, option: str, value: object) -> Invocation:
        """The same log with one option changed."""
        return Invocation(self.sources, {**self.options, option: value})

    def with_filters(self, filters: Mapping[str, Any] | None) -> Invocation:
        """The same log, of which other rows were read."""
        return Invocation(self.sources, {**self.options, **dict.fromkeys(FILTERS), **(filters or {})})

    def command(self, verb: str, *extra: str) -> str:
        """A command on the same log with the same columns; passwords in URLs are left out."""
        words = ["elute", verb, *self.sources]
        for option, value in self.options.items():
            flag = "--" + option.replace("_", "-")
            if value is True:
                words.append(flag)
            elif value != DEFAULTS[option]:
                words += [flag, str(value)]
        return shlex.join(map(hide_secrets, [*words, *extra]))


def spell_options(options: Mapping[str, Any]) -> list[str]:
    """Options of a verb as words of a command."""
    words: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        words += [flag] if value is True else [flag, format_number(value) if isinstance(value, float) else str(value)]
    return words
