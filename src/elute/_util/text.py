"""Text from logs, made safe and short for people to read, and numbers as they read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def to_one_line(value: object, width: int = 40) -> str:
    """A value on one line: control characters escaped, long text cut."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
    return text if len(text) <= width else text[: width - 1] + "…"


def list_rows(rows: Iterable[Mapping[str, object]], most: int) -> str:
    """Some rows in few words: `1, 2, 3 …` for one column, `a·1, b·2 …` for several."""
    rows = list(rows)
    words = ["·".join(to_one_line(value, 24) for value in row.values()) for row in rows[:most]]
    return ", ".join(words) + (" …" if len(rows) > most else "")


def format_count(n: int | None) -> str:
    """A number with separators, or a dash where there is none."""
    return "–" if n is None else f"{n:,}"


def format_number(value: float) -> str:
    """The shortest decimals that read back as the same number; whole ones without a point."""
    return str(value).removesuffix(".0")


def format_share(value: float | None) -> str:
    """A share in percent, never rounded up to all or down to nothing."""
    if value is None:
        return "–"
    if 0.9995 <= value < 1:
        return ">99.9%"
    if 0 < value < 0.0005:
        return "<0.1%"
    return f"{value:.1%}"
