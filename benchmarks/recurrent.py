"""Sessions a second of the recurrent click models in training, on whatever device jax finds.

    python -m benchmarks.recurrent                 1 million sessions of ten documents
    BENCH_SESSIONS=50000 python -m benchmarks.recurrent

Needs numpy, jax and optax only, for a bare GPU machine. Clicks are a cascade's that goes on after a click half of the
time; batches of 256 are those of the CMIP paper. The first epoch, which compiles, is left out of the rate.
"""

from __future__ import annotations

import os
import time

import jax
import numpy as np

from elute.clicks import Sessions, Training, model_of

RANKS, DOCUMENTS = 10, 100_000
EPOCHS = {256: 2, 4096: 4, 32_768: 6}
"""By batch size; of the smallest, only a part of the sessions."""
LEAST = 200_000


def drawn(sessions: int, seed: int) -> Sessions:
    """A query's ten documents in an order that leans to the relevant."""
    rng = np.random.default_rng(seed)
    relevance = np.random.default_rng(0).beta(1.0, 4.0, DOCUMENTS)
    query = rng.integers(0, DOCUMENTS // RANKS, sessions)
    doc = query[:, None] * RANKS + np.arange(RANKS)
    order = np.argsort(-(relevance[doc] + 0.3 * rng.normal(size=doc.shape)), axis=1)
    doc = np.take_along_axis(doc, order, axis=1)
    click = np.zeros(doc.shape, np.uint8)
    reads = np.ones(sessions, np.bool_)
    for rank in range(RANKS):
        click[:, rank] = reads & (rng.random(sessions) < relevance[doc[:, rank]])
        reads &= (click[:, rank] == 0) | (rng.random(sessions) < 0.5)
    return Sessions.from_arrays(doc, click, query=query)


def main() -> None:
    sessions = drawn(int(os.environ.get("BENCH_SESSIONS", "1000000")), 1)
    held_out = drawn(20_000, 2)
    device = jax.devices()[0]
    print(f"{device.device_kind} ({device.platform}), jax {jax.__version__}; {len(sessions):,} sessions of {RANKS}\n")
    print("| model | batch | sessions a second | first epoch, s | held-out log-likelihood |\n|---|---|---|---|---|")
    for name in ("ncm", "cacm"):
        queries = {"queries": DOCUMENTS // RANKS} if name == "ncm" else {}
        for batch, epochs in EPOCHS.items():
            taken = sessions if batch > 256 else sessions.take(slice(0, LEAST))
            marks = [time.perf_counter()]
            model = model_of(name)(DOCUMENTS, RANKS, **queries)
            settings = Training(epochs=epochs, batch=batch, learning_rate=0.003)
            model.fit(taken, training=settings, progress=lambda *_, marks=marks: marks.append(time.perf_counter()))
            seconds = np.diff(marks)
            reached = model.log_likelihood(held_out).mean()
            rate = len(taken) / np.median(seconds[1:])
            print(f"| {name} | {batch:,} | {rate:,.0f} | {seconds[0]:.1f} | {reached:.4f} |", flush=True)


if __name__ == "__main__":
    main()
