"""The labelled items that all fits know: how relevance ranks them, and what it shares with the logging policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.matching import describe_row, match, select_rows
from elute.auditing.cmip.metric import Cmip, Name, cmip
from elute.auditing.cmip.strata import MOST_GRADES, SMALLEST
from elute.auditing.labels import Labels
from elute.auditing.paired import Interval, mean_by_query
from elute.auditing.predictions import Subject
from elute.auditing.ranking_metrics import err, mrr, ndcg
from elute.errors import EluteError

Floats = NDArray[np.float64]


class RankingQuality(NamedTuple):
    """How well relevance ranks the judged items: means over the queries that have a relevant one, each its own list.
    `by_query`: nDCG, NaN where a query has none."""

    ndcg: Interval
    err: float
    mrr: float
    by_query: Floats


class ScoredItems(NamedTuple):
    """Judged items with a score of the policy, by where they stand among those of a fit's log."""

    at: NDArray[np.int64]
    grade: Floats
    query: NDArray[np.int64]
    policy: Floats
    relevance: Floats

    def take(self, some: NDArray[np.bool_]) -> ScoredItems:
        """Some of them."""
        return ScoredItems(self.at[some], self.grade[some], self.query[some], self.policy[some], self.relevance[some])


@dataclass(frozen=True, eq=False)
class JudgedItems:
    """`relevance`: by fit and item. `policy`: high where the policy ranked first, NaN where an item has no score."""

    labels: Labels
    known: NDArray[np.intp]
    """The rows of the labels that are here."""
    relevance: Floats
    grade: Floats
    query: NDArray[np.int64] | None
    policy: Floats | None = None
    click_rate: Floats | None = None
    """In the log; NaN where it does not show an item."""

    @classmethod
    def select(cls, labels: Labels, fits: Sequence[Subject]) -> JudgedItems:
        """Without what the policy thinks of them."""
        relevance = np.full((len(fits), len(labels.grade)), np.nan)
        for number, fit in enumerate(fits):
            at = match(labels.items, fit.items)
            relevance[number] = np.where(at >= 0, fit.relevance[at], np.nan)
            if (at < 0).all():
                raise EluteError(
                    f"{fit.fit.label} knows no item of {labels.place}: labels name {describe_row(labels.items, 0)}, "
                    f"the fit {describe_row(fit.items, 0)}; check the ids"
                )
        known = np.flatnonzero(np.isfinite(relevance).all(axis=0))
        if not len(known):
            raise EluteError(f"no item of {labels.place} has a relevance in every fit; audit the fits one by one")
        return cls(
            labels,
            known,
            relevance[:, known],
            labels.grade[known],
            None if labels.query is None else labels.query[known],
        )

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Where the policy's score is known."""
        return np.zeros(len(self.grade), np.bool_) if self.policy is None else np.isfinite(self.policy)

    def explain_missing(self) -> str:
        """Why there is no CMIP, in words; empty where there is."""
        if self.policy is None:
            return "no bias column is a position, and there are no scores of the logging policy (`policy_scores=`)"
        by_grade = np.unique(self.grade[self.scored], return_counts=True)[1]
        if by_grade.sum() < SMALLEST or (len(by_grade) <= MOST_GRADES and by_grade.max() < SMALLEST):
            return f"no grade has {SMALLEST} items with a label, a relevance and a score of the policy"
        return ""

    def measure_ranking(self, values: Floats, rows: NDArray[np.bool_] | None = None) -> RankingQuality | None:
        """These values as scores of some items. The highest grade of all satisfies with 1 - 1/2^grade (ERR); a grade of
        1 is relevant (MRR)."""
        if self.query is None:
            return None
        used = np.arange(len(self.grade)) if rows is None else np.flatnonzero(rows)
        order = used[np.argsort(self.query[used], kind="stable")]
        offsets = np.append(np.flatnonzero(np.diff(self.query[order], prepend=-1)), len(order))
        lists = self.grade[order], values[order], offsets
        gains = ndcg(*lists, without="skip").by_query
        counted = ~np.isnan(gains)
        others = err(*lists, highest=float(self.grade.max())), mrr(*lists)
        means = [float(found.by_query[counted].mean()) if counted.any() else math.nan for found in others]
        return RankingQuality(mean_by_query(gains), means[0], means[1], gains)

    def compare_ranking(self, values: Floats, others: Floats | None) -> Interval | None:
        """How much more nDCG these values have, query by query, over the items that have a value of the others."""
        rows = None if others is None else np.isfinite(others)
        first = self.measure_ranking(values, rows)
        if first is None or others is None:
            return None
        second = self.measure_ranking(others, rows)
        return None if second is None else mean_by_query(first.by_query - second.by_query)

    def cmip(self, fit: int, estimator: Name | None, seed: int) -> Cmip:
        """Ranks within queries, permutations within queries, and an interval that counts queries."""
        rows, policy = self._find_scored()
        query = None if self.query is None else self.query[rows]
        return cmip(self.relevance[fit][rows], policy, self.grade[rows], estimator, seed, queries=query)

    def find_scored(self, fit: int, items: Sequence[pa.Array]) -> ScoredItems:
        """Those among `items`, as id columns, in the order of the labels, with what a fit says of them."""
        rows, policy = self._find_scored()
        at = match(select_rows(self.labels.items, self.known[rows]), items)
        found = at >= 0
        query = np.zeros(len(rows), np.int64) if self.query is None else self.query[rows]
        kept = rows[found]
        return ScoredItems(at[found], self.grade[kept], query[found], policy[found], self.relevance[fit][kept])

    def _find_scored(self) -> tuple[NDArray[np.intp], Floats]:
        if self.policy is None:
            raise EluteError("CMIP needs the policy's scores")
        rows = np.flatnonzero(self.scored)
        return rows, self.policy[rows]
