"""HTML that cannot be broken by the text in it: whatever is not made here is escaped."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from elute._util.text import to_one_line

_VOID = ("meta", "link", "br", "hr", "img", "input")

_LONGEST = 2000
"""Characters of one piece of text; ids from a log may be of any length."""

_JSON_SAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class Safe(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape_text(value: object) -> Safe:
    """A value as HTML: control characters shown as escapes, the rest quoted."""
    return value if isinstance(value, Safe) else Safe(escape(to_one_line(value, _LONGEST), quote=True))


def tag(name: str, /, *children: object, **attributes: object) -> Safe:
    """An element. Attributes that Python cannot spell end in `_` or have `_` for `-`; None leaves one out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Safe(f"<{name}{given}>")
    return Safe(f"<{name}{given}>{join(*children)}</{name}>")


def join(*children: object) -> Safe:
    """Elements and texts one after the other."""
    return Safe("".join(escape_text(child) for child in children))


def script_json(data: Any) -> Safe:
    """JSON that cannot end the script block it stands in: `<` and its like only ever appear as escapes."""
    return Safe(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_JSON_SAFE))
