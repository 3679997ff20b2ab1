"""What tests of click models share: models with random parameters, pages, and simulated worlds."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from elute.clicks import Sessions, model_of
from elute.simulation.shown import ShownPages

DOCUMENTS, RANKS, QUERIES = 7, 5, 3


def sized(name: str, **settings):
    """A model of a few documents."""
    extra = {"queries": QUERIES} if name == "ncm" else {}
    return model_of(name)(DOCUMENTS, RANKS, **extra, **settings)


def random_model(name: str, seed: int, scale: float = 1.0, **settings):
    """One with parameters drawn from N(0, scale²)."""
    model = sized(name, **settings)
    rng = np.random.default_rng(seed)
    first = model.structure.init(jax.random.key(0), 0)
    model.params_ = jax.tree.map(lambda x: jnp.asarray(rng.normal(0, scale, x.shape), jnp.float32), first)
    if "ranked" in first:
        model.params_["ranked"] = first["ranked"]  # marks of documents never seen, which such a model does not have
    return model


def plain_params(model):
    """Parameters as numpy arrays in double precision."""
    return jax.tree.map(lambda x: np.asarray(x, np.float64), model.params_)


def random_pages(seed: int, lengths, width: int = RANKS) -> Sessions:
    """Different documents on a page, nothing clicked."""
    rng = np.random.default_rng(seed)
    doc = np.stack([rng.permutation(DOCUMENTS)[:width] for _ in lengths])
    return Sessions.from_arrays(doc, np.zeros_like(doc), length=lengths, query=rng.integers(0, QUERIES, len(lengths)))


def every_pattern(page: Sessions) -> Sessions:
    """One page with every pattern of clicks on what it shows."""
    length = int(page.length[0])
    patterns = np.zeros((2**length, page.width), np.uint8)
    patterns[:, :length] = list(product([0, 1], repeat=length)) if length else 0
    return Sessions(
        np.repeat(page.query, len(patterns)),
        np.repeat(page.doc, len(patterns), axis=0),
        patterns,
        np.repeat(page.length, len(patterns)),
    )


def together(parts) -> Sessions:
    """Several sets of sessions as one."""
    return Sessions(*(np.concatenate([getattr(p, n) for p in parts]) for n in ("query", "doc", "click", "length")))


def simulated(user, sessions: int, documents: int, ranks: int, seed: int, shortest: int | None = None):
    """Clicks of a simulated user on random pages: (sessions, relevance by document, what was shown)."""
    rng = np.random.default_rng(seed)
    relevance = rng.uniform(0.1, 0.8, documents)
    doc = rng.random((sessions, documents)).argsort(axis=1)[:, :ranks].astype(np.int32)
    length = rng.integers(shortest or ranks, ranks + 1, sessions)
    shown = ShownPages(relevance[doc], length.astype(np.int64))
    return Sessions.from_arrays(doc, user.draw_clicks(shown, rng), length=length), relevance, shown
