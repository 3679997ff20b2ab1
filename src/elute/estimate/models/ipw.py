"""Relevance from given propensities: inverse propensity weighting and its affine form (limits paper, Eq. 6).

A click probability α_t·r(x) + β_t is turned round impression by impression: relevance is the mean over an item's
impressions of f(c, t) = (c - β_t)/α_t (Definition 5.2); with β = 0 that is inverse propensity weighting. It is
unbiased, and so consistent (Theorem 5.4), if α and β are the true ones, and for no click behaviour that is not
affine in relevance (Theorem 5.5). Where a β is overlooked, the estimate goes to r + β/α.

Small α make large weights. Three remedies, with a_t for what the paper calls the clipped α:

- clipping: a_t = max(α_t, τ). Of r, it leaves the share m = Σ n·(α/a) / Σ n for ever, unless τ falls with the
  impressions (Section 5.2). The paper has τ ∝ 1/√|D_q|, where D_q is what the estimate averages over; here that
  is the item's own impressions, so "auto" is τ = 1/√n of the item. The log's impressions would not do: they grow
  with other items, and so would take the clip away from items whose own estimate is as noisy as before.
- self-normalisation: divide by what the weights are expected to add up to, not by the number of impressions. An
  impression is observed with probability α_t and then weighs 1/a_t, so the sum is expected to be Σ n·(α/a), and

      r̂ = Σ (c - n·β)/a  /  Σ n·(α/a).

  This divides by m: whatever τ is, the estimate is unbiased. (Dividing by Σ n/a, or by the weights of the clicks
  alone, is not even consistent: neither goes to n.) Without clipping it changes nothing; with τ ≥ every α it is
  clicks / Σ n·α, which is the most likely relevance where clicks are rare (Poisson).
- policy-awareness: the α of an item is its mean ᾱ = Σ n·α / n over the factors that the logging policy gave it, as
  counted in the log, and r̂ = (Σ c - n·β) / (n·max(ᾱ, τ)). Factors of propensity 0 are allowed: an item need only
  be seen somewhere (item-selection bias). With the policy counted in the log, this is self-normalisation at its
  largest τ.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.counts import Amounts
from elute.errors import EluteError
from elute.estimate.models.base import Estimator, Solution
from elute.estimate.models.given import OFFSET, PROPENSITY, Given, match_values, refuse_factors
from elute.estimate.solve.problem import Codes, Floats, MergingPlan, Problem, total_by_item
from elute.kernels.jit import jit
from elute.log import LogSource
from elute.options.takes import takes
from elute.progress import Progress, silent

Clip = float | Literal["auto"] | None


class _Counterfactual(Estimator):
    """What both have in common. The scale is the given one, for all components alike: known propensities place
    them on one scale. Relevance may leave [0, 1]: forced back, it would no longer be unbiased.

    `log_se` of relevance is the binomial error of its logarithm with α and β held fixed. Their own errors are not
    in it, even where the table has a `log_se`: they are correlated from factor to factor, which a table does not
    show. That of a propensity is 0.
    """

    propensities_are = "given"

    @takes()
    def __init__(
        self,
        *,
        propensities: Given,
        clip: Clip = None,
        self_normalised: bool = False,
        policy_aware: bool = False,
        progress: Progress = silent,
    ) -> None:
        super().__init__(progress=progress)
        self.propensities = propensities
        self.clip = clip
        self.self_normalised = self_normalised
        self.policy_aware = policy_aware

    @abstractmethod
    def _read_offsets(self, factors: pa.Table) -> Floats:
        """β of every factor."""

    def fit(self, source: LogSource, plan: MergingPlan | None = None, *, allow_unidentified: bool = True) -> Self:
        """Estimate relevance from a log or its counts. Known propensities join components; a merge plan is for
        estimated ones, and refused."""
        if plan is not None:
            raise EluteError("propensities are given here; use the merge plan in the fit that they come from")
        return super().fit(source, allow_unidentified=True)

    def _rescale(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        """As given: known propensities put all components on one scale."""
        return propensity, relevance

    def _solve(self, problem: Problem) -> Solution:
        alpha = match_values(problem.factors, self.propensities, PROPENSITY)
        self._check(problem.factors, alpha)
        self._beta = self._read_offsets(problem.factors)
        r, _ = self._weigh_items(problem, alpha)
        unseen = int(np.isnan(r).sum())
        reason = f"{unseen:,} items were shown only where the propensity is 0" if unseen else ""
        value = _log_likelihood(*problem.cells, alpha, self._beta, r)
        return Solution(alpha, r, value, 1, not reason, reason)

    def _check(self, factors: pa.Table, alpha: Floats) -> None:
        refuse_factors(factors, alpha < 0, "the propensity is below 0 for", "give numbers above 0")
        if not self.policy_aware:
            then = "leave them out of the log, or pass `policy_aware=True`"
            refuse_factors(factors, alpha == 0, "the propensity is 0 for", then)

    def _weigh_items(self, problem: Problem, alpha: Floats) -> tuple[Floats, Floats]:
        cells = problem.cells
        if self.clip == "auto":
            least = 1 / np.sqrt(total_by_item(cells.offsets, cells.impressions))
        else:
            least = np.full(problem.n_items, float(self.clip or 0.0))
        return _weigh(*cells, alpha, self._beta, least, self.self_normalised, self.policy_aware)

    def _errors(self, problem: Problem, propensity: Floats, relevance: Floats) -> tuple[Floats, Floats]:
        _, variance = self._weigh_items(problem, propensity)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.zeros(problem.n_factors), np.where(relevance > 0, np.sqrt(variance) / relevance, np.nan)


class IPW(_Counterfactual):
    """Relevance of items given p = r(x)·o(t), with o taken as known: the mean of c/o over an item's impressions.

    `propensities`: o, by factor of the counts, or a table with the bias columns and `propensity` (such as
    `propensities.parquet` of `elute fit`). `clip`: τ; None does not clip. `self_normalised`, `policy_aware`: see
    this module's text.
    """

    def _read_offsets(self, factors: pa.Table) -> Floats:
        return np.zeros(factors.num_rows)


class AffineIPW(_Counterfactual):
    """Relevance of items given p = α_t·r(x) + β_t, with α and β taken as known. β is `offset_`.

    `propensities`: α, by factor of the counts, or a table with the bias columns, `propensity` and `offset` (such as
    the one `elute.Affine` gives). `offsets`: β by factor, or such a table; None: the table of `propensities`.
    The rest as for `IPW`.
    """

    has_posteriors = False

    @takes()
    def __init__(
        self,
        *,
        propensities: Given,
        offsets: Given | None = None,
        clip: Clip = None,
        self_normalised: bool = False,
        policy_aware: bool = False,
        progress: Progress = silent,
    ) -> None:
        super().__init__(
            propensities=propensities,
            clip=clip,
            self_normalised=self_normalised,
            policy_aware=policy_aware,
            progress=progress,
        )
        self.offsets = offsets

    def _read_offsets(self, factors: pa.Table) -> Floats:
        given = self.propensities if self.offsets is None else self.offsets
        if self.offsets is None and not isinstance(given, pa.Table):
            raise EluteError("no offsets: give `offsets=` as an array too, or one table with 'propensity' and 'offset'")
        return match_values(factors, given, OFFSET)

    @property
    def offset_(self) -> Floats:
        """β by factor."""
        return self._beta

    @property
    def propensities_(self) -> pa.Table:
        """Bias columns, `component, propensity, log_se, offset`; one row a factor."""
        return super().propensities_.append_column(OFFSET, pa.array(self.offset_))


@jit
def _weigh(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    alpha: Floats,
    beta: Floats,
    least: Floats,
    normalised: bool,
    policy_aware: bool,
) -> tuple[Floats, Floats]:
    """r̂ of every item and its variance, from p = α·r + β within [0, n/(n+1)]; NaN where no α is above 0.

    The r of the variance is the normalised one: p is not to be clipped."""
    relevance = np.full(offsets.shape[0] - 1, np.nan)
    variance = np.full(offsets.shape[0] - 1, np.nan)
    for item in range(relevance.shape[0]):
        begin, end = offsets[item], offsets[item + 1]
        shown = 0.0
        reach = 0.0
        for cell in range(begin, end):
            shown += impressions[cell]
            reach += impressions[cell] * alpha[factor[cell]]
        if reach == 0.0:
            continue
        gained = 0.0
        expected = 0.0
        for cell in range(begin, end):
            t = factor[cell]
            n = float(impressions[cell])
            weight = 1.0 / max(reach / shown if policy_aware else alpha[t], least[item])
            gained += weight * (float(clicks[cell]) - n * beta[t])
            expected += weight * n * alpha[t]
        total = expected if normalised else shown
        r = gained / expected
        spread = 0.0
        for cell in range(begin, end):
            t = factor[cell]
            n = float(impressions[cell])
            weight = 1.0 / max(reach / shown if policy_aware else alpha[t], least[item])
            p = min(max(alpha[t] * r + beta[t], 0.0), n / (n + 1.0))
            spread += weight**2 * n * p * (1.0 - p)
        relevance[item] = gained / total
        variance[item] = spread / total**2
    return relevance, variance


@jit
def _log_likelihood(
    offsets: NDArray[np.int64],
    factor: Codes,
    impressions: Amounts,
    clicks: Amounts,
    alpha: Floats,
    beta: Floats,
    relevance: Floats,
) -> float:
    """Σ c·log p + (n - c)·log(1 - p) over items with an estimate; -inf where p is impossible: it is not bounded."""
    total = 0.0
    for item in range(relevance.shape[0]):
        if math.isnan(relevance[item]):
            continue
        for cell in range(offsets[item], offsets[item + 1]):
            p = alpha[factor[cell]] * relevance[item] + beta[factor[cell]]
            c = float(clicks[cell])
            s = float(impressions[cell]) - c
            if p < 0.0 or p > 1.0 or (p == 0.0 and c > 0.0) or (p == 1.0 and s > 0.0):
                return -math.inf
            total += (c * math.log(p) if c > 0.0 else 0.0) + (s * math.log1p(-p) if s > 0.0 else 0.0)
    return total
