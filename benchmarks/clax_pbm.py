"""CLAX's position-based model from a Parquet file of sessions, in CLAX's own environment; run by `benchmarks.fit`.

    python clax_pbm.py FOLDER TRAIN HELD_OUT ITEMS

Writes propensities and relevance to FOLDER/clax.npz and prints the seconds from the file to the end of training.
"""

import contextlib
import json
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import optax
from clax import PositionBasedModel, Trainer
from clax.datasets import YandexDataset
from flax import nnx
from torch.utils.data import DataLoader

folder, train, held_out, items = Path(sys.argv[1]), *map(int, sys.argv[2:5])


def loader(first: int, last: int) -> DataLoader:
    data = YandexDataset(folder, (first, last))
    return DataLoader(data, batch_size=4096, collate_fn=data.collate_fn)


began = time.perf_counter()
model = PositionBasedModel(positions=10, query_doc_pairs=items, rngs=nnx.Rngs(0))
trainer = Trainer(optimizer=optax.adamw(0.01))
with contextlib.redirect_stdout(sys.stderr):
    trainer.train(model, loader(0, train), loader(train, train + held_out))
seconds = time.perf_counter() - began

ids = np.arange(items)
batch = {"query_doc_ids": jnp.array(ids[None]), "mask": jnp.ones((1, items), bool)}
relevance = np.exp(np.asarray(model.predict_relevance(batch))).reshape(-1)
ranks = {"positions": jnp.arange(1, 11)[None], "mask": jnp.ones((1, 10), bool)}
propensity = np.exp(np.asarray(model.examination.log_prob(ranks))).reshape(-1)
np.savez(folder / "clax.npz", relevance=relevance, propensity=propensity)
print(json.dumps({"seconds": seconds}))
