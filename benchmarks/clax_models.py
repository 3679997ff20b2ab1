"""One of CLAX's models from Parquet files of sessions, in CLAX's own environment; run by `benchmarks.peers`.

    python clax_models.py MODEL FOLDER TRAIN VALIDATION TEST ITEMS loader|arrays

The sessions of FOLDER's files are, in their order, those to train on, to stop by and to predict. They come through
CLAX's own loader, or from arrays read at once, which is kinder to it. Writes what it predicts for the last of them to
FOLDER-clax-MODEL.npz and prints seconds (from the file to the end of training, and by epoch) as JSON.
"""

import contextlib
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pyarrow.parquet as pq
from clax import DynamicBayesianNetwork, PositionBasedModel, Trainer, UserBrowsingModel
from clax.datasets import YandexDataset
from flax import nnx
from torch.utils.data import DataLoader

RANKS, BATCH = 10, 4096
name, folder = sys.argv[1], Path(sys.argv[2])
train, validation, test, items = map(int, sys.argv[3:7])
began: list[float] = []
"""When each epoch did."""


class Marked(YandexDataset):
    """Of the training sessions: every time they are gone through is an epoch."""

    def __iter__(self) -> Iterator[Any]:
        began.append(time.perf_counter())
        return super().__iter__()


class Arrays:
    """Batches cut from arrays; the sessions in a new order each time, where they are marked as an epoch."""

    def __init__(self, doc: np.ndarray, click: np.ndarray, marked: bool) -> None:
        self.doc, self.click, self.marked = doc, click, marked
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return -(-len(self.doc) // BATCH)

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        order = np.arange(len(self.doc))
        if self.marked:
            began.append(time.perf_counter())
            order = self.rng.permutation(len(self.doc))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            yield batch_of(self.doc[rows], self.click[rows])


def batch_of(doc: np.ndarray, click: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "query_doc_ids": doc,
        "clicks": click,
        "positions": np.broadcast_to(np.arange(1, RANKS + 1, dtype=np.int16), doc.shape),
        "mask": np.ones(doc.shape, np.bool_),
    }


def arrays() -> tuple[np.ndarray, np.ndarray]:
    """Documents and clicks of all sessions."""
    table = pq.read_table(folder, columns=["query_doc_ids", "clicks"])
    doc, click = (table[column].combine_chunks().flatten().to_numpy() for column in table.column_names)
    return doc.astype(np.int32).reshape(-1, RANKS), click.astype(np.float16).reshape(-1, RANKS)


def loaders() -> tuple[Any, ...]:
    if sys.argv[7] == "arrays":
        doc, click = arrays()
        ranges = ((0, train), (train, train + validation))
        return tuple(Arrays(doc[a:b], click[a:b], marked=a == 0) for a, b in ranges)
    data = Marked(folder, (0, train)), YandexDataset(folder, (train, train + validation))
    return tuple(DataLoader(part, batch_size=BATCH, collate_fn=part.collate_fn) for part in data)


def built() -> nnx.Module:
    if name == "dbn":
        return DynamicBayesianNetwork(query_doc_pairs=items, rngs=nnx.Rngs(0))
    kind = {"pbm": PositionBasedModel, "ubm": UserBrowsingModel}[name]
    return kind(positions=RANKS, query_doc_pairs=items, rngs=nnx.Rngs(0))


started, used = time.perf_counter(), time.process_time()
model = built()
with contextlib.redirect_stdout(sys.stderr):
    Trainer(optimizer=optax.adamw(0.01)).train(model, *loaders())
ended = time.perf_counter()
cpu = time.process_time() - used

doc, click = (values[train + validation : train + validation + test] for values in arrays())
batch = {key: jnp.asarray(values) for key, values in batch_of(doc, click).items()}
found = {
    "conditional": np.exp(np.asarray(model.predict_conditional_clicks(batch))),
    "marginal": np.exp(np.asarray(model.predict_clicks(batch))),
}
every = {"query_doc_ids": jnp.arange(items)[None], "mask": jnp.ones((1, items), bool)}
if name == "pbm":
    found["relevance"] = np.exp(np.asarray(model.predict_relevance(every))).reshape(-1)
    ranks = {"positions": jnp.arange(1, RANKS + 1)[None], "mask": jnp.ones((1, RANKS), bool)}
    found["propensity"] = np.exp(np.asarray(model.examination.log_prob(ranks))).reshape(-1)
np.savez(folder.parent / f"{folder.name}-clax-{name}.npz", **found)
print(
    json.dumps(
        {
            "seconds": ended - started,
            "cpu": cpu,
            "epochs": np.diff([*began, ended]).tolist(),
            "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        }
    )
)
