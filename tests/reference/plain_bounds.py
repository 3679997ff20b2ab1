"""Bounds as linear programmes over log propensities, log relevances and the scale of given ratios.

Written from the statement alone: which limits there are and how the chance of error is split. Limits come from
scipy.special, parts from a closure of who can reach whom, extremes from `scipy.optimize.linprog`. Propensities and
their standard errors are taken as measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, inf, isfinite, log

import numpy as np
from scipy.optimize import brentq, linprog
from scipy.special import betaincinv, gammaincinv, ndtr, ndtri, stdtrit

Cell = tuple[int, int, int, int]
"""Item, factor, impressions, clicks."""


def find_parts(cells: list[Cell], factors: int) -> list[frozenset[int]]:
    """Sets of clicked factors that reach each other: both ways by an item clicked under both, one way by an item
    clicked at the first and shown at the second."""
    clicked = {f for _, f, _, c in cells if c}
    reach = np.eye(factors, dtype=bool)
    for item, a, _, c in cells:
        if c:
            for other, b, _, _ in cells:
                if other == item and b in clicked:
                    reach[a, b] = True
    for k in range(factors):
        reach |= reach[:, [k]] & reach[[k], :]
    return list({frozenset(b for b in clicked if reach[a, b] and reach[b, a]) for a in clicked})


class Programme:
    """Constraints lower ≤ row · x ≤ upper on x = (φ of factors, log r of items, scales), as inequalities."""

    def __init__(
        self,
        cells: list[Cell],
        factors: int,
        items: int,
        *,
        log_o: list[float],
        log_se: list[float],
        dispersion: float,
        effect: list[float],
        clusters: int | None,
        given: list[tuple[int, float, float]] = [],  # noqa: B006
    ) -> None:
        self.size = factors + items + 1
        self.rows: list[tuple[dict[int, float], float]] = []
        self.factors, self.items, self.part_of_item = factors, items, [-1] * items
        third = 0.05 / 3
        parts = find_parts(cells, factors)
        reference: dict[int, int] = {}
        for part in parts:
            for f in part:
                reference[f] = next(s for s in part if log_se[s] == 0)
        free = sum(1 for f in reference if reference[f] != f) + sum(1 for *_, se in given if se > 0)
        error = third / (2 * max(free, 1))
        z = -ndtri(error)
        if clusters is not None:
            z = -stdtrit(clusters - 1, error) * 1.96 / stdtrit(clusters - 1, 0.975)

        def half(se: float) -> float:
            if se == 0:
                return 0.0
            limit = gammaincinv(1 / se**2, ndtr(-z))
            return log(1 / se**2) - log(limit) if limit > 0 else inf

        for f in range(factors):
            self.at_most({f: 1}, 0.0)
        for f, r in reference.items():
            if f != r:
                self.between({f: 1, r: -1}, log_o[f] - half(log_se[f]), log_o[f] + half(log_se[f]))
        for f, value, se in given:
            self.between({f: 1, self.size - 1: -1}, value - half(se), value + half(se))
        shown, clicks = np.zeros(factors), np.zeros(factors)
        of: dict[int, list[Cell]] = {}
        for cell in cells:
            shown[cell[1]] += cell[2]
            clicks[cell[1]] += cell[3]
            of.setdefault(cell[0], []).append(cell)
        home = {x: next((p for p in parts for _, f, _, c in own if c and f in p), None) for x, own in of.items()}
        vain: dict[tuple[frozenset[int], int], list[tuple[int, float]]] = {}
        for x, own in of.items():
            tied = home[x]
            if tied is not None:
                most = sum(n * exp(log_o[f] + half(log_se[f])) for _, f, n, _ in own if f in tied)
                total = sum(c for *_, c in own)
                for _, f, n, _ in own:
                    if f not in tied:
                        vain.setdefault((tied, f), []).append((total, n / most if most < inf else 0.0))
        tests = factors + len(vain)
        for f in range(factors):
            d = max(dispersion, effect[f])
            low = d * _lower(clicks[f] / d, shown[f] / d, third / tests)
            if low > 0:
                self.at_most({f: -1}, -log(low / shown[f]))
        limit = {}
        for (part, f), told in vain.items():
            bound = -log(third / tests) * dispersion
            if any(z for _, z in told):
                solve = lambda v: sum(c * np.log1p(z * exp(v)) for c, z in told) - bound  # noqa: E731, B023
                limit[part, f] = exp(brentq(solve, -50, 200, xtol=1e-13, rtol=1e-13))
                r = reference[next(iter(part))]
                self.at_most({f: 1, r: -1}, log(limit[part, f]))
        every = float(shown.sum())
        for x, own in of.items():
            self._limit_item(x, own, home[x], parts, reference, log_o, log_se, half, limit, dispersion, third / every)

    def _limit_item(self, x, own, part, parts, reference, log_o, log_se, half, limit, d, share):
        n, c = sum(cell[2] for cell in own), sum(cell[3] for cell in own)
        low, high = (d * side(c / d, n / d, share * n / 2) for side in (_lower, _upper))
        if part is None:  # shown most, of clicked factors if there are
            seen = sorted(own, key=lambda cell: (not any(cell[1] in p for p in parts), -cell[2], cell[1]))[0][1]
            part = next((p for p in parts if seen in p), None)
        me = self.factors + x
        self.at_most({me: 1}, 0.0)
        if len(own) == 1:
            anchor, most, least = own[0][1], n, n
        elif part is None:
            return
        else:
            anchor = reference[next(iter(part))]
            most = sum(
                m * (exp(log_o[f] + half(log_se[f])) if f in part else limit.get((part, f), inf)) for _, f, m, _ in own
            )
            least = sum(m * exp(log_o[f] - half(log_se[f])) for _, f, m, _ in own if f in part)
        if low > 0 and most < inf:
            self.at_most({me: -1, anchor: -1}, log(most) - log(low))
        if least > 0:
            self.at_most({me: 1, anchor: 1}, log(high) - log(least))

    def at_most(self, row: dict[int, float], bound: float) -> None:
        if isfinite(bound):
            self.rows.append((row, bound))

    def between(self, row: dict[int, float], low: float, high: float) -> None:
        self.at_most(row, high)
        self.at_most({at: -value for at, value in row.items()}, -low)

    def order(self, pairs: Iterable[tuple[int, int]]) -> None:
        for below, above in pairs:
            self.at_most({below: 1, above: -1}, 0.0)

    def largest(self, a: int, b: int) -> float | None:
        """Of x(a) - x(b); None where no x fulfils the constraints."""
        matrix = np.zeros((len(self.rows), self.size))
        for k, (row, _) in enumerate(self.rows):
            for at, value in row.items():
                matrix[k, at] += value
        aim = np.zeros(self.size)
        aim[a] -= 1
        aim[b] += 1
        found = linprog(aim, A_ub=matrix, b_ub=[bound for _, bound in self.rows], bounds=(None, None), method="highs")
        if found.status == 2:
            return None
        if found.status in (3, 4):  # unbounded, or one of the two: HiGHS does not always tell
            still = linprog(0 * aim, A_ub=matrix, b_ub=[bound for _, bound in self.rows], bounds=(None, None))
            return inf if still.status == 0 else None
        return float(-found.fun)


def _lower(c: float, n: float, error: float) -> float:
    return n * betaincinv(c, n - c + 1, error) if c > 0 else 0.0


def _upper(c: float, n: float, error: float) -> float:
    return n * betaincinv(c + 1, n - c, 1 - error) if c < n else n
