"""How precisely a log determines its propensities, and where that hangs by a thread (`elute check --precision`).

Connected is not yet estimable: a finite maximum also needs clicks that tie factors both ways, and a graph held
together by few items has a maximum with a huge error. Both show in the information at the fit: every factor gets
the standard error of its log propensity, and the weakest links are the bottlenecks of the identifiability graph,
each with its effective resistance, the variance of the log ratio of its two factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from elute.cells.counts import Cells, Counts
from elute.cells.factors import to_rows
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.laplacian import conjugate_gradients, diagonal, multiply
from elute.estimate.solve.problem import Codes, Floats, MergingPlan, Problem, pose
from elute.estimate.solve.standard_errors import information
from elute.kernels.jit import jit
from elute.progress import Progress, silent

LINKS = 20
"""Weakest links listed."""

_CANDIDATES = 60
_SHARE, _STEPS = 1e-8, 20_000


class Link(NamedTuple):
    """Two factors that share items; without this link the graph would hold together less, or not at all."""

    a: dict[str, Any]
    b: dict[str, Any]
    items: int
    """Items that carry information under both."""
    resistance: float
    """The variance of log o(a) - log o(b), through all paths."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Whether every propensity has a finite estimate (`reason`: why not), and how precise each is."""

    counts: Counts
    component: Codes
    log_se: Floats
    links: tuple[Link, ...]
    reason: str

    @property
    def estimable(self) -> bool:
        return not self.reason

    def to_dict(self) -> dict[str, Any]:
        """The field `certificate` of `elute check --precision --json`; null where there is no estimate."""
        factors = to_rows(self.counts.factors, range(self.counts.n_factors))
        errors = [None if np.isnan(error) else float(error) for error in self.log_se]
        return {
            "estimable": self.estimable,
            "reason": self.reason or None,
            "factors": [
                {**factor, "component": int(part), "log_propensity_se": error}
                for factor, part, error in zip(factors, self.component, errors, strict=True)
            ],
            "weakest_links": [link._asdict() for link in self.links],
        }


def certify(counts: Counts, plan: MergingPlan | None = None, progress: Progress = silent) -> Certificate:
    """Fit the position-based model and read its information matrix. Where a formula ties factors no two of them need a
    link, and none is named."""
    fit = PBM(relevance_prior="none", progress=progress).fit(counts, plan, allow_unidentified=True)
    problem = pose(counts, plan)
    if problem.design is not None:
        return Certificate(counts, fit.component_, fit.propensity_log_se_, (), fit.reason_)
    w = information(*problem.cells[:3], fit.relevance_values_, _take_merged(problem, fit.propensity_))
    links = _find_weakest_links(problem, counts, w)
    return Certificate(counts, fit.component_, fit.propensity_log_se_, links, fit.reason_)


def _take_merged(problem: Problem, values: Floats) -> Floats:
    """By factor of the problem, from values by factor of the log."""
    return np.asarray(values[np.unique(problem.merged, return_index=True)[1]])


def _find_weakest_links(problem: Problem, counts: Counts, w: Floats) -> tuple[Link, ...]:
    """The links of largest resistance in a spanning tree of the best conducting ones.

    Of an item's links those to the factor it is best known under conduct best (w_s·w_t/Σw), and they connect
    what the item connects; so one star an item suffices, and no clique is ever formed."""
    cells, n = problem.cells, problem.n_factors
    best, other, conductance = _list_stars(*cells[:2], w)
    if len(best) == 0:
        return ()
    ends = np.minimum(best, other), np.maximum(best, other)
    summed = csr_array(coo_array((conductance, ends), shape=(n, n)))
    summed.sum_duplicates()
    summed.data = 1.0 / summed.data
    tree = minimum_spanning_tree(summed).tocoo()
    chosen = np.argsort(-tree.data, kind="stable")[:_CANDIDATES]
    scale = diagonal(*cells[:2], w, n)
    found = []
    for s, t in zip(tree.row[chosen].tolist(), tree.col[chosen].tolist(), strict=True):
        apart = np.zeros(n)
        apart[s], apart[t] = 1.0, -1.0
        solved = conjugate_gradients(lambda v: multiply(*cells[:2], w, v), apart, scale, _SHARE, _STEPS)
        found.append((solved.energy, s, t))
    found.sort(key=lambda entry: (-entry[0], entry[1:]))
    names = np.unique(problem.merged, return_index=True)[1]
    links = []
    for resistance, s, t in found[:LINKS]:
        a, b = to_rows(counts.factors, [names[s], names[t]])
        links.append(Link(a, b, _count_shared_items(cells, w, s, t), float(resistance)))
    return tuple(links)


def _count_shared_items(cells: Cells, w: Floats, s: int, t: int) -> int:
    """Items with information under both factors."""
    item = np.repeat(np.arange(len(cells.offsets) - 1), np.diff(cells.offsets))
    one, other = (item[(cells.factor == factor) & (w > 0)] for factor in (s, t))
    return len(np.intersect1d(one, other, assume_unique=True))


@jit
def _list_stars(offsets: NDArray[np.int64], factor: Codes, w: Floats) -> tuple[Codes, Codes, Floats]:
    """For every item the links from its best-known factor to the others, with what they conduct."""
    a = np.empty(factor.shape[0], np.int32)
    b = np.empty(factor.shape[0], np.int32)
    conductance = np.empty(factor.shape[0])
    links = 0
    for item in range(offsets.shape[0] - 1):
        begin, end = offsets[item], offsets[item + 1]
        total = w[begin:end].sum()
        if total == 0.0:
            continue
        best = begin
        for cell in range(begin, end):
            if w[cell] > w[best]:
                best = cell
        for cell in range(begin, end):
            if cell != best and w[cell] > 0.0:
                a[links], b[links] = factor[best], factor[cell]
                conductance[links] = w[best] * (w[cell] / total)
                links += 1
    return a[:links], b[:links], conductance[:links]
