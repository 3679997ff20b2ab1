"""Four rungs from a log to knowledge, and what to call them.

`apart`: no item links some factors. `linked`: items link all, but no chain of clicks determines the ratios: the maximum
of the likelihood does not exist. `loose`: estimable, not to the precision asked. `known`: all propensities are.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from elute._util.text import format_share
from elute.cells.factors import describe_some
from elute.known.precision import Precision
from elute.results.card import Tone

Rung = Literal["apart", "linked", "loose", "known"]
Bar = Literal["linked", "estimable", "known"]

RUNGS: tuple[Rung, ...] = get_args(Rung)
BARS: dict[Bar, Rung] = {"linked": "linked", "estimable": "loose", "known": "known"}
"""What a pipeline may ask for, and the least rung that meets it."""


class Look(NamedTuple):
    """How a rung is shown."""

    sign: str
    tone: Tone
    word: str


LOOKS: dict[Rung, Look] = {
    "apart": Look("✗", "bad", "Apart"),
    "linked": Look("✗", "bad", "Linked, not estimable"),
    "loose": Look("≈", "warn", "Estimable, not precisely known"),
    "known": Look("✓", "good", "Known"),
}


def find_look(rung: Rung, clicks: bool) -> Look:
    """`clicks`: whether the log has any column of them. Where it has none, linked is all that can be asked of it."""
    return Look("≈", "warn", "Linked") if rung == "linked" and not clicks else LOOKS[rung]


def find_rung(connected: bool, precision: Precision | None, assumed: bool) -> Rung:
    """`precision` is None where the log has no clicks; `assumed`: whether a plan leaves one propensity for all,
    or nearly, which is then an assumption, nothing that is known."""
    if not connected:
        return "apart"
    if precision is None or not precision.estimable:
        return "linked"
    return "known" if precision.known.all() and not assumed and len(precision.log_se) > 1 else "loose"


def reaches(rung: Rung, bar: Bar) -> bool:
    """Whether a rung meets what was asked for."""
    return RUNGS.index(rung) >= RUNGS.index(BARS[bar])


def write_sentence(rung: Rung, linked: str, precision: Precision | None) -> str:
    """The verdict on a log that is connected; `linked` says so in words."""
    if precision is None:
        return f"Linked: relevance is recoverable from this log ({linked}). Without clicks no more can be said."
    if rung == "linked":
        return f"Linked, not estimable: {linked}, but {describe_unestimable(precision)}"
    errors, order = _describe_errors(precision), _describe_order(precision)
    if rung == "known":
        return f"Known: relevance is recoverable from this log ({linked}), and {errors}. {order}"
    return f"Loose: relevance is recoverable in principle ({linked}), but {errors}. {order}"


def describe_unestimable(precision: Precision) -> str:
    """Why the maximum does not exist."""
    if not precision.sample.clicked.sum():
        return "nothing was clicked."
    factors = name_factors(precision, precision.apart)
    return f"no chain of clicks determines the propensities of {factors} relative to the others."


def _describe_errors(precision: Precision) -> str:
    n, known, largest = len(precision.log_se), int(precision.known.sum()), precision.largest_log_se
    if n == 1:
        return "with one propensity for all there is nothing to debias"
    to = f"to a standard error of {precision.target:g} of {'their logarithms' if 0 < known < n else 'its logarithm'}"
    end = "" if largest is None else f", the largest being {largest:.2g}"
    if precision.unclicked.any():
        end = f"; {name_factors(precision, precision.unclicked)} never clicked"
    if known == n:
        return f"every propensity is known {to}{end}"
    share = format_share(precision.impressions_known_share)
    some = f"only {known:,} of {n:,} propensities, for {share} of the impressions, are" if known else "no propensity is"
    return f"{some} known {to}{end}"


def _describe_order(precision: Precision) -> str:
    """Of items and queries, which propensities alone do not settle."""
    items, ordered = precision.shares.items_known, precision.shares.queries_ordered
    known = f"{format_share(items)} of the items have a known place"
    pairs = "" if ordered is None else f", and {format_share(ordered)} of the pairs in a query are certain"
    return f"{known}{pairs}."


def name_factors(precision: Precision, some: NDArray[np.bool_]) -> str:
    """How many factors, and the first of them."""
    table, merged = precision.sample.problem.factors, precision.sample.problem.merged
    rows = np.flatnonzero(some[merged])
    named = table.take(rows[:6]).to_pylist()
    words = describe_some(table.column_names, [list(row.values()) for row in named])
    return f"{len(rows):,} factor{'' if len(rows) == 1 else 's'} ({words})"
