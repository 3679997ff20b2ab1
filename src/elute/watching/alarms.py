"""Alarms: what changed in a period, by how much, and what to do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from elute.results.watched import ALARMS

FAULTS = frozenset(ALARMS) - {"traffic", "click_rate", "curve", "links"}
"""Codes of what is most likely wrong with the data; the others are changes, of whatever origin."""


@dataclass(frozen=True)
class Alarm:
    """`where`: bias values that it is about, the most surprising first. `observed` and `expected`: in the unit that the
    message names. `p`: the chance of as much where nothing happens; None for what is no matter of chance. `since`: the
    first period of a row of such alarms; empty for one that stands alone."""

    period: str
    code: str
    message: str
    where: tuple[dict[str, Any], ...] = ()
    observed: float | None = None
    expected: float | None = None
    p: float | None = None
    since: str = ""

    @property
    def begun(self) -> str:
        """The period with which it began, as far as alarms tell."""
        return self.since or self.period

    @property
    def kind(self) -> Literal["fault", "change"]:
        return "fault" if self.code in FAULTS else "change"

    def to_dict(self, folder: str, every: str) -> dict[str, Any]:
        """The fields of a line for a pager."""
        return {
            "folder": folder,
            "every": every,
            "period": self.period,
            "since": self.begun,
            "code": self.code,
            "kind": self.kind,
            "message": self.message,
            "where": list(self.where),
            "observed": self.observed,
            "expected": self.expected,
            "p": self.p,
            "do": self._say_what_to_do(folder, every),
        }

    def _say_what_to_do(self, folder: str, every: str) -> str:
        """With commands for this folder, and for the period with which it began."""
        said = ALARMS[self.code][2].replace("DIR", shlex.quote(folder))
        return re.sub(r"day (<|>=) \.\.\.", lambda found: f"{every} {found[1]} {self.begun}", said)


def join_rows(alarms: Sequence[list[Alarm]], gap: int) -> None:
    """Of alarms by period, tell those that follow one of their kind within `gap` periods with which it began."""
    last: dict[str, tuple[int, str]] = {}
    for at, raised in enumerate(alarms):
        for place, alarm in enumerate(raised):
            before = last.get(alarm.code)
            if before is not None and at - before[0] <= gap:
                raised[place] = replace(alarm, since=before[1], message=f"{alarm.message}, as since {before[1]}")
            last[alarm.code] = at, raised[place].begun
