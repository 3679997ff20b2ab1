"""A trained network as plain arrays, and the few lines of numpy that run it where there is no JAX."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.neural.learner import Learner, State

Arrays = Mapping[str, NDArray[np.float32]]


def arrays(learner: Learner, state: State) -> dict[str, NDArray[np.float32]]:
    """The ranker: `weight_0, bias_0, weight_1, …` and, where scores are a product of vectors, `base`."""
    out: dict[str, NDArray[np.float32]] = {}
    for number, layer in enumerate(state.params["ranker"]):
        out |= {f"weight_{number}": np.asarray(layer["weight"]), f"bias_{number}": np.asarray(layer["bias"])}
    base = learner.base(state)
    return out if base is None else out | {"base": np.asarray(base)}


def save(path: str | Path, network: Arrays) -> None:
    """Write the arrays as npz; `dict(np.load(path))` reads them."""
    with Path(path).open("wb") as file:
        np.savez(file, allow_pickle=False, **network)


def numpy_scores(network: Arrays, features: ArrayLike) -> NDArray[np.float32]:
    """The scores of documents, in numpy alone."""
    x, last = np.asarray(features, np.float32), max(int(name[7:]) for name in network if name.startswith("weight_"))
    for number in range(last + 1):
        x = x @ network[f"weight_{number}"] + network[f"bias_{number}"]
        x = x if number == last else np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
    return np.logaddexp(x, 0) @ network["base"] if "base" in network else x[:, 0]
