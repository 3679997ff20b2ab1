"""The tests that a fit runs by itself: those of its own assumptions, where they take a second or so.

They are those of `battery` with fewer draws. 'unique fit' is left out, because a fit says by itself what is not
determined; 'pairwise debiasing' too, because only rankers of pairs assume it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from elute._util.text import format_count
from elute.auditing.assumptions.affine import assess_affine
from elute.auditing.assumptions.examination import assess_examination
from elute.auditing.assumptions.linear import assess_linear
from elute.auditing.assumptions.null import Drawing, fit_null
from elute.auditing.assumptions.tied.additivity import assess_additivity
from elute.cells.counts import Counts
from elute.cells.formula import formula_of
from elute.progress import Progress, silent

CELLS = 12_000
FACTORS = 50
"""Cells and factors up to which the tests are run: about a second on two cores."""

REPLICATES = 59
"""Draws: as with 199, a p-value of 0.05 or less has exactly probability 0.05 under the null."""

AFFINE = ("affine", "affine-ipw")
"""Models that allow for an offset: r·o is not among their assumptions."""


class TestedAssumptions(NamedTuple):
    """What the tests said. `reason`: why none was run, or what could not be tested; empty where nothing is missing."""

    run: bool
    rejected: tuple[str, ...]
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """The field `assumptions` of `elute fit --json`."""
        return {"run": self.run, "rejected": list(self.rejected), "reason": self.reason or None}


def assess_briefly(counts: Counts | None, model: str, seed: int = 0, progress: Progress = silent) -> TestedAssumptions:
    """Test what `model` assumes of the log. `counts`: under the plan; None where they are not held in memory."""
    if counts is None:
        return TestedAssumptions(False, (), "the log's cells are not held in memory")
    if reason := _find_obstacle(counts):
        return TestedAssumptions(False, (), reason)
    formula = formula_of(counts.factors)
    tied, counts = counts, counts.tie(None)
    base, drawing = fit_null(counts), Drawing(seed, REPLICATES, progress)
    found = [] if model in AFFINE else [assess_examination(base, drawing), assess_linear(base, counts.factors, drawing)]
    found.append(assess_affine(counts, base.o, drawing))
    if formula is not None:
        found.append(assess_additivity(tied, formula))
    rejected = tuple(finding.name for finding in found if finding.verdict == "rejected")
    untestable = [finding.name for finding in found if finding.verdict == "untestable"]
    reason = f"this log cannot tell of {', '.join(untestable)}" if untestable else ""
    return TestedAssumptions(len(untestable) < len(found), rejected, reason)


def _find_obstacle(counts: Counts) -> str:
    """Why the tests are not run; empty where they are."""
    if counts.n_factors < 2:
        return "there is one propensity only"
    if counts.n_cells > CELLS:
        return f"the log has {format_count(counts.n_cells)} cells, more than {format_count(CELLS)}"
    if counts.n_factors > FACTORS:
        return f"the log has {format_count(counts.n_factors)} factors, more than {format_count(FACTORS)}"
    return ""
