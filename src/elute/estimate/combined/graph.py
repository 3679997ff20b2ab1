"""What items shown under several factors say of propensities: ratios within components, and how each query moves them.

The likelihood is the conditional one given every item's clicks, which needs nothing but r(x)·o(t).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from elute.estimate.scored.conditional import ClickShares, add_up, fit_shares
from elute.estimate.scored.groups import keep_sharing, one_hot, sum_by
from elute.estimate.scored.rows import ScoredRows

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class GraphFit(NamedTuple):
    """`log_o`: by factor, at one scale a component. Rows (item, query, factor) of items that link factors: `item` and
    `query` coded, of `queries` in all. `inverse`: of the information on `log_o`."""

    log_o: Floats
    inverse: Floats
    item: Codes
    query: Codes
    factor: Codes
    shown: Floats
    clicked: Floats
    queries: int

    def measure(self, log_o: Floats) -> tuple[float, Floats, Floats]:
        """The log-likelihood of propensities, its slope and its information."""
        factors = len(log_o)
        share, total = self._share(log_o)
        value = float(self.clicked @ np.log(share))
        expected = share * total[self.item]
        spread = sparse.csr_array((share, (self.item, self.factor)), (len(total), factors))
        means = (spread.T @ sparse.diags_array(total) @ spread).toarray()
        information = np.diag(add_up(self.factor, expected, factors)) - means
        return value, add_up(self.factor, self.clicked - expected, factors), information

    def score(self, log_o: Floats) -> sparse.csr_array:
        """By query and factor, what its clicks add to the slope."""
        share, total = self._share(log_o)
        rest = self.clicked - share * total[self.item]
        spread = sparse.csr_array((share, (self.item, self.factor)), (len(total), len(log_o)))
        apart = one_hot(self.factor, len(log_o)) - spread[self.item]
        belongs = sparse.csr_array((rest, (self.query, np.arange(len(rest)))), (self.queries, len(rest)))
        return sparse.csr_array(belongs @ apart)

    def find_errors(self, component: Codes, clicked: Floats) -> Floats:
        """Standard errors of log(o / that of the component's factor with most clicks), by factor: those of independent
        clicks or of clusters of queries, whichever are larger. Few clusters would say too little."""
        rising = np.argsort(clicked, kind="stable")
        best = np.zeros(int(component.max()) + 1, np.int64)
        best[component[rising]] = rising
        moved = self.score(self.log_o)
        sandwich = self.inverse @ (moved.T @ moved).toarray() @ self.inverse
        both = [_contrast(one, best[component]) for one in (self.inverse, sandwich)]
        return np.asarray(np.sqrt(np.max(both, axis=0)))

    def _share(self, log_o: Floats) -> tuple[Floats, Floats]:
        """By row, its share of the clicks of its item; by item, these."""
        reach = self.shown * np.exp(log_o[self.factor])
        return reach / add_up(self.item, reach)[self.item], add_up(self.item, self.clicked)


def fit_graph(rows: ScoredRows, factors: int) -> GraphFit:
    """The fit; factors that nothing links stay at 0, with errors beyond measure."""
    queries = int(rows.query.max()) + 1
    (item, query, factor), shown, clicked = sum_by((rows.whole, rows.query, rows.factor), (queries, factors), rows)
    kept = keep_sharing(item, clicked)
    item, query, factor = (part[kept] for part in (item, query, factor))
    shown, clicked = shown[kept], clicked[kept]
    group = np.unique(item, return_inverse=True)[1].reshape(-1)
    linked = ClickShares(group, one_hot(factor, factors), shown, clicked)
    found = fit_shares(linked, np.zeros((factors, factors)))
    return GraphFit(found.coefficients, found.inverse, group, query, factor, shown, clicked, queries)


def find_known(graph: GraphFit, component: Codes, rows: ScoredRows, target: float) -> NDArray[np.bool_]:
    """By component: whether its items alone know all of its ratios to the target. One factor has none to know."""
    clicked = add_up(rows.factor, rows.clicked, len(component))
    errors = np.where(clicked > 0, graph.find_errors(component, clicked), 0.0)
    largest = np.zeros(int(component.max()) + 1)
    np.maximum.at(largest, component, errors)
    return largest <= target


def _contrast(covariance: Floats, reference: Codes) -> Floats:
    own = np.diag(covariance)
    return np.maximum(own + own[reference] - 2 * covariance[np.arange(len(own)), reference], 0.0)
