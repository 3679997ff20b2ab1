"""A session click model fitted to the pages of a log."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.io.sessions import SessionParts, Vocabulary
from elute.log import ClickLog
from elute.progress import Progress, silent
from elute.sessions.log import iterate_parts, open_pages, read_pages

if TYPE_CHECKING:
    from elute.clicks.base.model import ClickModel
    from elute.clicks.sessions import Sessions

_NAMED = 10
"""Probabilities at 0 or 1."""

_HELD_OUT = 0.1
"""Of the sessions, to stop training by."""

_STEPS, _SMALLEST, _PATIENCE = 100, 64, 2
"""Steps in an epoch of a short log, made by smaller batches, though not below the smallest: held-out likelihood is
looked at once an epoch, and training stops after so many without a better one."""


@dataclass(frozen=True, eq=False)
class SessionFit:
    """`shown` and `clicks` are by document; `summary` is what `elute fit --json` prints."""

    model: ClickModel[Any]
    vocabulary: Vocabulary
    shown: NDArray[np.int64]
    clicks: NDArray[np.int64]
    summary: dict[str, Any]


def fit_log(
    log: ClickLog,
    name: str,
    *,
    seed: int = 0,
    max_iter: int | None = None,
    progress: Progress = silent,
) -> SessionFit:
    """Fit the model of this name. `max_iter`: epochs at most, of models
    that are trained by gradients; the others are fitted until nothing changes."""
    from elute.clicks import BY_GRADIENTS

    if max_iter is not None and name not in BY_GRADIENTS:
        raise EluteError(f"model '{name}' has no `max_iter=`; it is fitted until it converges")
    with open_pages(log, log.roles.session) as (path, columns):
        source, vocabulary = read_pages(path, columns)
        shown, clicks, ranks, sessions = _tally_pages(source, vocabulary.n_documents)
        model = build_model(name, vocabulary.n_documents, ranks, vocabulary.n_queries)
        began = time.perf_counter()
        if name in BY_GRADIENTS:
            _train(model, source, sessions, seed, max_iter, progress)
        else:
            model.fit(source, progress=progress)
        seconds = time.perf_counter() - began
        likelihood = sum(float(model.log_likelihood(part).sum()) for part in iterate_parts(source))
    summary = {
        "model": name,
        "iterations": model.iterations_,
        "converged": model.converged_,
        "reason": _explain(model, name in BY_GRADIENTS, likelihood),
        "log_likelihood": likelihood if math.isfinite(likelihood) else None,
        "seconds": seconds,
        "sessions": sessions,
        "ranks": ranks,
        "priors": vars(model).get("priors_"),
        "at_boundary": _describe_boundary(model.boundary_),
    }
    return SessionFit(model, vocabulary, shown, clicks, summary)


def build_model(name: str, documents: int, ranks: int, queries: int) -> ClickModel[Any]:
    """An unfitted model; only NCM asks for queries."""
    from elute.clicks import model_of

    given: dict[str, Any] = {"queries": queries} if name == "ncm" else {}
    return model_of(name)(documents, ranks, **given)


def _describe_boundary(names: list[str]) -> dict[str, Any] | None:
    """Probabilities that all documents share and that came out as 0 or 1; None where there are none."""
    if not names:
        return None
    some = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    many = "probability is" if len(names) == 1 else "probabilities are"
    return {
        "number": len(names),
        "named": names[:_NAMED],
        "sentence": f"{len(names)} {many} at 0 or 1, where the clicks only bound it: {some}.",
    }


def _explain(model: ClickModel[Any], trained: bool, likelihood: float) -> str | None:
    """What is wrong with a fit, in words."""
    if not model.converged_:
        return f"still improving after {model.iterations_} {'epochs' if trained else 'iterations'}"
    return (
        None
        if math.isfinite(likelihood)
        else "some pages are impossible under this model: those with a second click, for instance"
    )


def _tally_pages(
    source: Sessions | SessionParts, documents: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int, int]:
    """Impressions and clicks by document, the longest page, and the number of pages."""
    shown, clicks, ranks, sessions = np.zeros(documents, np.int64), np.zeros(documents, np.int64), 1, 0
    for part in iterate_parts(source):
        shown += np.bincount(part.doc[part.mask], minlength=documents)
        clicks += np.bincount(part.doc[part.clicked], minlength=documents)
        ranks, sessions = max(ranks, part.longest), sessions + len(part)
    return shown, clicks, ranks, sessions


def _train(
    model: ClickModel[Any],
    source: Sessions | SessionParts,
    sessions: int,
    seed: int,
    epochs: int | None,
    progress: Progress,
) -> None:
    """By gradients, with some of the sessions held out to stop by."""
    from elute.clicks.base.trainer import Training

    defaults = Training()
    batch = int(np.clip(sessions // _STEPS, _SMALLEST, defaults.batch))
    training = replace(defaults, seed=seed, epochs=epochs or defaults.epochs, batch=batch, patience=_PATIENCE)
    learnt, held_out = _split_sessions(source, seed)
    model.fit(learnt, held_out, training=training, progress=progress)


def _split_sessions(source: Sessions | SessionParts, seed: int) -> tuple[Any, Sessions | None]:
    """What to learn from, and what to stop by: some of the sessions, or the first part of many."""
    if isinstance(source, SessionParts):
        return _AfterFirst(source), next(iter(source))
    order = np.random.default_rng(seed).permutation(len(source))
    held = int(_HELD_OUT * len(source))
    return source.take(np.sort(order[held:])), source.take(np.sort(order[:held])) if held else None


class _AfterFirst:
    """All parts but the first."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[Sessions]:
        return islice(iter(self._parts), 1, None)
