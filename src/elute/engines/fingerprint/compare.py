"""Whether a source has changed since it was opened: its state now, beside the one that was kept."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from elute.engines.source_state import State, file_state

_AT_ONCE = 16


def find_changed_source(then: Sequence[State]) -> str | None:
    """The name of a source that is not what it was; sources out of reach count as unchanged.

    Where many are asked for and none of them answers, the rest is not waited for.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for first in range(0, len(then), _AT_ONCE):
            asked = then[first : first + _AT_ONCE]
            found = list(pool.map(_current_state, asked))
            for before, after in zip(asked, found, strict=True):
                if after is not None and after != before:
                    return _source_name(before)
            if not any(found) and "file" not in asked[0]:
                break
    return None


def _current_state(then: State) -> State | None:
    """The state of the same source at present; nothing where it is out of reach."""
    if "file" in then:
        return file_state(then["file"]) if Path(then["file"]).exists() else None
    if "table" in then:
        from elute.engines.fingerprint import postgres

        return postgres.current_table_state(then["table"])
    from elute.engines.remote import objects

    return objects.current_state(then)


def _source_name(state: State) -> str:
    return str(state.get("file") or state.get("table") or state["url"])
