"""What a log lacks, in impressions: which factors, or which links, and how many.

A factor whose log propensity has variance v needs v/target² times its impressions, if what it is compared with is
known; a factor without a click as many as are likely to bring 1/target² clicks, judged by its impressions so far. Two
parts that clicks do not tie need an item shown under a factor of each: for n impressions under both, the variance of
the log ratio is (1/p + 1/p' - 2)/n (Proposition 1 of the identifiability paper), with p and p' the click rates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from elute.cells.factors import to_rows
from elute.known.precision import Precision, shorten

SHOWN = 20
"""Of what is missing, most impressions so far first; `Missing.total` has their number."""


class Missing(NamedTuple):
    """`factors` that are not known, and `links` between parts, each with `impressions_needed`."""

    factors: list[dict[str, Any]]
    links: list[dict[str, Any]]
    total: int

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


def find_missing(precision: Precision) -> Missing:
    """Of a measured log."""
    sample, problem = precision.sample, precision.sample.problem
    first = np.unique(problem.merged, return_index=True)[1]
    wanting = np.flatnonzero(~precision.known & ~precision.apart & ~precision.is_reference)
    order = wanting[np.argsort(-sample.shown[wanting], kind="stable")]
    factors = [
        {
            "factor": to_rows(problem.factors, [first[code]])[0],
            "impressions": int(sample.shown[code]),
            "clicks": int(sample.clicked[code]),
            "log_se": shorten(precision.log_se[code]) if np.isfinite(precision.log_se[code]) else None,
            "impressions_needed": _count_needed(precision, int(code)),
        }
        for code in order[:SHOWN]
    ]
    return Missing(factors, _list_links(precision), len(order))


def _count_needed(precision: Precision, code: int) -> int:
    shown, error = float(precision.sample.shown[code]), float(precision.log_se[code])
    if np.isfinite(error):
        return int(np.ceil(shown * ((error / precision.target) ** 2 - 1.0)))
    rate = 0.5 / shown
    return int(np.ceil(precision.design_effect / precision.target**2 / rate))


def _list_links(precision: Precision) -> list[dict[str, Any]]:
    """From the best-clicked factor of a part that hangs apart to that of its component's main part, for the first of
    these parts."""
    sample, problem = precision.sample, precision.sample.problem
    first = np.unique(problem.merged, return_index=True)[1]
    rate = sample.clicked / np.maximum(sample.shown, 1.0)
    out = []
    for part in np.unique(sample.part[precision.apart])[:SHOWN].tolist():
        mine = np.flatnonzero(sample.part == part)
        here = int(mine[np.argmax(sample.clicked[mine])])
        main = np.flatnonzero((problem.component == problem.component[here]) & ~precision.apart)
        there = int(main[np.argmax(sample.clicked[main])])
        needed = (1.0 / rate[here] + 1.0 / rate[there] - 2.0) / precision.target**2
        a, b = to_rows(problem.factors, [first[here], first[there]])
        out.append({"a": a, "b": b, "factors": len(mine), "impressions_needed": int(np.ceil(max(needed, 1.0)))})
    return out
