"""A part of a folder: counts whose items carry hashes, in the order of their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from elute.cells.counts import Cells
from elute.cells.roles import Roles
from elute.door.fields import Damaged
from elute.door.tables import require_type
from elute.engines.counts_folder.cells import Sums
from elute.engines.counts_folder.layout import CELLS, FORMAT, ITEM, PLACE, QUERY_KEY
from elute.engines.counts_folder.reading import CountsFiles
from elute.engines.parts.hashing import HashedItems
from elute.errors import EluteError


class PartFiles(CountsFiles):
    """One part, or a block of several. A run is one of the groups that it was written in."""

    @classmethod
    def open(cls, folder: Path, roles: Roles) -> Self:
        """`roles`: by which the folder's parts are counted."""
        try:
            found = cls(folder)
        except FileNotFoundError:
            raise EluteError(f"{folder} is missing; count its part again, into a new folder") from None
        if found.roles != roles or "elute_rows" not in found.factors.column_names:
            raise EluteError(f"{folder} is no part of the counts around it; count the log again")
        return found

    def ids(self, group: int) -> HashedItems:
        """Of the items of a run."""
        return self._take_ids(self._read("items", self._hashes, {}, group))

    def read_run(self, group: int) -> tuple[HashedItems, Cells, Sums]:
        """The items of a run, their cells, and what these add up to."""
        items = self._read("items", [*self._hashes, CELLS], {}, group)
        return self._take_ids(items), *self.read_group(group, items)

    @property
    def _hashes(self) -> list[str]:
        return [PLACE, ITEM, *([QUERY_KEY] if self.roles.query is not None else [])]

    def _take_ids(self, table: pa.Table) -> HashedItems:
        with self._refusing("items"):
            for name in self._hashes:
                require_type(table, name, (pa.uint64(),))
            found = [table[name].to_numpy() for name in self._hashes]
            if (found[0][1:] < found[0][:-1]).any():
                raise Damaged("its items are not in the order of their places")
        return HashedItems(found[0], found[1], found[2] if len(found) > 2 else found[1][:0])

    def may_reach(self, group: int, low: int, high: int) -> bool:
        """Whether a run may have items in a range of places, as far as the file says."""
        file = self._open("items")
        about = file.metadata.row_group(group).column(file.schema_arrow.names.index(PLACE)).statistics
        return about is None or not about.has_min_max or (about.min <= high and about.max >= low)


def add_up(label: str, roles: Roles, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What `counts.json` would say, but for what only the merged cells tell."""
    nulls: Counter[str] = Counter()
    for about in parts:
        nulls.update(about["nulls"])
    filters = [about.get("filters", {}) for about in parts]
    alike = all(one == filters[0] for one in filters)
    filtered = [about.get("rows_filtered") for about in parts]
    return {
        "format": FORMAT,
        "log": label,
        "source": [state for about in parts for state in about["source"]],
        "roles": roles.to_dict(),
        "filters": filters[0] if alike else {**filters[0], "where": None},
        "rows_filtered": sum(filtered) if alike and None not in filtered else None,
        "nulls": {column: nulls[column] for column in roles.ids if column in nulls},
        **{name: sum(about[name] for about in parts) for name in ("rows", "usable", "unshown", "repeats_on_page")},
    }
