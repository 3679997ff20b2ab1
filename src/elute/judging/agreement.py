"""How far judgments agree with what people said: weighted kappa, and pairs in the same order.

Kappa is quadratic: 1 less the mean squared difference of grade and label, relative to that of grades and labels drawn
at random from the same two distributions. Pairs are those of one query with different labels; a tie of grades counts
half. Queries are resampled for its interval, since pairs of one query hang together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.matching import describe_row, match
from elute.auditing.labels import TableSource, read_labels
from elute.cells.roles import Roles
from elute.errors import EluteError
from elute.judging.judgments import Judgments

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DRAWS = 2_000
"""Resamples of the queries."""


class Agreement(NamedTuple):
    """`judged`: judgments that have a label. `scale`: how labels and grades were matched. `pairs` with different
    labels, of so many `queries`. Figures that do not exist, as with one label only, are None."""

    judged: int
    scale: str
    weighted_kappa: float | None
    pairwise: float | None
    pairwise_low: float | None
    pairwise_high: float | None
    pairs: int
    queries: int


def compare_with_labels(made: Judgments, source: TableSource, query: str, doc: str) -> Agreement:
    """Judgments against labels that are named by the same columns, or by the usual ones."""
    labels = read_labels(source, Roles((query, doc), (), query, None, None, None))
    ours = [pa.array(made.query, pa.string()), pa.array(made.doc, pa.string())]
    at = match(ours, labels.items)
    found = np.flatnonzero(at >= 0)
    if not len(found):
        raise EluteError(
            f"no judgment has a label in {labels.place}: judgments name {describe_row(ours, 0)}, "
            f"labels {describe_row(labels.items, 0)}; check the ids"
        )
    code = ours[0].dictionary_encode().indices.to_numpy().astype(np.int64)
    label, scale = match_scales(labels.grade, made.levels)
    grade = made.grade[found]
    kappa = compute_weighted_kappa(grade.astype(np.float64), label[at[found]])
    pairwise = _compare_pairs(*count_pairs(grade, label[at[found]], code[found]))
    return Agreement(len(found), scale, kappa, *pairwise)


def match_scales(labels: Floats, levels: int) -> tuple[Floats, str]:
    """Labels at the scale of grades 0 to `levels` - 1: as they are where they go up to the same number, otherwise
    stretched, so that their lowest is 0 and their highest the highest grade."""
    low, high = float(labels.min()), float(labels.max())
    if (low >= 0 and high == levels - 1 and (labels == labels.round()).all()) or low == high:
        return labels, "labels as they are"
    stretched = (labels - low) * (levels - 1) / (high - low)
    return stretched, f"labels {low:g} to {high:g} stretched to grades 0 to {levels - 1}"


def compute_weighted_kappa(one: Floats, other: Floats) -> float | None:
    """Of numbers on one scale; None where chance alone would agree throughout."""
    expected = one.var() + other.var() + (one.mean() - other.mean()) ** 2
    return float(1.0 - np.mean((one - other) ** 2) / expected) if expected > 0 else None


def count_pairs(grade: Ints, label: Floats, query: Ints) -> tuple[Floats, Floats]:
    """By query with two different labels: pairs of different labels, and how many of them grades order alike."""
    order = np.argsort(query, kind="stable")
    pairs, alike = [], []
    for rows in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        higher = label[rows][:, None] > label[rows]
        if higher.any():
            pairs.append(float(higher.sum()))
            alike.append(float((0.5 + 0.5 * np.sign(grade[rows][:, None] - grade[rows]))[higher].sum()))
    return np.array(pairs), np.array(alike)


def _compare_pairs(pairs: Floats, alike: Floats) -> tuple[float | None, float | None, float | None, int, int]:
    """The share of pairs that are ordered alike, its 95% interval, and how many pairs and queries there are."""
    if not len(pairs):
        return None, None, None, 0, 0
    rng = np.random.default_rng(0)
    drawn = (rng.integers(0, len(pairs), len(pairs)) for _ in range(DRAWS))
    low, high = np.quantile([alike[rows].sum() / pairs[rows].sum() for rows in drawn], (0.025, 0.975)).tolist()
    return float(alike.sum() / pairs.sum()), low, high, int(pairs.sum()), len(pairs)


def describe_agreement(found: dict[str, Any]) -> str:
    """In a sentence."""
    kappa, share = found["weighted_kappa"], found["pairwise"]
    parts = [f"weighted kappa {kappa:.2f}" if kappa is not None else "no kappa, as nothing differs"]
    if share is not None:
        low, high = found["pairwise_low"], found["pairwise_high"]
        parts.append(
            f"{share:.1%} of {found['pairs']:,} pairs in {found['queries']:,} queries in the same order "
            f"({low:.1%} to {high:.1%})"
        )
    return f"Agreement with {found['judged']:,} labels: {', '.join(parts)}; {found['scale']}."
