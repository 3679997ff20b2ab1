"""What the engine asks of counts that are kept: in one folder, or in parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Cells, Membership
from elute.cells.filters import Filters
from elute.cells.roles import Roles


class HeldCounts(Protocol):
    """`about`: what is said of the log that was counted, as in `counts.json`. `group`: some of the items; None for
    all."""

    about: dict[str, Any]
    roles: Roles
    filters: Filters

    @property
    def exact(self) -> bool:
        """Whether items were told apart by value."""

    @property
    def collision_bound(self) -> float: ...

    @property
    def queries(self) -> int: ...

    @property
    def groups(self) -> int:
        """How many there are."""

    @property
    def factors(self) -> pa.Table:
        """The bias columns, and what was counted under each factor."""

    def close(self) -> None:
        """Let go of what is read."""

    def cells(self) -> Cells:
        """All of them; every number is such as kernels may trust."""

    def cells_by_group(self) -> Iterator[Cells]: ...

    def items(self, columns: list[str], group: int | None = None) -> pa.Table:
        """The columns that name items."""

    def item_rows(self, group: int) -> pa.Table:
        """The columns that name items, and those that say what is counted of them."""

    def query_of_item(self, group: int | None = None) -> NDArray[np.int32]:
        """By item, where an item belongs to one query by its name."""

    def members(self, first: int, shown: NDArray[np.int64], group: int | None = None) -> Membership:
        """Which items were shown for which query. `shown`: how often in all, by item; there are `first` items before
        them."""

    def find_busiest_query(self) -> object:
        """By name; asked for where it has most of the impressions."""
