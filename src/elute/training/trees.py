"""Boosted trees learnt from weighted clicks, by LightGBM.

The loss is that of the networks, -Σ target · log softmax(score) over the documents of a page, summed over pages: affine
in its targets, so that inverse propensity weighting is unbiased for trees as it is for networks. LightGBM gets its
gradient and the diagonal of its Hessian by document.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.auditing.ranking_metrics import ndcg
from elute.errors import EluteError, MissingExtra
from elute.kernels.jit import jit
from elute.progress import Progress, silent
from elute.ranking.data import RankingData
from elute.training.task import Task

Floats = NDArray[np.float64]

SETTINGS = {
    "objective": "custom",
    "num_leaves": 31,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}


class ClickedLists(NamedTuple):
    """The pages with a click, one after the other: the others add nothing to the loss."""

    offsets: NDArray[np.int64]
    document: NDArray[np.int32]
    target: Floats
    pages: int
    """With those without a click."""


class GrownTrees(NamedTuple):
    """Trees, and how they came about; `history`: (trees, loss, nDCG or click DCG or NaN) after every tree."""

    model: Any
    """A lightgbm.Booster."""
    trees: int
    """How many of them to use: those that validated best, or all."""
    history: list[tuple[int, float, float]]


def flatten_lists(documents: NDArray[np.int32], targets: NDArray[np.float32]) -> ClickedLists:
    """The lists of a task; in places without a document there is -1."""
    some = targets.sum(axis=1) > 0
    if not some.any():
        raise EluteError("the log has no click, so there is nothing to learn from")
    pages, documents, targets = len(documents), documents[some], targets[some]
    shown = documents >= 0
    offsets = np.concatenate(([0], np.cumsum(shown.sum(axis=1))))
    return ClickedLists(offsets, documents[shown], targets[shown].astype(np.float64), pages)


def softmax_derivatives(scores: Floats, lists: ClickedLists) -> tuple[float, Floats, Floats]:
    """The loss, a mean over pages; and by document its gradient and the diagonal of its Hessian, summed over pages."""
    gradient, hessian = np.zeros(len(scores)), np.zeros(len(scores))
    loss = _add_softmax(scores, *lists[:3], gradient, hessian)
    return float(loss) / lists.pages, gradient, hessian


@jit
def _add_softmax(
    scores: Floats,
    offsets: NDArray[np.int64],
    document: NDArray[np.int32],
    target: Floats,
    gradient: Floats,
    hessian: Floats,
) -> float:
    loss = 0.0
    for page in range(offsets.shape[0] - 1):
        first, last = offsets[page], offsets[page + 1]
        largest, total = -np.inf, 0.0
        for i in range(first, last):
            largest = max(largest, scores[document[i]])
            total += target[i]
        mass = 0.0
        for i in range(first, last):
            mass += np.exp(scores[document[i]] - largest)
        for i in range(first, last):
            above = scores[document[i]] - largest
            share = np.exp(above) / mass
            loss -= target[i] * (above - np.log(mass))
            gradient[document[i]] += total * share - target[i]
            hessian[document[i]] += total * share * (1 - share)
    return loss


class _Validation(NamedTuple):
    """Documents to validate on, and their scores so far."""

    name: str
    features: NDArray[np.float32]
    scores: Floats
    measure: Callable[[Floats], float]


def _make_validation(task: Task) -> _Validation | None:
    graded, clicked = task.validation, task.held_out
    if graded is not None:
        measure = partial(_measure_grades, graded)
        return _Validation("nDCG@10", graded.features, np.zeros(graded.n_documents), measure)
    if clicked is None:
        return None
    rows = clicked.rows
    return _Validation(clicked.name, clicked.features[rows], np.zeros(len(rows)), clicked.compare_scores)


def _measure_grades(graded: RankingData, scores: Floats) -> float:
    return ndcg(graded.grades, scores, graded.offsets, 10).mean


def grow(
    task: Task, *, trees: int, rate: float, seed: int, patience: int | None = None, progress: Progress = silent
) -> GrownTrees:
    """Grow trees one after the other; the number of them with the best nDCG@10 on the validation data is kept, or
    else with the best DCG of held-out clicks."""
    try:
        import lightgbm
    except ImportError as error:
        raise MissingExtra("`model='lightgbm'`", "LightGBM", "trees") from error
    lists = flatten_lists(task.pages.documents, task.compute_targets())
    kept, document = np.unique(lists.document, return_inverse=True)
    lists, seen = lists._replace(document=document.astype(np.int32)), task.features.values[kept]
    model = lightgbm.Booster(SETTINGS | {"learning_rate": rate, "seed": seed}, lightgbm.Dataset(seen))
    held, history, best, scores = _make_validation(task), [], (0, -1.0), np.zeros(len(kept))
    for number in range(1, trees + 1):
        if model.update(fobj=lambda now, _: softmax_derivatives(now, lists)[1:]):
            break
        scores += model.predict(seen, number - 1, 1)
        value = float("nan")
        if held is not None:
            held.scores[:] += model.predict(held.features, number - 1, 1)
            value = held.measure(held.scores)
        history.append((number, softmax_derivatives(scores, lists)[0], value))
        if held is None or value > best[1]:
            best = number, value
        progress("growing trees" if held is None else f"growing trees: {held.name} {value:.4f}", number, trees)
        if patience is not None and number - best[0] >= patience:
            break
    if not history:
        raise EluteError("no tree could be grown: too few documents have clicks; collect more, or use `model='linear'`")
    return GrownTrees(model, best[0], history)
