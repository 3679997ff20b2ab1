"""Whether a source has changed since it was opened: its state now, beside the one that was kept.

The folder that names the sources may be somebody else's, and so may the servers behind it: whatever these do, an answer
is waited for only so long.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

from elute.engines.source_state import SECONDS, State, file_state

_AT_ONCE = 16
_IN_ALL = 30
"""Seconds, after which all sources that were not asked yet are out of reach."""


def find_changed_source(then: Sequence[State]) -> str | None:
    """The name of a source that is not what it was; sources out of reach count as unchanged.

    Where many are asked for and none of them answers, the rest is not waited for.
    """
    end = time.monotonic() + _IN_ALL
    for first in range(0, len(then), _AT_ONCE):
        asked = then[first : first + _AT_ONCE]
        found = _ask(asked, min(end, time.monotonic() + 2 * SECONDS))
        for before, after in zip(asked, found, strict=True):
            if after is not None and after != before:
                return _source_name(before)
        if (not any(found) and "file" not in asked[0]) or time.monotonic() > end:
            break
    return None


def _ask(states: Sequence[State], end: float) -> list[State | None]:
    """Their states now, as far as they are known by the end. Whoever is still waiting then does so in a thread that
    keeps nothing from going on."""
    found: list[State | None] = [None] * len(states)
    if any("url" in state for state in states):
        import elute.engines.remote.objects  # noqa: F401  (that takes its time, which is not the server's)

    def ask(place: int) -> None:
        with suppress(Exception):  # whatever a stranger's server makes a library raise
            found[place] = _current_state(states[place])

    threads = [Thread(target=ask, args=(place,), daemon=True) for place in range(len(states))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))
    return list(found)


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
