"""How long work tells where it stands."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (0: not known)."""


def silent(stage: str, done: int, total: int) -> None:
    """Say nothing."""
