"""JSON files that elute wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from elute.door.fields import Damaged, Kind
from elute.errors import EluteError

_MOST = 2**30
"""Bytes of a file; more is not read."""


def read_json(path: str | Path, kind: Kind, what: str, then: str) -> Any:
    """What a file holds, which must be of this kind. `what`: what such a file is, `then`: what to do where it is not.
    Of no file, FileNotFoundError comes through."""
    try:
        return parse_json(Path(path), kind)
    except (Damaged, IsADirectoryError) as problem:
        reason = "it is a folder" if isinstance(problem, OSError) else problem
        raise EluteError(f"{path} is not {what} ({reason}); {then}") from None


def parse_json(path: Path, kind: Kind) -> Any:
    """What a file holds; `Damaged` where it is not of this kind."""
    with path.open("rb") as file:
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise Damaged(f"it has more than {_MOST:,} bytes")
    try:
        value = json.loads(data.decode("utf-8"))
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode("utf-8")  # halves of characters, which nothing can print
        kind(value, "")
    except Damaged:
        raise
    except UnicodeError:
        raise Damaged("it is not text in UTF-8") from None
    except RecursionError:
        raise Damaged("it is nested too deeply") from None
    except ValueError as error:
        raise Damaged(f"it is not JSON: {error}") from None
    return value
