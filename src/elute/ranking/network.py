"""A trained network as plain arrays, run by numpy alone: for where a ranker is used and there is no JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.door.fields import Damaged
from elute.ranking.normalise import LogStandard, split_rows

Arrays = Mapping[str, NDArray[Any]]
"""`weight_0, bias_0, weight_1, …`; `base` where scores are a product of vectors; `mean` and `sd` where raw features are
to be put on the scale the network was trained on."""


def numpy_scores(network: Arrays, features: ArrayLike) -> NDArray[np.float32]:
    """The scores of documents; a higher score ranks higher."""
    rows = np.asarray(features, np.float32)
    return np.concatenate([_scores(network, part) for part in split_rows(rows)])


def require_network(network: Arrays, n_features: int) -> None:
    """`Damaged` where arrays are not those of a network of so many features: layer by layer as wide as the one before,
    all of numbers."""
    rest, width = dict(network), n_features
    for name in ("mean", "sd") if "mean" in rest or "sd" in rest else ():
        _require_shape(rest, name, (n_features,))
    layer = 0
    while f"weight_{layer}" in rest:
        wide = rest[f"weight_{layer}"].shape[1] if rest[f"weight_{layer}"].ndim == 2 else 0
        _require_shape(rest, f"weight_{layer}", (width, wide))
        _require_shape(rest, f"bias_{layer}", (wide,))
        width, layer = wide, layer + 1
    if "base" in rest:
        _require_shape(rest, "base", (width,))
    elif layer == 0 or width != 1:
        raise Damaged(f"it is not a network of the {n_features} features of the ranker")
    if rest:
        raise Damaged(f"'{next(iter(rest))}' does not belong there")


def _require_shape(arrays: dict[str, NDArray[Any]], name: str, shape: tuple[int, ...]) -> None:
    """Take an array out, which must be of this shape and finite."""
    array = arrays.pop(name, None)
    if array is None or array.shape != shape or not array.size:
        raise Damaged(f"'{name}' is not an array of the shape {shape}")
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        raise Damaged(f"'{name}' holds what are not numbers")


def _scores(network: Arrays, x: NDArray[np.float32]) -> NDArray[np.float32]:
    if "mean" in network:
        x = LogStandard(network["mean"], network["sd"]).apply(x).astype(np.float32)
    last = max(int(name[7:]) for name in network if name.startswith("weight_"))
    for number in range(last + 1):
        x = x @ network[f"weight_{number}"] + network[f"bias_{number}"]
        x = x if number == last else np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
    return np.asarray(np.logaddexp(x, 0) @ network["base"] if "base" in network else x[:, 0], np.float32)
