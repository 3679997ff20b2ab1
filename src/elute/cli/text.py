"""Text on its way to a terminal: made safe and short, and written in what the terminal can show."""

from __future__ import annotations

import codecs
import json
import sys
from io import TextIOWrapper

import click

from elute._util.text import format_count, format_share, list_rows, to_one_line

__all__ = ["format_count", "format_share", "list_rows", "make_streams_plain", "print_json", "to_one_line"]

_PLAIN = {"…": "...", "–": "-", "→": "->", "×": "x", "±": "+-", "≤": "<=", "≥": ">=", "·": ".", "✓": "yes", "✗": "no"}
"""Signs of elute's own, for terminals without them."""


def make_streams_plain() -> None:
    """What a terminal cannot show is written with signs that it can: no text of a log is an error."""
    codecs.register_error("elute", _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="elute")


def print_json(text: str) -> None:
    """JSON that reads back as it was, whatever the encoding of stdout."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeError:
        text = json.dumps(json.loads(text))
    click.echo(text)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in signs), error.end
