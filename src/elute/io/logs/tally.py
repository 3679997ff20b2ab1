"""What a conversion counts on its way, and the lines it could not read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError

SHOWN = 5
"""Problems kept."""

_WIDTH = 60


class MalformedLine(NamedTuple):
    """A line that could not be read; in a Parquet file, a row. Both count from 1."""

    file: str
    line: int
    reason: str


class Rejects:
    """Which lines of a part cannot be read, each with the first reason found."""

    def __init__(self, n_lines: int) -> None:
        self.why: NDArray[np.int8] = np.zeros(n_lines, np.int8)
        self.reasons: list[str] = [""]

    def add(self, bad: NDArray[np.bool_], reason: str) -> None:
        """Reject lines that are not rejected yet."""
        self.reasons.append(reason)
        self.why[bad & (self.why == 0)] = len(self.reasons) - 1

    @property
    def good(self) -> NDArray[np.bool_]:
        """The lines that stay."""
        return np.asarray(self.why == 0)


@dataclass
class Tally:
    """Filled by a reader while its log is read.

    `skip`: whether malformed lines are left out and counted; otherwise the first part that has one ends the reading.
    `unit`: what problems are counted in; "row" where the source is Parquet.
    `orphans`: clicks on a result that was not shown. `repeated_clicks`: clicks after the first on one result shown.
    `position_base`: what the source counts positions from, where it gives any.
    `figures`: what one format alone has. `actions`: UBI's events by name.
    """

    skip: bool = False
    unit: str = "line"
    sessions: int = 0
    orphans: int = 0
    repeated_clicks: int = 0
    position_base: int | None = None
    malformed: int = 0
    problems: list[MalformedLine] = field(default_factory=list)
    figures: dict[str, int] = field(default_factory=dict)
    actions: dict[str, int] = field(default_factory=dict)

    def reject(self, path: Path, rejects: Rejects, before: int, lines: Sequence[bytes] | None = None) -> None:
        """Count rejected lines and keep the first few, with the text of those where `lines` gives it."""
        bad = np.flatnonzero(rejects.why)
        for place in bad[: SHOWN - len(self.problems)].tolist():
            said = f": '{_excerpt(lines[place])}'" if lines is not None else ""
            self.problems.append(
                MalformedLine(str(path), before + place + 1, rejects.reasons[rejects.why[place]] + said)
            )
        self._count(path, len(bad))

    def reject_at(self, path: Path, first: Iterable[tuple[int, str]], bad: int) -> None:
        """The same for `bad` lines, of which the first few are given as numbers that count from 1."""
        for line, reason in islice(first, SHOWN - len(self.problems)):
            self.problems.append(MalformedLine(str(path), line, reason))
        self._count(path, bad)

    def _count(self, path: Path, bad: int) -> None:
        self.malformed += bad
        if bad and not self.skip:
            shown = "; ".join(f"{self.unit} {problem.line}: {problem.reason}" for problem in self.problems)
            more = f"; and {bad - SHOWN:,} more soon after" if bad > SHOWN else ""
            raise EluteError(
                f"{path}: {shown}{more}. Correct or remove what is malformed, or skip it with `skip_malformed=True`"
            )


def _excerpt(line: bytes) -> str:
    text = line[: 4 * _WIDTH].decode(errors="replace")
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
