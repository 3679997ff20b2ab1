"""Session click models from a Parquet file to fitted parameters against CLAX, each in a process of its own.

    python -m benchmarks.clicks                       1 million sessions of ten documents
    BENCH_SESSIONS=100000 python -m benchmarks.clicks

Clicks are those of a position-based, a browsing and a dynamic Bayesian user; every model is fitted to the clicks of
its own user: exactly (on counts or by EM), by Adam until held-out likelihood no longer rises, and by CLAX, which also
stops so, through its own loader and from arrays read at once. Batches, learning rate and what training is stopped by
are the same. Compiling is part of what is measured, importing is not. Perplexity is that of `elute.auditing`, on
sessions that nobody saw, of what each predicts for them; the last row of a model is its user's own parameters.
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
from benchmarks.peers import clax
from elute.auditing.perplexity import conditional_perplexity, perplexity
from elute.simulation.shown import ShownPages
from elute.simulation.users import build_user

RANKS, QUERIES_PER, HELD_OUT = 10, 100, 50_000
USERS = {"pbm": {"propensities": 1 / np.arange(1, RANKS + 1)}, "ubm": {}, "dbn": {}}
"""By model. `QUERIES_PER`: sessions a query has, on average."""

WAYS = ("exact", "Adam")


def relevance_of(sessions: int) -> np.ndarray:
    """Of every document, ten a query."""
    return np.random.default_rng(0).beta(1.0, 4.0, max(sessions // QUERIES_PER, 1) * RANKS)


def draw(name: str, relevance: np.ndarray, sessions: int, seed: int) -> tuple[np.ndarray, np.ndarray, ShownPages]:
    """Documents, clicks and what was shown: a query's ten documents in an order that leans to the relevant."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, len(relevance) // RANKS, sessions)
    doc = query[:, None] * RANKS + np.arange(RANKS)
    order = np.argsort(-(relevance[doc] + 0.3 * rng.normal(size=doc.shape)), axis=1)
    doc = np.take_along_axis(doc, order, axis=1)
    shown = ShownPages(relevance[doc], np.full(sessions, RANKS))
    return doc, build_user(name, **USERS[name]).draw_clicks(shown, rng), shown


def session_files(name: str, sessions: int) -> Path:
    """Lists of ids and clicks, made once: part 0 to train on, 1 to stop by, 2 to predict."""
    folder = logs.FOLDER / f"sessions-{name}-{sessions}"
    if not (folder / "part-2.parquet").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for part, size in enumerate((sessions, HELD_OUT, HELD_OUT)):
            doc, clicks, _ = draw(name, relevance_of(sessions), size, part + 1)
            offsets = pa.array(np.arange(size + 1, dtype=np.int32) * RANKS)
            lists = [pa.ListArray.from_arrays(offsets, pa.array(values.ravel())) for values in (doc, clicks)]
            table = pa.table([doc[:, 0] // RANKS, *lists], ["query_id", "query_doc_ids", "clicks"])
            pq.write_table(table, folder / f"part-{part}.parquet")
    return folder


def prepare(name: str, path: str) -> measure.Work:
    from elute.clicks import Training, model_of
    from elute.io.sessions import LISTS, read_sessions

    folder = Path(path)
    model_name, way = name.split(", ")

    def judged() -> Any:
        began, used, marks = time.perf_counter(), time.process_time(), []
        sessions, vocabulary = read_sessions(folder / "part-0.parquet", LISTS)
        model = model_of(model_name)(vocabulary.n_documents, RANKS)
        if way == "exact":
            model.fit(sessions)
        else:
            held_out, _ = read_sessions(folder / "part-1.parquet", LISTS, vocabulary)
            marks.append(time.perf_counter())
            model.fit(sessions, held_out, training=Training(), progress=lambda *_: marks.append(time.perf_counter()))
        np.asarray(model.relevance_values_)  # computed when it is asked for
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
        test, _ = read_sessions(folder / "part-2.parquet", LISTS, vocabulary)
        return {
            "seconds": seconds,
            "cpu": cpu,
            "epochs": np.diff(marks).tolist(),
            "conditional": conditional_perplexity(model.predict_conditional_clicks(test), test.click).mean,
            "marginal": perplexity(model.predict_clicks(test), test.click).mean,
        }

    return judged


def peer(model: str, folder: Path, sessions: int, how: str) -> dict[str, Any] | str:
    """CLAX, judged as the others are."""
    found = clax(model, folder, (sessions, HELD_OUT, HELD_OUT, len(relevance_of(sessions))), how)
    if isinstance(found, str):
        return found
    predicted, (_, clicks, _) = (
        np.load(folder.parent / f"{folder.name}-clax-{model}.npz"),
        draw(model, relevance_of(sessions), HELD_OUT, 3),
    )
    return found | {
        "conditional": conditional_perplexity(predicted["conditional"], clicks).mean,
        "marginal": perplexity(predicted["marginal"], clicks).mean,
    }


def truth(model: str, sessions: int) -> dict[str, float]:
    """Perplexity of the user's own probabilities."""
    _, clicks, shown = draw(model, relevance_of(sessions), HELD_OUT, 3)
    user = build_user(model, **USERS[model])
    return {"marginal": perplexity(user.probabilities(shown), clicks).mean}


def row(model: str, who: str, result: dict[str, Any] | str) -> str:
    if isinstance(result, str):
        return f"| {model} | {who} | {result} | | | | | | |"
    epochs = result.get("epochs", [])
    cells = [
        f"{epochs[0]:.1f}" if epochs else "–",
        f"{np.median(epochs[1:]):.2f} ({len(epochs)})" if len(epochs) > 1 else "–",
        *(f"{result[key]:.1f}" if key in result else "–" for key in ("seconds", "cpu")),
        *(f"{result[key]:.4f}" if key in result else "–" for key in ("conditional", "marginal")),
        f"{result['gib']:.1f}" if "gib" in result else "–",
    ]
    return f"| {model} | {who} | " + " | ".join(cells) + " |"


def main() -> None:
    sessions = int(os.environ.get("BENCH_SESSIONS", "1000000"))
    repeats = int(os.environ.get("BENCH_REPEATS", "1"))
    print(f"\n{sessions:,} sessions of {RANKS}, from the file\n")
    print(
        "| model | by | first epoch, s | later epochs, s (number) | to the end, s | CPU s "
        "| perplexity given clicks above | perplexity | peak GiB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for model in USERS:
        folder = session_files(model, sessions)
        names = [f"{model}, {way}" for way in WAYS]
        found = measure.compare("benchmarks.clicks", names, str(folder), repeats)
        for name in names:
            print(row(model, f"elute, {name.split(', ')[1]}", found[name]["result"] | {"gib": found[name]["gib"]}))
        for how in ("arrays", "loader"):
            print(row(model, f"CLAX, {how}", peer(model, folder, sessions, how)), flush=True)
        print(row(model, "truth", truth(model, sessions)), flush=True)


if __name__ == "__main__":
    measure.main(prepare) if "--child" in sys.argv else main()
