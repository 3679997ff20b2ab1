"""Result pages in front of a user, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.kernels.jit import jit


@dataclass(frozen=True, eq=False)
class ShownPages:
    """Pages (rows) of at most `width` results (columns), padded on the right; what the padding holds is never read.

    `relevance`: P(relevant) of what stands at every place (attraction, for users that tell the two apart).
    `length`: results on each page. `satisfaction`: where a user model has it and it does not follow from
    relevance. `context`: the context id of every result, where there are contexts.
    """

    relevance: NDArray[np.float64]
    length: NDArray[np.int64]
    satisfaction: NDArray[np.float64] | None = None
    context: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        if self.relevance.ndim != 2 or self.length.shape != self.relevance.shape[:1]:
            raise EluteError(
                f"relevance of shape {self.relevance.shape} and length of shape {self.length.shape} are not "
                "(pages, width) and (pages,); give one row and one length a page"
            )
        if self.length.size and not 0 <= self.length.min() <= self.length.max() <= self.width:
            raise EluteError(f"pages are {self.width} wide, so every length must lie between 0 and {self.width}")
        for name, values in (("satisfaction", self.satisfaction), ("context", self.context)):
            if values is not None and values.shape != self.relevance.shape:
                raise EluteError(f"{name} has shape {values.shape}, relevance {self.relevance.shape}; they must agree")
        for name, values in (("relevance", self.relevance), ("satisfaction", self.satisfaction)):
            if values is not None and (page := _find_improbable(values, self.length)) >= 0:
                raise EluteError(f"{name} on page {page} is not between 0 and 1; give probabilities")

    @property
    def pages(self) -> int:
        return int(self.relevance.shape[0])

    @property
    def width(self) -> int:
        return int(self.relevance.shape[1])

    @property
    def longest(self) -> int:
        """Results on the longest page."""
        return int(self.length.max(initial=0))

    @property
    def mask(self) -> NDArray[np.bool_]:
        """True where a result is shown."""
        return np.asarray(np.arange(self.width) < self.length[:, None])


@jit
def _find_improbable(values: NDArray[np.float64], length: NDArray[np.int64]) -> int:
    """The first page that shows a value outside [0, 1], or NaN; -1 if none does."""
    for page in range(length.shape[0]):
        for place in range(length[page]):
            if not 0.0 <= values[page, place] <= 1.0:
                return page
    return -1
