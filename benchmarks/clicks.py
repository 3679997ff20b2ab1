"""Session click models from a Parquet file to fitted parameters, each in a process of its own.

    python -m benchmarks.clicks                       1 million sessions of ten documents
    BENCH_SESSIONS=100000 python -m benchmarks.clicks

Clicks are those of a position-based, a browsing and a dynamic Bayesian user; every model is fitted to the clicks of
its own user. Compiling is part of what is measured, importing is not. Perplexity is that of sessions held out,
conditional on earlier clicks, and of the user's own parameters beside it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import logs, measure
from elute.audit.clicks import conditional_perplexity
from elute.simulate.shown import Shown
from elute.simulate.users import build_user

RANKS, QUERIES_PER, HELD_OUT = 10, 100, 50_000
USERS = {"pbm": {"propensities": 1 / np.arange(1, RANKS + 1)}, "ubm": {}, "dbn": {}}
"""By model. `QUERIES_PER`: sessions a query has, on average."""

EPOCHS = 5
NAMES = [f"{name}, exact" for name in USERS] + [f"{name}, {EPOCHS} epochs of Adam" for name in USERS]


def relevance_of(sessions: int) -> np.ndarray:
    """Of every document, ten a query."""
    return np.random.default_rng(0).beta(1.0, 4.0, max(sessions // QUERIES_PER, 1) * RANKS)


def draw(name: str, sessions: int, seed: int) -> tuple[np.ndarray, np.ndarray, Shown]:
    """Documents, clicks and what was shown: a query's ten documents in an order that leans to the relevant."""
    rng = np.random.default_rng(seed)
    relevance = relevance_of(int(os.environ.get("BENCH_SESSIONS", "1000000")))
    query = rng.integers(0, len(relevance) // RANKS, sessions)
    doc = query[:, None] * RANKS + np.arange(RANKS)
    order = np.argsort(-(relevance[doc] + 0.3 * rng.normal(size=doc.shape)), axis=1)
    doc = np.take_along_axis(doc, order, axis=1)
    shown = Shown(relevance[doc], np.full(sessions, RANKS))
    return doc, build_user(name, **USERS[name]).clicks(shown, rng), shown


def session_file(name: str, sessions: int) -> Path:
    """Lists of ids and clicks, made once."""
    path = logs.FOLDER / f"sessions-{name}-{sessions}.parquet"
    if not path.exists():
        logs.FOLDER.mkdir(exist_ok=True)
        doc, clicks, _ = draw(name, sessions, 1)
        offsets = pa.array(np.arange(sessions + 1, dtype=np.int32) * RANKS)
        lists = [pa.ListArray.from_arrays(offsets, pa.array(values.ravel())) for values in (doc, clicks)]
        pq.write_table(pa.table(lists, ["query_doc_ids", "clicks"]), path)
    return path


def prepare(name: str, path: str) -> measure.Work:
    from elute.clicks import Sessions, Training, model_of
    from elute.io.sessions import LISTS, read_sessions

    model_name = name.split(",")[0]
    training = Training(epochs=EPOCHS) if "Adam" in name else None

    def work() -> Any:
        sessions, vocabulary = read_sessions(session_file(model_name, int(path)), LISTS)
        model = model_of(model_name)(vocabulary.n_documents, RANKS).fit(sessions, training=training)
        model.relevance()
        return model, vocabulary

    def judged() -> Any:
        started = time.perf_counter()
        model, vocabulary = work()
        seconds = time.perf_counter() - started
        doc, clicks, shown = draw(model_name, HELD_OUT, 2)
        number = np.full(len(relevance_of(int(path))), vocabulary.n_documents - 1, np.int32)
        number[vocabulary.documents.to_numpy()] = np.arange(len(vocabulary.documents))
        held_out = Sessions.of(number[doc], clicks)
        return {
            "seconds": seconds,
            "perplexity": conditional_perplexity(model.predict_conditional_clicks(held_out), clicks).mean,
            "log_likelihood": float(model.log_likelihood(held_out).mean()),
            "truth": float(build_user(model_name, **USERS[model_name]).log_probability(shown, clicks).mean()),
        }

    return judged


def main() -> None:
    sessions = int(os.environ.get("BENCH_SESSIONS", "1000000"))
    repeats = int(os.environ.get("BENCH_REPEATS", "1"))
    for name in USERS:
        print(f"measuring on {session_file(name, sessions)}", file=sys.stderr)
    found = measure.compare("benchmarks.clicks", NAMES, str(sessions), repeats)
    print(f"\n{sessions:,} sessions of {RANKS}\n")
    print("| model | seconds, file to fit | held-out perplexity | held-out log-likelihood | of the truth | peak GiB |")
    print("|---|---|---|---|---|---|")
    for name in NAMES:
        result = found[name]["result"]
        print(
            f"| {name} | {result['seconds']:.2f} | {result['perplexity']:.4f} | {result['log_likelihood']:.4f} | "
            f"{result['truth']:.4f} | {found[name]['gib']:.2f} |"
        )


if __name__ == "__main__":
    measure.main(prepare) if "--child" in sys.argv else main()
