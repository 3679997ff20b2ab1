"""Engines: where the log lives and where its rows are touched. One small protocol, one module each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.chunks import Chunk
from elute.cells.counts import Counts
from elute.cells.filters import Filters
from elute.cells.partitions import Partitions
from elute.cells.rankable import Rankable
from elute.cells.roles import Roles
from elute.cells.structure import Structure
from elute.cells.survey import Survey
from elute.engines.source_state import State
from elute.progress import Progress


class Engine(Protocol):
    """What elute asks of the system that holds a log."""

    label: str
    """How messages name the log."""

    @property
    def exact(self) -> bool:
        """Whether items are told apart by value, not by a hash."""

    @property
    def columns(self) -> list[str]:
        """The names of the log's columns."""

    @property
    def state(self) -> list[State]:
        """What the log's files or table were when it was opened; none where that cannot be told."""

    def find_problems(self, roles: Roles) -> list[str]:
        """One sentence for everything that makes the values unusable."""

    def survey(self, roles: Roles) -> Survey:
        """Size and factors."""

    def connect(self, roles: Roles, survey: Survey, progress: Progress) -> NDArray[np.int32]:
        """For every factor the smallest factor of its component: connectivity and nothing else."""

    def count(self, roles: Roles, survey: Survey, progress: Progress, names: bool = False) -> Counts:
        """Impressions and clicks of every cell. `names`: those of items will be asked for; an engine that would read
        the log again for them may take them along."""

    def count_repeats_on_page(self, roles: Roles) -> int:
        """Rows that show an item again on the same result page."""

    def find_busiest_query(self, roles: Roles) -> object:
        """The query with the most impressions."""

    def find_examples(self, roles: Roles, survey: Survey, factors: list[int], each: int) -> dict[int, pa.Table]:
        """The first few items, in rising order, shown under each of these factors."""

    def compute_means(self, columns: tuple[str, ...], value: str) -> pa.Table:
        """`columns` and, as `value`, the mean of that column over the rows that agree in them."""

    def close(self) -> None:
        """Release what the engine holds."""


class Filterable(Engine, Protocol):
    """An engine that has rows, of which it can read some."""

    def filter(self, filters: Filters, roles: Roles) -> None:
        """From now on only the rows that pass; to be asked for before anything else."""


class Precounted(Filterable, Protocol):
    """An engine of what was counted before, with columns and filters that stay."""

    roles: Roles
    filters: Filters


@runtime_checkable
class Distributed(Engine, Protocol):
    """An engine that answers a check where the cells are, without handing them over."""

    def structure(self, roles: Roles, survey: Survey, progress: Progress) -> Structure:
        """Components and sizes."""

    def count_rankable(
        self, roles: Roles, survey: Survey, component: NDArray[np.int32], components: int, progress: Progress
    ) -> Rankable:
        """Rankable queries where `component` is that of every factor."""

    def partitions(self, roles: Roles, survey: Survey, progress: Progress) -> Partitions | None:
        """The cells in partitions; None where they are few enough to be handed over."""


@runtime_checkable
class Chunked(Engine, Protocol):
    """An engine that hands its counts over in chunks that fit into memory."""

    def stream_chunks(self, roles: Roles, survey: Survey, progress: Progress) -> Iterator[Chunk]:
        """All cells, with the columns of their items."""
