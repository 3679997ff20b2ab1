"""What a fit on counts or by EM knows of documents, as parameters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.clicks.base.ranked_prior import RankedPrior
from elute.clicks.structure.attraction import mark_unseen
from elute.clicks.structure.towers import Params, to_embedding


def attraction_params(
    attraction: NDArray[np.float64], shown: NDArray[np.bool_], prior: RankedPrior, centre: float, ranks: int
) -> Params:
    """`attraction` by document, NaN where nothing is known. One that was never shown is as the prior says of the rank
    it then stands at; `centre`: the mean log rank that the prior counts from."""
    typical = 1.0 / (1.0 + np.exp(-prior.level))
    offset = prior.slope * (np.log1p(np.arange(ranks)) - centre)
    known = np.where(shown, attraction, np.nan)
    return {"attraction": to_embedding(known, float(typical)), "ranked": mark_unseen(~shown, offset)}
