"""A Gaussian copula within a grade: the parametric estimate, exact where dependence is that of a Gaussian pair.

Information is -½ ln(1 - r²), r the correlation of normal scores. It sees monotone dependence only.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from elute.auditing.cmip.local import Floats, Local, standardise
from elute.auditing.cmip.strata import Ints, Stratum


def copula(stratum: Stratum) -> Local:
    """Log ratios of the fitted Gaussian to the product of its margins, less the bias of r², 1 / (n - 1)."""
    u, v = (standardise(normal_scores(rank)) for rank in (stratum.x, stratum.y))
    # Two rankings that agree wholly have no finite information; n documents cannot show an r closer to 1 than this.
    largest = 1 - 1 / stratum.n**2
    r = float(np.clip(np.mean(u * v), -largest, largest))
    quadratic = (u**2 + v**2 - 2 * r * u * v) / (1 - r**2) - u**2 - v**2
    return Local(-0.5 * np.log1p(-(r**2)) - 0.5 * (quadratic - quadratic.mean()) - 0.5 / (stratum.n - 1))


def normal_scores(rank: Ints) -> Floats:
    """The normal quantiles of ranks."""
    return np.asarray(ndtri((rank + 0.5) / len(rank)), np.float64)
