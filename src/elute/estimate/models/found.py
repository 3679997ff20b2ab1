"""What a fit of the position-based model finds on its way."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elute.cells.counts import Cells
from elute.estimate.solve.problem import Floats


class Priors(TypedDict):
    """What a fit was held by: strengths by name, and the `a` and `b` of the Beta prior; None where there was none."""

    smooth: dict[str, float] | None
    relevance: dict[str, float] | None


class Factors(NamedTuple):
    """Propensities at some scale; `cells` are those that say something of relevance. `apart` marks the factors
    that have no finite ratio to the others of their component, `lost` their items."""

    o: Floats
    cells: Cells
    apart: NDArray[np.bool_]
    lost: NDArray[np.bool_]
    iterations: int
    reason: str


class PriorFit(NamedTuple):
    """Propensities, the strengths of the prior on them and the root of its precision; None where there was none."""

    factors: Factors
    strengths: dict[str, float] | None
    root: csr_array | None
