"""Sessions as arrays: result pages, what was clicked on them, and for which query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.errors import EluteError

Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Sessions:
    """Pages (rows) of at most `width` documents (columns), padded on the right; what the padding holds is never read.

    `query`: ids by page. `doc`: ids by (page, place). `click`: 0 or 1. `length`: documents on each page.
    A document id stands for what relevance belongs to: the same document under two queries is two ids.
    """

    query: Ids
    doc: Ids
    click: NDArray[np.uint8]
    length: Ids

    @classmethod
    def from_arrays(
        cls, doc: ArrayLike, click: ArrayLike, *, length: ArrayLike | None = None, query: ArrayLike | None = None
    ) -> Self:
        """From anything array-like; without `length` all pages are full, without `query` all are of query 0."""
        docs = np.asarray(doc, np.int32)
        pages = docs.shape[0] if docs.ndim == 2 else 0
        return cls(
            np.zeros(pages, np.int32) if query is None else np.asarray(query, np.int32),
            docs,
            np.asarray(click, np.uint8),
            np.full(pages, docs.shape[-1], np.int32) if length is None else np.asarray(length, np.int32),
        )

    def __post_init__(self) -> None:
        if self.doc.ndim != 2 or self.click.shape != self.doc.shape:
            raise EluteError(
                f"documents of shape {self.doc.shape} and clicks of shape {self.click.shape}; "
                "both must be (sessions, places)"
            )
        if not self.query.shape == self.length.shape == self.doc.shape[:1]:
            raise EluteError(
                f"{len(self.doc):,} sessions, but query has shape {self.query.shape} and length {self.length.shape}; "
                "give one of each for every session"
            )
        if len(self) and not 0 <= self.length.min() <= self.length.max() <= self.width:
            raise EluteError(f"sessions are {self.width} wide, so every length must lie between 0 and {self.width}")

    def __len__(self) -> int:
        return int(self.doc.shape[0])

    @property
    def width(self) -> int:
        return int(self.doc.shape[1])

    @property
    def longest(self) -> int:
        """Documents on the longest page."""
        return int(self.length.max(initial=0))

    @property
    def mask(self) -> NDArray[np.bool_]:
        """True where a document is shown."""
        return np.asarray(np.arange(self.width) < self.length[:, None])

    @property
    def clicked(self) -> NDArray[np.bool_]:
        """Clicks as booleans, false on the padding."""
        return np.asarray((self.click != 0) & self.mask)

    def take(self, rows: NDArray[np.integer] | slice) -> Sessions:
        """Some of the sessions."""
        return Sessions(self.query[rows], self.doc[rows], self.click[rows], self.length[rows])

    def trim(self) -> Sessions:
        """Without the columns that are padding on every page."""
        width = max(self.longest, 1)
        if width >= self.width:
            return self
        return Sessions(self.query, self.doc[:, :width], self.click[:, :width], self.length)

    def with_clicks(self, click: NDArray[np.uint8]) -> Sessions:
        """The same pages, clicked otherwise."""
        return Sessions(self.query, self.doc, click, self.length)


SessionSource = Sessions | Iterable[Sessions]
"""All sessions at once, or an iterable that gives them in parts, anew each time it is iterated."""


def iterate_sessions(source: SessionSource) -> Iterator[Sessions]:
    """The sessions, part by part."""
    if isinstance(source, Sessions):
        yield source
        return
    if iter(source) is source:
        raise EluteError(
            "sessions come from a generator, which can be read only once; "
            "give a list, or an object whose __iter__ starts over"
        )
    yield from source


def check_sessions(sessions: Sessions, documents: int, ranks: int, queries: int | None) -> None:
    """Refuse sessions that a model of this size cannot hold."""
    if sessions.longest > ranks:
        raise EluteError(
            f"a session shows {sessions.longest} documents, but the model has {ranks} ranks; build it with "
            f"`ranks={sessions.longest}` or truncate the sessions"
        )
    full = sessions.length.min(initial=sessions.width) == sessions.width
    shown = sessions.doc if full else sessions.doc[sessions.mask]
    _check_ids(shown, documents, "document", "documents")
    if queries is not None:
        _check_ids(sessions.query, queries, "query", "queries")
    if sessions.click.max(initial=0) > 1 and sessions.click[sessions.mask].max(initial=0) > 1:
        raise EluteError("clicks must be 0 or 1; count several clicks on a document as one")


def _check_ids(ids: Ids, amount: int, what: str, many: str) -> None:
    if ids.size and not 0 <= ids.min() <= ids.max() < amount:
        wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
        raise EluteError(f"{what} id {wrong} is outside 0 to {amount - 1}; build the model with more {many}")
