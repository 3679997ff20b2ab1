"""Tables of plans."""

from __future__ import annotations

from rich.table import Table

_WORDS = ("merge", "with", "show", "instead of", "at", "")
"""Heads of columns that hold words, not figures."""


def make_table(*columns: str) -> Table:
    """An empty table."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, justify="left" if column in _WORDS else "right")
    return table
