"""The position-based model where a score says how components stand to each other: what a score plan is fitted with."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.roles import ColumnNames
from elute.errors import EluteError
from elute.estimate.combined.linked import Linked, fit_linked
from elute.estimate.models.score_adjusted import ScoreAdjusted
from elute.estimate.scored.rows import ScoredRows, ScoreScale
from elute.estimate.solve.problem import Codes, Floats, Problem, pose
from elute.kernels.jit import jit
from elute.log import ClickLog
from elute.options.takes import takes
from elute.progress import Progress, silent

MOST_FACTORS = 2_000
"""Beyond which errors, with all that they have in common, would not fit."""


class ScoreLinked(ScoreAdjusted):
    """Relevance of items given p = r(x)·o(t), with ratios of o from items shown under several factors and, where these
    say nothing or little, from a score (`elute.estimate.combined.linked`).

    `target`: the standard error of log o at which items alone know a component's ratios. The rest as for
    `elute.ScoreAdjusted`.

    Fitted, beside what that has: `linked_`, and `parts_`, by factor its component as items link them.
    """

    @takes()
    def __init__(
        self,
        *,
        score: ColumnNames,
        score_scale: ScoreScale = "raw",
        labels: Floats | None = None,
        target: float = 0.1,
        seed: int = 0,
        progress: Progress = silent,
    ) -> None:
        super().__init__(score=score, score_scale=score_scale, labels=labels, seed=seed, progress=progress)
        self.target = target

    def _read(self, log: ClickLog) -> None:
        if log.survey.factors.num_rows > MOST_FACTORS:
            raise EluteError(
                f"{log.engine.label} has more than {MOST_FACTORS:,} factors, too many to combine links and a score; "
                "`elute.fit` with `model='score-adjusted'` and `score=` takes the score alone"
            )
        self.parts_: Codes = pose(log.counts(self.progress), None).component
        super()._read(log)

    def _adjust(self, rows: ScoredRows, factors: pa.Table) -> None:
        super()._adjust(rows, factors)
        self.progress("combining links and score", 0, 0)
        parts = self.parts_.astype(np.int64)
        self.linked_: Linked = fit_linked(rows, self.score_bins_, self._pooled, parts, self.target)
        self._place(rows, self.linked_.log_o, self.linked_.log_h, self.linked_.errors)

    def _errors(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        """Of items: what their clicks leave open, and what propensities do, with all that these have in common."""
        own = super(ScoreAdjusted, self)._errors(problem, propensity, relevance)[1]
        covariance = self.linked_.covariance
        reference = int(np.flatnonzero(self._of_factors == 0)[0])
        apart = covariance - covariance[reference]
        apart = apart - apart[:, [reference]]
        offsets, factor, shown, _ = problem.cells
        through = _spread_over_items(offsets, factor, shown * propensity[factor], apart)
        return self._of_factors, np.sqrt(own**2 + through)


@jit
def _spread_over_items(
    offsets: NDArray[np.int64], factor: NDArray[np.int32], reach: Floats, covariance: Floats
) -> Floats:
    """By item: the variance of log Σ reach, which `covariance` of log o by factor gives it."""
    out = np.zeros(offsets.shape[0] - 1)
    for item in range(out.shape[0]):
        total = 0.0
        variance = 0.0
        for a in range(offsets[item], offsets[item + 1]):
            total += reach[a]
            for b in range(offsets[item], offsets[item + 1]):
                variance += reach[a] * reach[b] * covariance[factor[a], factor[b]]
        if total > 0:
            out[item] = variance / total**2
    return out
