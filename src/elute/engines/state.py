"""What a log's source was when it was opened, so that counts of it can be refused once it has changed.

| source | what is kept |
|---|---|
| a file, a DuckDB file | `file`, its bytes and time of change |
| Parquet behind https | `url`, bytes, and the server's ETag and Last-Modified |
| Parquet in S3 | `url`, the server it is asked of, bytes and time of change |
| a table in Postgres | `table` and what `elute.engines.postgres_state` asks |

An address stands here as it may be shown. So it is asked again with credentials that the user has elsewhere, and only
with those that are meant for that very host: the folder that names it may come from somebody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

State = dict[str, Any]

SECONDS = 5
"""After which a source is out of reach."""

_AT_ONCE = 16


def of_file(file: str | Path) -> State:
    """The state of a file on this machine."""
    now = Path(file).stat()
    return {"file": str(Path(file).resolve()), "bytes": now.st_size, "changed_ns": now.st_mtime_ns}


def changed(then: Sequence[State]) -> str | None:
    """The name of a source that is not what it was; sources out of reach count as unchanged.

    Where many are asked for and none of them answers, the rest is not waited for.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for first in range(0, len(then), _AT_ONCE):
            asked = then[first : first + _AT_ONCE]
            found = list(pool.map(_now, asked))
            for before, after in zip(asked, found, strict=True):
                if after is not None and after != before:
                    return _name(before)
            if not any(found) and "file" not in asked[0]:
                break
    return None


def _now(then: State) -> State | None:
    """The state of the same source at present; nothing where it is out of reach."""
    if "file" in then:
        return of_file(then["file"]) if Path(then["file"]).exists() else None
    if "table" in then:
        from elute.engines import postgres_state

        return postgres_state.again(then["table"])
    from elute.engines import remote

    return remote.state(then)


def _name(state: State) -> str:
    return str(state.get("file") or state.get("table") or state["url"])
