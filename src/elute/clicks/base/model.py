"""The verbs every click model has, over the mathematics of its structure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Generic, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.clicks.base import checkpoint
from elute.clicks.base.trainer import Epoch, Training, train
from elute.clicks.page import Pages, pieces
from elute.clicks.sessions import Sessions, Source, check, parts
from elute.clicks.structure import base
from elute.clicks.structure.base import Structure
from elute.clicks.structure.towers import Params
from elute.errors import EluteError
from elute.progress import Progress, silent

Floats = NDArray[np.float64]
S = TypeVar("S", bound=Structure)


class ClickModel(ABC, Generic[S]):
    """A click model over document ids 0 to `documents` - 1 and ranks 1 to `ranks`.

    Fitted: `params_`, `iterations_`, and `converged_`: whether iterations ended before their largest number. After a
    fit by gradients also `history_` (mean log-likelihoods by epoch) and `best_epoch_`.
    """

    def __init__(
        self, shape: S, documents: int, ranks: int, *, features: ArrayLike | None, queries: int | None = None
    ) -> None:
        if documents < 1 or ranks < 1:
            raise EluteError(f"a click model needs documents and ranks; {documents} and {ranks} were given")
        self.documents, self.ranks, self.queries = documents, ranks, queries
        self.structure = shape
        self._features = jnp.zeros((documents, 0)) if features is None else jnp.asarray(features, jnp.float32)
        if self._features.ndim != 2 or self._features.shape[0] != documents:
            raise EluteError(
                f"features of shape {self._features.shape} are not one row for each of {documents} documents"
            )
        if getattr(getattr(shape, "tower", None), "needs_features", False) and features is None:
            raise EluteError("a tower over features needs features=, one row a document")
        self.history_: list[Epoch] = []
        self.best_epoch_ = 0
        self.iterations_, self.converged_ = 1, True

    @abstractmethod
    def relevance(self) -> Floats:
        """Relevance by document, as this model understands it."""

    def _count(self, source: Source, progress: Progress) -> Params | None:
        """Parameters from counts or by EM; None: this model is fitted by gradients only."""
        return None

    def _prepared(self, sessions: Sessions) -> Sessions:
        """What the model is trained on; all of it, unless it says otherwise."""
        return sessions

    def fit(
        self,
        sessions: Source,
        validation: Sessions | None = None,
        *,
        training: Training | None = None,
        checkpoint: Path | str | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Fit to sessions, given at once or as an iterable of parts.

        Without `training`, models that can be fitted exactly on counts or by EM are, and the others are trained by
        gradients as `Training()` says; with it, all are. `validation`: sessions to stop training early on.
        `checkpoint`: an npz file of the training's state, written after every epoch; training goes on from it.
        """
        source = self._accept(sessions) if isinstance(sessions, Sessions) else _Accepted(sessions, self._accept)
        if training is None and (params := self._count(source, progress)) is not None:
            self.params_ = params
            return self
        settings = Training() if training is None else training
        held_out = None if validation is None else self._accept(validation)
        first = self.structure.init(jax.random.key(settings.seed), self._features.shape[1])
        kept = None if checkpoint is None else Path(checkpoint)
        done = train(self.structure, first, self._features, source, held_out, settings, progress, kept)
        self.params_, self.history_, self.best_epoch_ = done
        self.iterations_, self.converged_ = len(self.history_), len(self.history_) < settings.epochs
        return self

    def predict_clicks(self, sessions: Sessions) -> Floats:
        """P(click) by (session, place), whatever else is clicked; 0 on the padding."""
        return self._by_place(sessions, base.marginals)

    def predict_conditional_clicks(self, sessions: Sessions) -> Floats:
        """P(click | the session's clicks at higher ranks) by (session, place); 0 on the padding."""
        return self._by_place(sessions, base.conditionals)

    def log_likelihood(self, sessions: Sessions) -> Floats:
        """log P(exactly these clicks) by session; -inf for what the model holds impossible."""
        out = np.zeros(len(sessions))
        for where, pages in self._pieces(sessions):
            values = base.likelihoods(self.structure, self.params_, self._features, pages)
            out[where] = np.asarray(values)[: where.stop - where.start]
        return out

    def sample(self, key: jax.Array, sessions: Sessions) -> Sessions:
        """The same pages, clicked by the model. What is drawn for a session depends on the key and its row alone."""
        out = np.zeros(sessions.click.shape, np.uint8)
        for where, pages in self._pieces(sessions):
            clicks = base.drawn(self.structure, self.params_, self._features, pages, key)
            out[where, : pages.doc.shape[1]] = np.asarray(clicks)[: where.stop - where.start]
        return sessions.with_clicks(out)

    def save(self, path: Path | str) -> None:
        """Keep the parameters as npz."""
        checkpoint.write(Path(path), self._fitted(), repr(self.structure))

    def load(self, path: Path | str) -> Self:
        """The parameters kept by a model of the same structure."""
        like = self.structure.init(jax.random.key(0), self._features.shape[1])
        self.params_ = checkpoint.read(Path(path), like, repr(self.structure))
        return self

    def _fitted(self) -> Params:
        if not hasattr(self, "params_"):
            raise EluteError(f"this {type(self).__name__} is not fitted yet; call fit or load first")
        return self.params_

    def _accept(self, sessions: Sessions) -> Sessions:
        check(sessions, self.documents, self.ranks, self.queries)
        return self._prepared(sessions.trimmed())

    def _pieces(self, sessions: Sessions) -> Iterator[tuple[slice, Pages]]:
        self._fitted()
        check(sessions, self.documents, self.ranks, self.queries)
        return pieces(sessions.trimmed())

    def _by_place(self, sessions: Sessions, function: Callable[..., jax.Array]) -> Floats:
        out = np.zeros(sessions.doc.shape)
        for where, pages in self._pieces(sessions):
            values = function(self.structure, self.params_, self._features, pages)
            out[where, : pages.doc.shape[1]] = np.asarray(values)[: where.stop - where.start]
        return out


class _Accepted:
    """A source's parts, each checked and prepared as it comes."""

    def __init__(self, source: Iterable[Sessions], accept: Callable[[Sessions], Sessions]) -> None:
        self._source, self._accept = source, accept

    def __iter__(self) -> Iterator[Sessions]:
        return map(self._accept, parts(self._source))
