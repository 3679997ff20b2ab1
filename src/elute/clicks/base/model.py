"""The verbs every click model has, over the mathematics of its structure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute._util.models import describe_parameters, refuse_attribute
from elute.clicks.backend import first_key, jnp, require_jax
from elute.clicks.base import checkpoint
from elute.clicks.page import DevicePages, split_pages
from elute.clicks.sessions import Sessions, SessionSource, check_sessions, iterate_sessions
from elute.clicks.structure import base
from elute.clicks.structure.base import ClickStructure
from elute.clicks.structure.towers import Params
from elute.errors import EluteError
from elute.progress import Progress, silent

if TYPE_CHECKING:
    import jax

    from elute.clicks.base.trainer import Epoch, Training

Floats = NDArray[np.float64]
S = TypeVar("S", bound=ClickStructure)


class ExactFit(NamedTuple):
    """Parameters from counts or by EM, the iterations that took, and whether they were enough. `priors`: those fitted,
    by what they are of (`RankedPrior.to_dict`)."""

    params: Params
    iterations: int = 1
    converged: bool = True
    priors: dict[str, dict[str, float]] = {}  # noqa: RUF012 (never changed)


class ClickModel(ABC, Generic[S]):
    """A click model over document ids 0 to `documents` - 1 and ranks 1 to `ranks`.

    Fitted: `params_`; `relevance_values_` by document; `iterations_`, and `converged_`: whether iterations ended before
    their largest number; `priors_`: those fitted to documents; `history_` (mean log-likelihoods by epoch) and
    `best_epoch_`, empty and 0 unless the fit was
    by gradients. A model that was loaded has the first two.
    """

    def __init__(
        self, shape: S, documents: int, ranks: int, *, features: ArrayLike | None, queries: int | None = None
    ) -> None:
        if documents < 1 or ranks < 1:
            raise EluteError(f"a click model needs at least one document and one rank, not {documents} and {ranks}")
        self.documents, self.ranks, self.features, self.queries = documents, ranks, features, queries
        self.structure = shape
        self._features = jnp.zeros((documents, 0)) if features is None else jnp.asarray(features, jnp.float32)
        if self._features.ndim != 2 or self._features.shape[0] != documents:
            raise EluteError(
                f"`features=` has shape {self._features.shape}; give one row for each of the {documents} documents"
            )
        if getattr(getattr(shape, "tower", None), "needs_features", False) and features is None:
            raise EluteError("a tower over features needs `features=`, one row for each document")

    @property
    @abstractmethod
    def relevance_values_(self) -> Floats:
        """Relevance by document, as this model understands it."""

    @property
    def boundary_(self) -> list[str]:
        """What all documents share and came out as 0 or 1, in words: a fit cannot say how far from it the truth is."""
        return []

    def _fit_on_counts(self, source: SessionSource, progress: Progress) -> ExactFit | None:
        """A fit on counts or by EM; None: this model is fitted by gradients only."""
        return None

    def _prepare(self, sessions: Sessions) -> Sessions:
        """What the model is trained on; all of it, unless it says otherwise."""
        return sessions

    def fit(
        self,
        sessions: SessionSource,
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
        source = self._accept(sessions) if isinstance(sessions, Sessions) else _CheckedSource(sessions, self._accept)
        if training is None and (exact := self._fit_on_counts(source, progress)) is not None:
            self.params_, self.iterations_, self.converged_, self.priors_ = exact
            self.history_: list[Epoch] = []
            self.best_epoch_ = 0
            return self
        require_jax()
        from elute.clicks.base.trainer import Training, train

        settings = Training() if training is None else training
        held_out = None if validation is None else self._accept(validation)
        first = self.structure.init(first_key(settings.seed), self._features.shape[1])
        kept = None if checkpoint is None else Path(checkpoint)
        done = train(self.structure, first, self._features, source, held_out, settings, progress, kept)
        self.params_, self.history_, self.best_epoch_ = done
        self.priors_ = {}
        self.iterations_, self.converged_ = len(self.history_), len(self.history_) < settings.epochs
        return self

    def __getattr__(self, name: str) -> NoReturn:
        refuse_attribute(self, name, "fit(sessions) or load(path)")

    def __repr__(self) -> str:
        return describe_parameters(self)

    def predict_clicks(self, sessions: Sessions) -> Floats:
        """P(click) by (session, place), whatever else is clicked; 0 on the padding."""
        return self._compute_by_place(sessions, base.marginals)

    def predict_conditional_clicks(self, sessions: Sessions) -> Floats:
        """P(click | the session's clicks at higher ranks) by (session, place); 0 on the padding."""
        return self._compute_by_place(sessions, base.conditionals)

    def log_likelihood(self, sessions: Sessions) -> Floats:
        """log P(exactly these clicks) by session; -inf for what the model holds impossible."""
        params, out = self.params_, np.zeros(len(sessions))
        for where, pages in self._split_pages(sessions):
            values = base.likelihoods(self.structure, params, self._features, pages)
            out[where] = np.asarray(values)[: where.stop - where.start]
        return out

    def sample(self, key: jax.Array, sessions: Sessions) -> Sessions:
        """The same pages, clicked by the model. What is drawn for a session depends on the key and its row alone."""
        require_jax("drawing clicks from a session click model")
        return self._click(sessions, lambda pages: base.draw_uniforms(pages, key))

    def redraw(self, sessions: Sessions, rng: np.random.Generator) -> Sessions:
        """As `sample`, by numpy's numbers."""
        return self._click(sessions, lambda pages: jnp.asarray(rng.random(pages.doc.shape)))

    def _click(self, sessions: Sessions, draw: Callable[[DevicePages], jax.Array]) -> Sessions:
        params, out = self.params_, np.zeros(sessions.click.shape, np.uint8)
        for where, pages in self._split_pages(sessions):
            clicks = base.sample_clicks(self.structure, params, self._features, pages, draw(pages))
            out[where, : pages.doc.shape[1]] = np.asarray(clicks)[: where.stop - where.start]
        return sessions.with_clicks(out)

    def save(self, path: Path | str) -> None:
        """Keep the parameters as npz."""
        checkpoint.write(Path(path), self.params_, repr(self.structure))

    def load(self, path: Path | str) -> Self:
        """The parameters kept by a model of the same structure."""
        self.params_ = checkpoint.read(
            Path(path), lambda: self.structure.init(first_key(0), self._features.shape[1]), repr(self.structure)
        )
        for name in ("iterations_", "converged_", "priors_", "history_", "best_epoch_"):
            vars(self).pop(name, None)  # of an earlier fit
        return self

    def _accept(self, sessions: Sessions) -> Sessions:
        check_sessions(sessions, self.documents, self.ranks, self.queries)
        return self._prepare(sessions.trim())

    def _split_pages(self, sessions: Sessions) -> Iterator[tuple[slice, DevicePages]]:
        check_sessions(sessions, self.documents, self.ranks, self.queries)
        return split_pages(sessions.trim())

    def _compute_by_place(self, sessions: Sessions, function: Callable[..., jax.Array]) -> Floats:
        params, out = self.params_, np.zeros(sessions.doc.shape)
        for where, pages in self._split_pages(sessions):
            values = function(self.structure, params, self._features, pages)
            out[where, : pages.doc.shape[1]] = np.asarray(values)[: where.stop - where.start]
        return out


class _CheckedSource:
    """A source's parts, each checked and prepared as it comes."""

    def __init__(self, source: Iterable[Sessions], accept: Callable[[Sessions], Sessions]) -> None:
        self._source, self._accept = source, accept

    def __iter__(self) -> Iterator[Sessions]:
        return map(self._accept, iterate_sessions(self._source))


class ModelClass(Protocol):
    """The class of a model: called with documents and ranks, and with options of its own."""

    def __call__(self, documents: int, ranks: int, **options: Any) -> ClickModel[Any]: ...
