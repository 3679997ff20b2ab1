"""All tests of the click model on one log."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from elute.auditing.assumptions.affine import assess_affine
from elute.auditing.assumptions.draws.clusters import Clusters
from elute.auditing.assumptions.examination import assess_examination
from elute.auditing.assumptions.finding import Finding
from elute.auditing.assumptions.groups import Groups, assess_groups
from elute.auditing.assumptions.labels import assess_labels
from elute.auditing.assumptions.linear import assess_linear
from elute.auditing.assumptions.null import REPLICATES, Drawing, fit_null
from elute.auditing.assumptions.pairwise import assess_pairwise
from elute.auditing.assumptions.tied.additivity import assess_additivity
from elute.auditing.assumptions.unique import assess_unique
from elute.cells.counts import Counts
from elute.cells.formula import formula_of
from elute.errors import EluteError
from elute.estimate.solve.problem import Floats
from elute.progress import Progress, silent


class FitLike(Protocol):
    """A fit of p = r(x)·o(t), as far as the tests need it: an estimator's."""

    @property
    def propensity_(self) -> Floats: ...
    @property
    def relevance_values_(self) -> Floats: ...


def assess_assumptions(
    counts: Counts,
    fit: FitLike,
    *,
    groups: Groups | None = None,
    labels: ArrayLike | None = None,
    seed: int = 0,
    replicates: int = REPLICATES,
    progress: Progress = silent,
    clusters: Clusters | None = None,
) -> list[Finding]:
    """What the log says of the model that `fit` rests on, one finding an assumption.

    `groups`: by what position effects might differ; `labels`: P(relevant) by item, NaN where unknown. Findings on
    groups and labels are there only where these are given, that on additivity where a formula ties factors; all others
    take every factor for itself. Each is at level 0.05 by itself. `clusters`: users or sessions whose clicks depend on
    each other; without them clicks count as independent."""
    o, r = np.asarray(fit.propensity_, np.float64), np.asarray(fit.relevance_values_, np.float64)
    if len(o) != counts.n_factors or len(r) != counts.n_items:
        raise EluteError(
            f"the fit has {len(r):,} items and {len(o):,} factors, the log {counts.n_items:,} and "
            f"{counts.n_factors:,}: fit this log"
        )
    formula = formula_of(counts.factors)
    tied, counts = counts, counts.tie(None)
    base = fit_null(counts, clusters)
    drawing = Drawing(seed, replicates, progress, clusters)
    found = [assess_unique(tied, r, o), assess_examination(base, drawing)]
    if groups is not None:
        found.append(assess_groups(counts, groups, drawing))
    found += [assess_linear(base, counts.factors, drawing), assess_affine(counts, base.o, drawing)]
    if labels is not None:
        found.append(assess_labels(counts, labels, drawing))
    found.append(assess_pairwise(counts, r, o, drawing))
    if formula is not None:
        found.append(assess_additivity(tied, formula))
    if clusters is None:
        return found
    return [each if each.design_effect is None else replace(each, cluster=clusters.column) for each in found]
