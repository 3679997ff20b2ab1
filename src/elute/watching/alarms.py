"""Alarms: what changed in a period, by how much, and what to do."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any, Literal

from elute.results.watched import ALARMS

FAULTS = frozenset(ALARMS) - {"traffic", "click_rate", "curve", "links"}
"""Codes of what is most likely wrong with the data; the others are changes, of whatever origin."""


@dataclass(frozen=True)
class Alarm:
    """`where`: bias values that it is about, the most surprising first. `observed` and `expected`: in the unit that the
    message names. `p`: the chance of as much where nothing happens; None for what is no matter of chance."""

    period: str
    code: str
    message: str
    where: tuple[dict[str, Any], ...] = ()
    observed: float | None = None
    expected: float | None = None
    p: float | None = None

    @property
    def kind(self) -> Literal["fault", "change"]:
        return "fault" if self.code in FAULTS else "change"

    def to_dict(self, folder: str, every: str) -> dict[str, Any]:
        """The fields of a line for a pager."""
        return {
            "folder": folder,
            "every": every,
            "period": self.period,
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
        """With commands for this folder and this period."""
        said = ALARMS[self.code][2].replace("DIR", shlex.quote(folder))
        return said.replace("day < ...", f"{every} < {self.period}").replace("day = ...", f"{every} = {self.period}")
