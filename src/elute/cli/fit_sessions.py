"""`elute fit` with a session click model: a model of whole result pages instead of counts."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from elute.audit.session_fits import build, pages_of, parts_of, read_pages, save
from elute.cli.text import count
from elute.errors import EluteError
from elute.io.sessions import SessionParts
from elute.log import ClickLog
from elute.progress import Progress
from elute.provenance import provenance

if TYPE_CHECKING:
    from elute.clicks.model import ClickModel
    from elute.clicks.sessions import Sessions

BY_GRADIENTS = ("ncm", "cacm")
"""Those that have no fit on counts, nor by EM; their iterations are epochs."""

_HELD_OUT = 0.1
"""Of the sessions, to stop training by."""

_STEPS, _SMALLEST, _PATIENCE = 100, 64, 2
"""Steps in an epoch of a short log, made by smaller batches, though not below the smallest: held-out likelihood is
looked at once an epoch, and training stops after so many without a better one."""


def fit_sessions(
    log: ClickLog,
    sources: tuple[str, ...],
    model: str,
    out: str | None,
    progress: Progress,
    *,
    as_json: bool,
    seed: int | None,
    max_iter: int | None,
    **refused: object,
) -> None:
    """Fit, write the folder, and print how it went. `refused`: options of other models, which must not be given."""
    for option, value in refused.items():
        if value not in (None, False):
            raise EluteError(f"model '{model}' has no --{option.replace('_', '-')}")
    if max_iter is not None and model not in BY_GRADIENTS:
        raise EluteError(f"model '{model}' has no --max-iter; it is fitted until nothing changes")
    with pages_of(log, sources, log.roles.session) as (path, columns):
        source, vocabulary = read_pages(path, columns)
        shown, clicks, ranks, sessions = _tallied(source, vocabulary.n_documents)
        fitted = build(model, vocabulary.n_documents, ranks, vocabulary.n_queries)
        began = time.perf_counter()
        iterations, converged, reason = _fit(fitted, model, source, sessions, seed or 0, max_iter, progress)
        seconds = time.perf_counter() - began
        likelihood = sum(float(fitted.log_likelihood(part).sum()) for part in parts_of(source))
    if not math.isfinite(likelihood):
        reason = reason or "under this model some of the pages cannot happen: a second click, say"
    fields = {
        "model": model,
        "iterations": iterations,
        "converged": converged,
        "reason": reason,
        "log_likelihood": likelihood if math.isfinite(likelihood) else None,
        "seconds": seconds,
        "sessions": sessions,
        "ranks": ranks,
    }
    if out is not None:
        made = {**asdict(provenance(log)), "session": log.roles.session}
        save(out, fields, made, fitted, vocabulary, shown, clicks)
    click.echo(json.dumps(fields) if as_json else _page(fields, len(vocabulary.documents), out))


def _tallied(source: Sessions | SessionParts, documents: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int, int]:
    """Impressions and clicks by document, the longest page, and the number of pages."""
    shown, clicks, ranks, sessions = np.zeros(documents, np.int64), np.zeros(documents, np.int64), 1, 0
    for part in parts_of(source):
        shown += np.bincount(part.doc[part.mask], minlength=documents)
        clicks += np.bincount(part.doc[part.clicked], minlength=documents)
        ranks, sessions = max(ranks, part.longest), sessions + len(part)
    return shown, clicks, ranks, sessions


def _fit(
    fitted: ClickModel[Any],
    name: str,
    source: Sessions | SessionParts,
    sessions: int,
    seed: int,
    epochs: int | None,
    progress: Progress,
) -> tuple[int, bool, str | None]:
    """Iterations, whether they were enough, and if not why."""
    from elute.clicks import chain_em, product
    from elute.clicks.trainer import Training

    done = 1

    def counting(stage: str, step: int, total: int) -> None:
        nonlocal done
        done = max(done, step)
        progress(stage, step, total)

    if name not in BY_GRADIENTS:
        fitted.fit(source, progress=counting)
        most = chain_em._CYCLES if isinstance(fitted, chain_em.ChainModel) else product._ROUNDS
        return done, done < most, None if done < most else f"stopped after {done} iterations"
    defaults = Training()
    batch = int(np.clip(sessions // _STEPS, _SMALLEST, defaults.batch))
    training = replace(defaults, seed=seed, epochs=epochs or defaults.epochs, batch=batch, patience=_PATIENCE)
    learnt, held_out = _split(source, seed)
    fitted.fit(learnt, held_out, training=training, progress=counting)
    early = len(fitted.history_) < training.epochs
    return len(fitted.history_), early, None if early else f"still improving after {training.epochs} epochs"


def _split(source: Sessions | SessionParts, seed: int) -> tuple[Any, Sessions | None]:
    """What to learn from, and what to stop by: some of the sessions, or the first part of many."""
    if isinstance(source, SessionParts):
        return _Rest(source), next(iter(source))
    order = np.random.default_rng(seed).permutation(len(source))
    held = int(_HELD_OUT * len(source))
    return source.take(np.sort(order[held:])), source.take(np.sort(order[:held])) if held else None


class _Rest:
    """All parts but the first."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[Sessions]:
        return islice(iter(self._parts), 1, None)


def _page(fields: dict[str, Any], items: int, out: str | None) -> str:
    ended = "converged" if fields["converged"] else f"NOT converged ({fields['reason']})"
    likelihood = "0" if fields["log_likelihood"] is None else f"{fields['log_likelihood']:,.1f}"
    what = "log-likelihood" if fields["log_likelihood"] is not None else f"likelihood ({fields['reason']})"
    lines = [
        f"  {fields['model']}: {ended} after {count(fields['iterations'])} iterations ({fields['seconds']:.2f} s), "
        f"{what} {likelihood}.",
        f"  {count(fields['sessions'])} pages of up to {fields['ranks']} results, {count(items)} items.",
    ]
    if out is not None:
        lines.append(f"  Written to {out}: relevance.parquet, model.npz, queries.parquet, fit.json")
        lines.append(f"  Next: elute audit --fit {out} --log LOG --labels labels.parquet")
    return "\n" + "\n".join(lines)
