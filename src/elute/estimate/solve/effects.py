"""Newton's system where a formula ties propensities: log o = X·β in place of one unknown a factor.

The likelihood is concave in β as it is in log o, and its system is XᵀLX·δβ = Xᵀg. Only steps change: what they are
solved for is effects, what they are taken in is log o = X·δβ. Effects that the cells leave free stay at 0.

A prior's latent effects follow the factors, as elsewhere; here each of them is an effect, or one more unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsqr

from elute.estimate.solve.laplacian import DIRECT, LinearSolution, conjugate_gradients, grounded_laplacian, multiply
from elute.estimate.solve.problem import Floats
from elute.identify.effects.design import EffectDesign
from elute.identify.effects.span import Span

_TIGHT = 1e-14
_ROUNDS = 20_000


@dataclass(frozen=True, eq=False)
class EffectSpace:
    """X over the effects that are not free, by factor and then by latent effect. `kept`: their places among all."""

    x: csr_array
    kept: NDArray[np.int64]

    @classmethod
    def of(cls, design: EffectDesign, span: Span) -> EffectSpace:
        kept = np.flatnonzero(~span.free)
        return cls(csr_array(design.matrix[:, kept]), kept)

    def solve(
        self,
        offsets: NDArray[np.int64],
        factor: NDArray[np.int32],
        weight: Floats,
        prior: csr_array | None,
        b: Floats,
        scale: Floats,
        share: float,
        max_steps: int,
    ) -> LinearSolution:
        """As `laplacian.solve`, among steps that the formula allows."""
        x, right = self.x, self.x.T @ b
        if prior is not None and x.shape[1] <= DIRECT:
            n, matrix = int(factor.max(initial=-1)) + 1, prior.toarray()
            matrix[:n, :n] += grounded_laplacian(offsets, factor, weight, np.arange(n, dtype=np.int32), n)
            try:
                step = cho_solve(cho_factor(x.T @ (matrix @ x.toarray())), right)
            except LinAlgError:
                pass
            else:
                return LinearSolution(x @ step, float(right @ step), 1, True)

        def product(v: Floats) -> Floats:
            moved = x @ v
            image = multiply(offsets, factor, weight, moved)
            return np.asarray(x.T @ (image if prior is None else image + prior @ moved))

        found = conjugate_gradients(product, right, (x.power(2)).T @ scale, share, max_steps)
        return found._replace(x=x @ found.x)

    def project(self, log_o: Floats) -> Floats:
        """The nearest that the formula allows, but for one constant."""
        return np.asarray(self.x @ self.find_effects(log_o, np.zeros(len(log_o), np.int64), np.ones(len(log_o), bool)))

    def find_effects(self, log_o: Floats, group: NDArray[np.integer], some: NDArray[np.bool_]) -> Floats:
        """Effects, of those kept, that give these log propensities, each `group` at a scale of its own; by the factors
        in `some`."""
        chosen = np.flatnonzero(some)
        _, first, code = np.unique(group[chosen], return_index=True, return_inverse=True)
        reference = chosen[first][code]
        rows, right = self.x[chosen] - self.x[reference], log_o[chosen] - log_o[reference]
        return np.asarray(lsqr(rows, right, atol=_TIGHT, btol=_TIGHT, iter_lim=_ROUNDS)[0])
