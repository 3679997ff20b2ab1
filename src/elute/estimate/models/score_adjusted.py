"""Propensities from clicks adjusted for the score that the logging policy ranked by; relevance weighs clicks by them.

P(click | score, factor) = o(factor)·h(score) if the score is all that ties relevance to factors. That needs no item to
be shown under two factors, so it works on a log with one fixed list a query; but it is an assumption, unlike what links
of the identifiability graph say, and it is tested (`elute.estimate.scored.verdict`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from elute.cells.counts import Counts
from elute.cells.roles import ColumnNames
from elute.errors import EluteError
from elute.estimate.models.base import Solution
from elute.estimate.models.ipw import IPW
from elute.estimate.scored.conditional import add_up
from elute.estimate.scored.pooled import fit_pooled
from elute.estimate.scored.rows import ScoredRows, ScoreScale, list_scores, read_rows
from elute.estimate.scored.spline import bin_scores
from elute.estimate.scored.verdict import ScoreTest, test_score
from elute.estimate.solve.problem import (
    Floats,
    MergingPlan,
    Problem,
    find_reliable,
    name_factors,
)
from elute.log import ClickLog, LogSource, as_log
from elute.options.takes import takes
from elute.progress import Progress, silent

_OPEN = 1e-7
"""Information on a direction of the spline, for each click, below which it is open."""


class ScoreAdjusted(IPW):
    """Relevance of items given p = r(x)·o(t), with o from P(click | score, t) = o(t)·h(score).

    `score`: the log's column with what the logging policy ranked by, higher for better or worse; or several, whose
    effects multiply. `score_scale`: "raw" where scores of different queries mean the same, "query" to standardise them
    within queries, "rank" for ranks within queries. `labels`: relevance of items as judged, by item of the counts and
    NaN where there is none, to test the score by. `seed`: which queries are held out to choose the stiffness of h.
    Relevance is an item's clicks over Σ n·o (`policy_aware` of `elute.IPW`); its `log_se` holds what is uncertain in o.
    Standard errors of propensities are from clusters of queries.

    Fitted, beside what others have: `score_test_` (the verdict on what all this rests on, with comparisons),
    `by_score_` (h: mean relevance by score, at the scale of `relevance_`), `stiffness_` and `freedom_` of h. The column
    `by_score` of `relevance_` is h at an item's own scores: what an item of few impressions is expected to be.
    """

    @takes()
    def __init__(
        self,
        *,
        score: ColumnNames,
        score_scale: ScoreScale = "raw",
        labels: Floats | None = None,
        seed: int = 0,
        progress: Progress = silent,
    ) -> None:
        super().__init__(propensities=(), policy_aware=True, progress=progress)
        self.labels = labels
        self.score = list_scores(score)
        self.score_scale = score_scale
        self.seed = seed

    def fit(self, source: LogSource, plan: MergingPlan | None = None, *, allow_unidentified: bool = True) -> Self:
        """Estimate from a log, which has the scores. They place all factors on one scale: a merge plan has nothing to
        join."""
        if plan is not None:
            raise EluteError("the score places all factors on one scale: leave the merge plan out")
        log = as_log(source)
        if log.roles.formula is None:
            self._read(log)
        return super().fit(log.counts(self.progress), allow_unidentified=True)

    def _read(self, log: ClickLog) -> None:
        """The cells by score, and all that is found from them."""
        rows = self.scored_rows_ = read_rows(log, self.score, self.score_scale, self.progress)
        self._adjust(rows, log.survey.factors)
        self._expected = self._expect(rows, log.counts(self.progress).n_items)

    @property
    def stiffness_(self) -> float:
        return self._pooled.stiffness

    @property
    def freedom_(self) -> float:
        """Coefficients that the spline's penalty leaves."""
        return self._pooled.freedom

    def summarise_score(self) -> dict[str, Any]:
        """The field `score` of `elute fit --json`."""
        chosen = {"column": ",".join(self.score), "scale": self.score_scale}
        return {**chosen, "stiffness": self.stiffness_, "freedom": self.freedom_, **self.score_test_.to_dict()}

    def _pose(self, counts: Counts, plan: MergingPlan | None) -> Problem:
        """All factors on one scale, whatever items link."""
        problem = super()._pose(counts, plan)
        return replace(problem, component=np.zeros_like(problem.component))

    def _solve(self, problem: Problem) -> Solution:
        found, fit = super()._solve(problem), self._pooled
        reason = found.reason or ("" if fit.converged else "the spline in the score did not converge")
        return found._replace(iterations=fit.iterations, converged=not reason, reason=reason)

    def _errors(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        """Those of the propensities that an item was shown under are taken to err all alike, which they mostly do: they
        have one reference."""
        of_items = super()._errors(problem, propensity, relevance)[1]  # of their own clicks
        cells = problem.cells
        item = np.repeat(np.arange(problem.n_items), np.diff(cells.offsets))
        reach = cells.impressions * propensity[cells.factor]
        total = add_up(item, reach, problem.n_items)
        spread = add_up(item, reach * np.nan_to_num(self._of_factors)[cells.factor], problem.n_items)
        shared = np.divide(spread, total, out=np.zeros_like(total), where=total > 0)
        return self._of_factors, np.sqrt(of_items**2 + shared**2)

    @property
    def relevance_(self) -> pa.Table:
        """As of other models, and `by_score`: h at the item's scores, over its impressions."""
        return super().relevance_.append_column("by_score", pa.array(self._expected))

    def _adjust(self, rows: ScoredRows, factors: pa.Table) -> None:
        """Find propensities, and test what they rest on."""
        if not rows.clicked.any():
            raise EluteError("the log has no click, and so nothing to adjust")
        for column, values in zip(self.score, rows.score.T, strict=True):
            if (values == values[0]).all():
                raise EluteError(f"column '{column}' has one value only; give the score that results were ranked by")
        self.score_bins_ = bin_scores(rows.score, rows.shown)
        self.progress("adjusting clicks for the score", 0, 0)
        self._pooled = fit_pooled(rows, self.score_bins_, factors.num_rows, self.seed)
        self._refuse_open(rows, factors)
        self.progress("testing the score", 0, 0)
        self.score_test_: ScoreTest = test_score(rows, self.score_bins_, self._pooled, self.labels)
        self._place(rows, self._pooled.log_o, self._pooled.log_h, self._pooled.influence.errors)

    def _place(self, rows: ScoredRows, log_o: Floats, log_h: Floats, errors: Callable[[int], Floats]) -> None:
        """Propensities at the scale where the largest that is measured well is 1. `errors`: relative to a factor."""
        clicks = add_up(rows.factor, rows.clicked, len(log_o))
        there = np.where(find_reliable(clicks, np.zeros(len(clicks), np.int32)), log_o, -np.inf)
        reference = int(there.argmax())
        scale = log_o[reference]
        self.propensities = np.exp(log_o - scale)
        self._of_factors = np.where(clicks > 0, errors(reference), np.nan)
        self.by_score_ = pa.table(
            {
                **dict(zip(self._name_scores(), self.score_bins_.centre.T, strict=True)),
                "relevance": np.exp(log_h + scale),
                "impressions": np.bincount(self.score_bins_.bin, rows.shown).astype(np.int64),
                "clicks": np.bincount(self.score_bins_.bin, rows.clicked).astype(np.int64),
            }
        )

    def find_own_errors(self) -> Floats:
        """By item: the standard error of log relevance that its clicks leave where propensities are known."""
        return super()._errors(self._problem, self._scaled, self.relevance_values_)[1]

    def _name_scores(self) -> tuple[str, ...]:
        return ("score",) if len(self.score) == 1 else self.score

    def _expect(self, rows: ScoredRows, items: int) -> Floats:
        """h by item, over its impressions."""
        h = self.by_score_["relevance"].to_numpy()[self.score_bins_.bin]
        return add_up(rows.whole, rows.shown * h, items) / add_up(rows.whole, rows.shown, items)

    def _refuse_open(self, rows: ScoredRows, factors: pa.Table) -> None:
        """Where the score says no more than the factor does, nothing tells how propensities stand to each other."""
        clicks = add_up(rows.factor, rows.clicked, factors.num_rows)
        most = int(clicks.argmax())
        means = np.where(clicks[:, None] > 0, self._pooled.influence.means, self._pooled.influence.means[most])
        value, vector = np.linalg.eigh(self._pooled.information)
        lacking = vector[:, value < _OPEN * rows.clicked.sum()]
        apart = np.abs((means - means[most]) @ lacking).max(axis=1, initial=0.0)
        if apart.max() > 0.05:
            named = name_factors(factors, np.arange(factors.num_rows, dtype=np.int32), np.array([most, apart.argmax()]))
            raise EluteError(
                f"'{', '.join(self.score)}' ({self.score_scale}) cannot be told from the bias columns: scores do not "
                f"overlap between {named}; use another `score_scale=`, or fit pbm"
            )
