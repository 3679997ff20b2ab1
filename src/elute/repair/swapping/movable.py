"""Which bias columns a search engine can change for an item, and which it cannot.

It can put a document at another position of a page. It cannot show it to another device, or under another query. So a
column is fixed where it is part of the item, where it never varies within a page, or where that cannot be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.cells.factors import is_position
from elute.checking.check import Check
from elute.checking.measured import CLUSTERED
from elute.errors import EluteError

Codes = NDArray[np.int64]

_PAGES = ("page_id", "session_id")
"""Columns that are taken for a page's name where none is given."""


@dataclass(frozen=True)
class Movable:
    """The bias columns that a swap may change, the others with the reason, and for every factor the `kind` that its
    fixed columns make it: a swap stays within a kind. `place`: factors of a kind at one position have one number, since
    a page shows one result there, whatever else varies."""

    columns: tuple[str, ...]
    fixed: dict[str, str]
    kind: Codes
    place: Codes

    @property
    def kinds(self) -> int:
        return int(self.kind.max(initial=0)) + 1

    def describe(self) -> str:
        """The fixed columns, with why."""
        return "; ".join(f"{column} is fixed ({reason})" for column, reason in self.fixed.items())


def find_movable(check: Check, fixed: Sequence[str] = (), movable: Sequence[str] = ()) -> Movable:
    """As declared, and else as the log shows it."""
    factors, roles = check.counts.factors, check.log.roles
    columns = factors.column_names
    _refuse_unknown(columns, fixed, movable)
    reasons = dict.fromkeys(fixed, "as declared")
    own = [*roles.item, *([roles.query] if roles.query is not None else [])]
    reasons |= {column: "it is part of the item" for column in columns if column in own and column not in movable}
    unclear = [c for c in columns if c not in reasons and c not in movable and not is_position(factors, c)]
    if unclear:
        reasons |= _look_at_pages(check, unclear)
    kind = number_kinds(factors, list(reasons))
    return Movable(tuple(c for c in columns if c not in reasons), reasons, kind, number_places(factors, kind))


def number_places(factors: pa.Table, kind: Codes) -> Codes:
    """Factors of a kind at one position have one number; where no column is a position, each has its own."""
    positions = [column for column in factors.column_names if is_position(factors, column)]
    if not positions:
        return np.arange(factors.num_rows)
    of_position = number_kinds(factors, positions[:1])
    return np.unique(np.column_stack((kind, of_position)), axis=0, return_inverse=True)[1].reshape(-1)


def _refuse_unknown(columns: Sequence[str], fixed: Sequence[str], movable: Sequence[str]) -> None:
    unknown = [column for column in (*fixed, *movable) if column not in columns]
    if unknown:
        raise EluteError(f"'{unknown[0]}' is not a bias column, so it cannot be fixed or moved ({', '.join(columns)})")
    both = [column for column in fixed if column in movable]
    if both:
        raise EluteError(f"'{both[0]}' is declared both fixed and movable")


def number_kinds(factors: pa.Table, columns: Sequence[str]) -> Codes:
    """Factors that agree in these columns have one number."""
    kind = np.zeros(factors.num_rows, np.int64)
    for column in columns:
        codes = pc.dictionary_encode(factors[column], null_encoding="encode").combine_chunks().indices.to_numpy()
        kind = np.unique(kind * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].reshape(-1)
    return kind


def _look_at_pages(check: Check, columns: Sequence[str]) -> dict[str, str]:
    """Of these columns, those that never vary within a page, or of which that cannot be told."""
    log = check.log
    page = log.roles.session or next((name for name in _PAGES if name in log.engine.columns), None)
    if page is None:
        why = "no column names the page, so whether it varies there is not known; --session or --movable says so"
        return dict.fromkeys(columns, why)
    if log.survey.usable > CLUSTERED or log.is_counted:
        return dict.fromkeys(columns, "whether it varies within a page was not looked at; --movable says so")
    rows = check.counts.read_clusters(page)
    factors = check.counts.factors
    return {
        column: f"it never varies within a page ({page})"
        for column in columns
        if not _varies(np.asarray(rows.cluster), number_kinds(factors, [column])[np.asarray(rows.factor)])
    }


def _varies(page: NDArray[np.integer], value: Codes) -> bool:
    """Whether some page has two values."""
    least = np.full(int(page.max(initial=0)) + 1, np.iinfo(np.int64).max)
    most = np.full(len(least), -1)
    np.minimum.at(least, page, value)
    np.maximum.at(most, page, value)
    return bool((most > least).any())
