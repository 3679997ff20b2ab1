"""A trained network as plain arrays, run by numpy alone: for where a ranker is used and there is no JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.ranking.normalise import LogStandard, split_rows

Arrays = Mapping[str, NDArray[Any]]
"""`weight_0, bias_0, weight_1, …`; `base` where scores are a product of vectors; `mean` and `sd` where raw features are
to be put on the scale the network was trained on."""


def numpy_scores(network: Arrays, features: ArrayLike) -> NDArray[np.float32]:
    """The scores of documents; a higher score ranks higher."""
    rows = np.asarray(features, np.float32)
    return np.concatenate([_scores(network, part) for part in split_rows(rows)])


def _scores(network: Arrays, x: NDArray[np.float32]) -> NDArray[np.float32]:
    if "mean" in network:
        x = LogStandard(network["mean"], network["sd"]).apply(x).astype(np.float32)
    last = max(int(name[7:]) for name in network if name.startswith("weight_"))
    for number in range(last + 1):
        x = x @ network[f"weight_{number}"] + network[f"bias_{number}"]
        x = x if number == last else np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
    return np.asarray(np.logaddexp(x, 0) @ network["base"] if "base" in network else x[:, 0], np.float32)
