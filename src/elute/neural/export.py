"""A trained network as plain arrays; `elute.ranking.network` runs it where there is no JAX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elute._util.npz import write_npz
from elute.neural.learner import Learner, State
from elute.ranking.network import Arrays
from elute.ranking.network import numpy_scores as numpy_scores


def to_arrays(learner: Learner, state: State) -> dict[str, NDArray[np.float32]]:
    """The ranker: `weight_0, bias_0, weight_1, …` and, where scores are a product of vectors, `base`."""
    out: dict[str, NDArray[np.float32]] = {}
    for number, layer in enumerate(state.params["ranker"]):
        out |= {f"weight_{number}": np.asarray(layer["weight"]), f"bias_{number}": np.asarray(layer["bias"])}
    base = learner.base_vector(state)
    return out if base is None else out | {"base": np.asarray(base)}


def save(path: str | Path, network: Arrays) -> None:
    """Write the arrays as npz; `dict(np.load(path))` reads them."""
    write_npz(path, network)
