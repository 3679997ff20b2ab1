"""Off-policy selection: which model to take by what is known before it is deployed (Table 2 of the CMIP paper)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.errors import EluteError


class Strategy(NamedTuple):
    """Among the models that are in the top four by every metric of `top`, the best by `best`."""

    top: tuple[str, ...]
    best: str


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "PPL": Strategy((), "perplexity"),
        "nDCG": Strategy((), "ndcg"),
        "top-4 nDCG: PPL": Strategy(("ndcg",), "perplexity"),
        "top-4 PPL: nDCG": Strategy(("perplexity",), "ndcg"),
        "CMIP": Strategy((), "cmip"),
        "top-4 CMIP: PPL": Strategy(("cmip",), "perplexity"),
        "top-4 CMIP: nDCG": Strategy(("cmip",), "ndcg"),
        "top-4 CMIP, top-4 nDCG: PPL": Strategy(("cmip", "ndcg"), "perplexity"),
        "top-4 CMIP, top-4 PPL: nDCG": Strategy(("cmip", "perplexity"), "ndcg"),
    }
)
"""The nine of Table 2, in its order. Perplexity and CMIP are better low, nDCG high."""


def select(perplexity: ArrayLike, ndcg: ArrayLike, cmip: ArrayLike) -> dict[str, int]:
    """The index of the model that each strategy takes; of equals the first.

    Where no model is in the top four by both metrics, the best of all by the last one is taken (section 6.3).
    """
    # Signs such that low is better throughout.
    cost = {
        "perplexity": np.asarray(perplexity, np.float64),
        "ndcg": -np.asarray(ndcg, np.float64),
        "cmip": np.asarray(cmip, np.float64),
    }
    shapes = {values.shape for values in cost.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1 or next(iter(shapes)) == (0,):
        raise EluteError("perplexity, ndcg and cmip must have one value for each model")
    if any(np.isnan(values).any() for values in cost.values()):
        raise EluteError("a model without perplexity, ndcg or cmip (NaN) cannot be selected from; leave it out")
    return {name: _select_one(strategy, cost) for name, strategy in STRATEGIES.items()}


def regret(out_of_distribution: ArrayLike, selected: int) -> float:
    """What taking `selected` loses: its perplexity under the policy to come, less that of the best model."""
    values = np.asarray(out_of_distribution, np.float64)
    return float(values[selected] - values.min())


def _select_one(strategy: Strategy, cost: Mapping[str, NDArray[np.float64]]) -> int:
    candidates = np.ones(len(cost[strategy.best]), np.bool_)
    for metric in strategy.top:
        first = np.zeros_like(candidates)
        first[np.argsort(cost[metric], kind="stable")[:4]] = True
        candidates &= first
    if not candidates.any():
        candidates[:] = True
    return int(np.argmin(np.where(candidates, cost[strategy.best], np.inf)))
