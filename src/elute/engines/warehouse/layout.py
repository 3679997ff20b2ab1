"""What the statement selects, and what is read again: cells, with what the rest of a counts folder is made of.

| column | what |
|---|---|
| the log's own | query, items and bias: a row for each combination of their values that occurs, nulls included |
| `elute_rows` | rows of the log |
| `elute_rows_shown` | those of them with an impression |
| `elute_impressions`, `elute_clicks` | their sums |
| `elute_rows_flawed` | rows whose clicks or impressions are no such numbers: with any, the cells are refused |
| `elute_rows_read` | the same in each row: rows that pass the filters, so that no part of the cells can be missing |
| `elute_rows_in_all` | the same in each row: rows before filters |
| `elute_rows_repeated` | the same in each row, with a session: rows that show an item again on its page |
| `elute_about` | the same in each row: table, roles and filters, as JSON without signs that mean something to SQL |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from elute.cells.filters import Filters
from elute.cells.roles import Roles
from elute.door.fields import Damaged, choice, mapping, record, scalar, text
from elute.engines.counts_folder.layout import ROLES

ROWS, SHOWN, IMPRESSIONS, CLICKS = "elute_rows", "elute_rows_shown", "elute_impressions", "elute_clicks"
FLAWED, READ, IN_ALL, REPEATED = "elute_rows_flawed", "elute_rows_read", "elute_rows_in_all", "elute_rows_repeated"
ABOUT = "elute_about"

SUMS = (ROWS, SHOWN, IMPRESSIONS, CLICKS, FLAWED)
"""Of a cell."""

_FORMAT = "cells-1"
_PLAIN = ' {}[]":,'
"""Signs of JSON that no dialect has a second meaning for within quotes."""
_KIND = record({"elute": choice(_FORMAT), "log": text, "roles": ROLES, "filters": mapping(scalar)}, closed=True)


@dataclass(frozen=True)
class AboutCells:
    """What cells say of themselves."""

    log: str
    roles: Roles
    filters: Filters

    def write(self) -> str:
        """As text that is the same in every dialect."""
        fields = {"elute": _FORMAT, "log": self.log, "roles": self.roles.to_dict(), "filters": self.filters.to_dict()}
        return quote(json.dumps(fields, ensure_ascii=False), _PLAIN)

    @classmethod
    def read(cls, written: str) -> AboutCells:
        """`Damaged` where it is not as it was written."""
        try:
            fields: Mapping[str, Any] = json.loads(unquote(written, errors="strict"))
            _KIND(fields, ABOUT)
        except Damaged:
            raise
        except (ValueError, RecursionError):
            raise Damaged(f"column '{ABOUT}' is not as the statement gives it") from None
        return cls(fields["log"], Roles.from_fields(fields["roles"]), Filters.from_options(fields["filters"]))
