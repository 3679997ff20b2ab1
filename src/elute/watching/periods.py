"""The periods of a folder of parts, opened: cells of each, and any of them as one log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from elute.cells.counts import Counts
from elute.cells.factors import describe, is_position, to_rows
from elute.cells.filters import Filters
from elute.engines.counts_folder.engine import CountsEngine
from elute.engines.counts_folder.layout import PARTS
from elute.engines.parts.choosing import choose_parts, group_parts
from elute.engines.parts.fetching import FetchedCounts
from elute.engines.parts.layout import Index, is_parts
from elute.engines.parts.part import add_up
from elute.engines.parts.reading import MergedCounts, cover
from elute.engines.remote.folder import is_remote_folder
from elute.errors import EluteError
from elute.estimate.models.pbm import PBM
from elute.kernels.keys import KeyTable
from elute.known.sample import sample_counts
from elute.log import ClickLog, open_held
from elute.progress import Progress, silent
from elute.results.invocation import DEFAULTS
from elute.watching.observed import Codes, Floats, Observed

MANY = 64
"""Factors that are looked at one by one."""
OWN = 10
"""Clicks a period from which a factor is looked at by itself."""
REST = "the rest"


class Period(NamedTuple):
    """A value of the key's name that counts time, and the parts that have it."""

    name: str
    parts: tuple[str, ...]


class FactorGroups(NamedTuple):
    """What is tested one by one: `of` every factor its group, and the groups by name."""

    of: Codes
    names: list[str]
    values: list[dict[str, Any]]
    """The bias values that a group is; empty for the rest."""


class Periods:
    """Parts of a folder by time; what is read stays on disk until this is closed, whoever replaces it meanwhile."""

    def __init__(self, folder: str | Path, every: str | None, last: int | None, drop: str | None, most: int) -> None:
        """`every`: the name of the key that counts time, by default its first. `most`: so many of the latest."""
        if not (is_remote_folder(folder) or is_parts(folder)):
            hint = "add days with `elute.count` (`append=True`)"
            raise EluteError(f"'{folder}' is no folder of parts (it has no {PARTS}); {hint}")
        chosen: list[Period] = []

        def choose(index: Index) -> list[str]:
            self.every = index.key[0] if every is None else every
            if self.every not in index.key:
                names = ", ".join(index.key)
                raise EluteError(f"`every=` is '{every}'; the parts of '{folder}' have the key {names}")
            chosen.clear()
            by_time = group_parts(choose_parts(index, last, drop), self.every)
            chosen.extend(Period(name, tuple(part.name for part in own)) for name, own in by_time.items())
            del chosen[:-most]
            if not chosen:
                raise EluteError(f"'{folder}' has no part to look at; add one with `elute.count` (`append=True`)")
            return [name for period in chosen for name in period.parts]

        self.label, self.folder = str(folder), Path(folder)
        self._remove: Callable[[], None] | None = None
        if is_remote_folder(folder):
            fetched = FetchedCounts(folder, choose)
            self.label, self.folder, self._remove = fetched.label, fetched.folder, fetched.remove
        self._held = MergedCounts(self.folder, choose, False, False, self.label)
        self.periods = chosen

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._held.close()
        if self._remove is not None:
            self._remove()

    @property
    def factors(self) -> pa.Table:
        """The bias columns of all periods."""
        return self._held.factors.select(list(self._held.roles.bias))

    @property
    def clicked(self) -> bool:
        """Whether the log has clicks."""
        return self._held.roles.click is not None

    def say(self) -> list[dict[str, Any]]:
        """Of each period what was counted beside its cells: rows, those left out, repeats on a page."""
        abouts = iter([part.about for part in self._held.parts])
        return [add_up(self.label, self._held.roles, [next(abouts) for _ in period.parts]) for period in self.periods]

    def observe(self) -> Observed:
        """The cells of all periods."""
        codes, of_part = KeyTable(), [at for at, period in enumerate(self.periods) for _ in period.parts]
        found: list[list[tuple[np.ndarray, ...]]] = [[] for _ in self.periods]
        for part, run in self._held.read_runs():
            item = np.repeat(codes.insert(run.ids.item)[0], np.diff(run.cells.offsets))
            amounts = (run.cells.impressions.astype(np.int64), run.cells.clicks.astype(np.int64))
            found[of_part[part]].append((item, run.cells.factor, *amounts))
        joined = [[np.concatenate(column) for column in zip(*runs, strict=True)] for runs in found]
        orders = [np.argsort(columns[0], kind="stable") for columns in joined]
        arrays = [
            np.concatenate([columns[at][order] for columns, order in zip(joined, orders, strict=True)])
            for at in range(4)
        ]
        starts = np.cumsum([0, *(len(order) for order in orders)])
        item, factor, impressions, clicks = arrays
        return Observed(starts, item, factor, impressions, clicks, len(codes), self._held.factors.num_rows)

    def open(self, some: Sequence[Period]) -> ClickLog:
        """These periods as one log, to be closed by whoever asked."""
        names = [name for period in some for name in period.parts]
        held = MergedCounts(self.folder, lambda index: cover(names, index), False, False, self.label)
        try:
            return open_held(CountsEngine(held), self.label, DEFAULTS, Filters())
        except BaseException:
            held.close()
            raise


def fit_reference(counts: Counts, progress: Progress = silent) -> Floats:
    """Propensities by factor, of all periods together; 0 where no click tells one."""
    if not counts.clicks.any():
        return np.zeros(counts.n_factors)
    problem = sample_counts(counts, None).problem
    fitted = PBM(relevance_prior="beta", progress=progress).fit_factors(problem)
    return np.asarray(np.nan_to_num(np.maximum(fitted.o, 0.0))[problem.merged])


def choose_groups(factors: pa.Table, amounts: Floats, periods: int) -> FactorGroups:
    """Factors that have enough a period, each by itself, or positions where factors are too many; the others are one.
    `amounts`: clicks by factor, or impressions where there are none."""
    columns = list(factors.column_names)
    position = next((column for column in columns if is_position(factors, column)), None)
    named = factors.select([position]) if len(amounts) > MANY and position is not None else factors
    rows = to_rows(named, range(named.num_rows))
    texts = [describe(row) for row in rows]
    of_text = {text: at for at, text in reversed(list(enumerate(texts)))}
    first = np.array([of_text[text] for text in texts])
    total = np.bincount(first, amounts, len(texts))
    enough = np.flatnonzero(total >= OWN * periods)
    if len(enough) > MANY:
        enough = np.sort(enough[np.argsort(-total[enough], kind="stable")[:MANY]])
    own = np.full(len(texts), -1)
    own[enough] = np.arange(len(enough))
    of = own[first].astype(np.int32)
    names, values = [texts[at] for at in enough], [rows[at] for at in enough]
    if (of < 0).any():
        of[of < 0] = len(names)
        names, values = [*names, REST], [*values, {}]
    return FactorGroups(of, names, values)
