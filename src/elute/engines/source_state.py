"""What a log's source was when it was opened, so that counts of it can be refused once it has changed.

| source | what is kept |
|---|---|
| a file, a DuckDB file | `file`, its bytes and time of change |
| Parquet behind https | `url`, bytes, and the server's ETag and Last-Modified |
| Parquet in S3 | `url`, the server it is asked of, bytes and time of change |
| a table in Postgres | `table` and what `elute.engines.fingerprint.postgres` asks |

An address stands here as it may be shown. So it is asked again with credentials that the user has elsewhere, and only
with those that are meant for that very host: the folder that names it may come from somebody else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elute.door.fields import Damaged, mapping, scalar

State = dict[str, Any]

SECONDS = 5
"""After which a source is out of reach."""


def source_state(value: Any, at: str) -> None:
    """What a counts folder may hold of a state, as a kind of `elute.door.fields`: the name of a source, and plain
    values."""
    mapping(scalar)(value, at)
    named = [name for name in ("file", "table", "url") if isinstance(value.get(name), str)]
    if len(named) != 1 or "\0" in value[named[0]]:
        raise Damaged(f"'{at}' names no file, table or url")


def file_state(file: str | Path) -> State:
    """The state of a file on this machine."""
    now = Path(file).stat()
    return {"file": str(Path(file).resolve()), "bytes": now.st_size, "changed_ns": now.st_mtime_ns}
