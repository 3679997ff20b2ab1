"""A Beta prior on what documents do, whose mean depends on where they were shown, by marginal likelihood.

    r(x) ~ Beta(s(x)·m(x), s(x)·(1 - m(x))),    logit m(x) = level + slope·z(x),    log s(x) = log s + growth·z(x)

z is the mean over the document's impressions of the logarithm of its rank, from the mean of all. A ranker shows good
documents on top. A prior that is the same for all would take documents at a rank for a fair sample, and lay their
quality to examination; and a fit that frees every document instead has nothing to hold on to where most have one
impression. This is Mundlak's device (1978): z stands for what the ranker knows, so that examinations rest on documents
seen at several ranks as far as there are any. Documents further down are also more alike than those on top, which
`growth` is for: where a strong ranker hardly moves its documents, the odd good one at a low rank tells examination
there, and how odd it is hangs on how alike they are. It serves examinations alone: documents themselves are drawn
towards the mean of their ranks with one strength at all ranks, lest those at low ranks say little but their rank. Where
no document moves, the priors of slope and growth, N(0, 1), keep both at 0, and examinations are click rates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.clicks.base.prior import Prior, pseudo_counts, rate, typical_rate

Floats = NDArray[np.float64]

SMALLEST, LARGEST = 0.02, 1e4
"""Of s: beyond, documents are all 0 or 1, or all alike."""

LOG_BOUNDS = ((-9.0, 9.0), (-4.0, 4.0), (float(np.log(SMALLEST)), float(np.log(LARGEST))), (-3.0, 3.0))
"""Of level, slope, log s and growth."""

_SAMPLE = 5_000
"""Documents, evenly spaced, that three numbers are fitted to."""

_ROUNDS, _AGAIN = 100, 5
"""Of the search; the latter from where an earlier one ended."""


class RankedPrior(NamedTuple):
    """`level`, `slope`, `strength` (s) and `growth`; s = 0: no prior, `level` then only says what a typical document
    is."""

    level: float
    slope: float
    strength: float
    growth: float = 0.0

    @classmethod
    def of_numbers(cls, x: Floats) -> RankedPrior:
        """From level, slope, log s and growth."""
        return cls(float(x[0]), float(x[1]), float(np.exp(x[2])), float(x[3]))

    @property
    def numbers(self) -> Floats:
        """Those that a search starts from."""
        return np.array([self.level, self.slope, np.log(np.clip(self.strength, SMALLEST, LARGEST)), self.growth])

    def logits(self, z: Floats) -> Floats:
        """Of m."""
        return np.asarray(self.level + self.slope * z)

    def counts(self, z: Floats) -> tuple[Floats, Floats]:
        """a and b, by document."""
        mean, s = 1.0 / (1.0 + np.exp(-self.logits(z))), self.strength * np.exp(self.growth * z)
        return np.maximum(s * mean, 1e-12), np.maximum(s * (1.0 - mean), 1e-12)

    def to_dict(self) -> dict[str, float]:
        """Mean at the average rank, slope of its log odds with log rank, and strength in impressions."""
        return {"mean": 1.0 / (1.0 + float(np.exp(-self.level))), "slope": self.slope, "strength": self.strength}


def fit_ranked(happened: Floats, trials: Floats, z: Floats, start: RankedPrior, rounds: int) -> RankedPrior:
    """The prior, without growth, that makes `happened` of `trials`, by document, likeliest, whole or not. `rounds`: at
    most."""
    from scipy.optimize import minimize
    from scipy.special import digamma, gammaln

    shown = np.flatnonzero(trials > 1e-9)
    if not len(shown):
        return start
    shown = shown[np.unique(np.linspace(0, len(shown) - 1, min(len(shown), _SAMPLE)).astype(np.int64))]
    h, t, at = happened[shown], trials[shown], z[shown]
    h = np.clip(h, 0.0, t)

    def loss(x: Floats) -> tuple[float, Floats]:
        s, mean = np.exp(x[2]), 1.0 / (1.0 + np.exp(-(x[0] + x[1] * at)))
        a, b = np.maximum(s * mean, 1e-12), np.maximum(s * (1.0 - mean), 1e-12)
        value = gammaln(a + h) - gammaln(a) + gammaln(b + t - h) - gammaln(b) + gammaln(s) - gammaln(s + t)
        both = digamma(s) - digamma(s + t)
        of_a, of_b = digamma(a + h) - digamma(a) + both, digamma(b + t - h) - digamma(b) + both
        of_logit = (of_a - of_b) * s * mean * (1.0 - mean)
        slope = [of_logit.sum(), float(of_logit @ at) - x[1], float(of_a @ a + of_b @ b)]
        return -float(value.sum()) + 0.5 * float(x[1]) ** 2, -np.array(slope)

    options, first = {"maxiter": rounds}, start.numbers[:3]
    found: Any = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=LOG_BOUNDS[:3], options=options)
    return RankedPrior.of_numbers(np.append(found.x, 0.0))


def choose_prior(
    prior: Prior, happened: Floats, trials: Floats, z: Floats, start: RankedPrior | None = None
) -> RankedPrior:
    """The prior as given, the same at all ranks, or fitted to `happened` of `trials` by document."""
    given = None if prior == "fitted" else prior
    added = pseudo_counts(given, happened, trials)
    mean = min(max(typical_rate(happened, trials, added), 1e-12), 1.0 - 1e-12)
    plain = RankedPrior(float(np.log(mean) - np.log1p(-mean)), 0.0, added.a + added.b)
    if prior != "fitted":
        return plain
    return fit_ranked(happened, trials, z, start or plain._replace(strength=2.0), _ROUNDS if start is None else _AGAIN)


def update(happened: Floats, trials: Floats, prior: RankedPrior, z: Floats) -> Floats:
    """Posterior means by document; the prior's where nothing happened, NaN where there is none either."""
    if prior.strength == 0.0:
        return rate(happened, trials, pseudo_counts(None, happened, trials))
    a, b = prior.counts(z)
    return np.asarray((happened + a) / (trials + a + b))
