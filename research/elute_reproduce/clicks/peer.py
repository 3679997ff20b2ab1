"""CLAX's user browsing model, where CLAX is installed (`clax-models`, with jax below 0.8), fitted as it comes."""

from __future__ import annotations

from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.clicks import Sessions

RATE, BATCH, HELD = 0.01, 512, 0.1
"""AdamW's rate as in CLAX's own examples; pages a step; the share of pages that stops it."""


def has_clax() -> bool:
    return find_spec("clax") is not None


def predict_by_clax(train: Sessions, test: Sessions, documents: int, seed: int) -> NDArray[np.float64]:
    """P(click | clicks above) of the test's pages."""
    import optax
    from clax import Trainer, UserBrowsingModel
    from flax import nnx

    model: Any = UserBrowsingModel(positions=train.width, query_doc_pairs=documents, rngs=nnx.Rngs(seed))
    order = np.random.default_rng(seed).permutation(len(train))
    held = int(HELD * len(train))
    loaders = [_Batches(train.take(order[held:]), seed), _Batches(train.take(order[:held]), None)]
    with redirect_stdout(StringIO()):
        Trainer(optimizer=optax.adamw(RATE)).train(model, *loaders)
    model.eval()
    parts = [np.asarray(model.predict_conditional_clicks(batch), np.float64) for batch in _Batches(test, None)]
    return np.exp(np.concatenate(parts))


class _Batches:
    """Pages as CLAX takes them, in another order every time where there is a seed."""

    def __init__(self, pages: Sessions, seed: int | None) -> None:
        self.pages, self.rng = pages, None if seed is None else np.random.default_rng(seed)

    def __len__(self) -> int:
        return -(-len(self.pages) // BATCH)

    def __iter__(self) -> Any:
        n = len(self.pages)
        order = np.arange(n) if self.rng is None else self.rng.permutation(n)
        for begin in range(0, n, BATCH):
            own = self.pages.take(order[begin : begin + BATCH])
            rank = np.broadcast_to(np.arange(1, own.width + 1), own.doc.shape)
            yield {
                "positions": np.ascontiguousarray(rank),
                "query_doc_ids": own.doc,
                "clicks": own.clicked.astype(np.float32),
                "mask": own.mask,
            }
