"""How far judgments can be trusted, where the truth is simulated.

    python -m benchmarks.judge [--out PAGE.md]

Queries have 25 documents with Beta relevance and pages of 10, ordered by a ranker that has a noisy idea of relevance
and draws a little anew for each page. Clicks are position-based, with propensity 1/k. The worlds differ only in how
many pages a query has. A true grade is the band of true relevance among all documents of the query that were shown,
judged or not. Compared are the judgments of `elute.judge`, the same with all items, and quantiles of the estimates of
all items, which was the rule before there were posteriors.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import elute

Floats = NDArray[np.float64]

WORLDS = {"dense": (40, 3_000), "sparse": (400, 100), "very sparse": (4_000, 6)}
"""Queries, and pages of each."""

DOCUMENTS, PLACES, LEVELS = 25, 10, 4
KEY = ["query_id", "doc_id"]
JUDGE, ALL, QUANTILES = "judge", "judge, all items", "quantiles of estimates"


class Precision(NamedTuple):
    """Of a rule's grades: how many items have one, and how many of these are the true one, and off by two or more."""

    items: int
    exact: float
    far: float
    unclicked: float
    """Of the items with the highest grade, those that nobody clicked."""


def simulate(queries: int, pages: int, seed: int) -> tuple[pd.DataFrame, Floats]:
    """A log, and the true relevance, (queries, documents)."""
    rng = np.random.default_rng(seed)
    relevance = rng.beta(0.6, 2.4, (queries, DOCUMENTS))
    liked = np.log(relevance) + rng.normal(0, 1.0, relevance.shape)
    query = np.repeat(np.arange(queries), pages)
    shown = np.argsort(-(liked[query] + rng.gumbel(0, 0.7, (len(query), DOCUMENTS))), axis=1)[:, :PLACES]
    place = np.arange(1, PLACES + 1)
    click = rng.random(shown.shape) < np.take_along_axis(relevance[query], shown, 1) / place
    columns = {
        "query_id": np.repeat(query, PLACES),
        "doc_id": shown.ravel(),
        "position": np.tile(place, len(query)),
        "click": click.ravel().astype(np.int8),
    }
    return pd.DataFrame(columns), relevance


def grade_by_quantiles(relevance: pd.Series, query: pd.Series) -> NDArray[np.int64]:
    """Grades by quantiles within the query; alike ones share theirs."""
    by_query = relevance.groupby(query)
    share = (by_query.rank(method="average") - 0.5) / by_query.transform("size")
    return np.floor(LEVELS * share).astype(np.int64).to_numpy()


def measure(judged: pd.DataFrame) -> Precision:
    """`judged`: `grade`, `true` and `clicks`, an item a row."""
    off = (judged["grade"] - judged["true"]).abs()
    best = judged[judged["grade"] == LEVELS - 1]
    return Precision(
        len(judged), float((off == 0).mean()), float((off > 1).mean()), float((best["clicks"] == 0).mean())
    )


def judge_world(queries: int, pages: int, seed: int) -> dict[str, pd.DataFrame]:
    """By rule: its judgments beside the true grades."""
    log, relevance = simulate(queries, pages, seed)
    fit = elute.fit(log)
    shown = fit.relevance.to_pandas()
    shown["grade"] = grade_by_quantiles(shown["relevance"], shown["query_id"])
    truth = pd.Series(relevance[shown["query_id"], shown["doc_id"]])
    true = shown[KEY].assign(true=grade_by_quantiles(truth, shown["query_id"]))
    every = elute.judge(fit, all_items=True).table.to_pandas().astype(dict.fromkeys(KEY, np.int64))
    rules = {JUDGE: every[every["known"]], ALL: every, QUANTILES: shown}
    return {rule: judged.merge(true, on=KEY) for rule, judged in rules.items()}


def write_precision(worlds: dict[str, dict[str, pd.DataFrame]]) -> Iterator[str]:
    yield "| world | rule | judged | of all shown | true grade | off by 2 or more | highest grade, never clicked |"
    yield "|---|---|---|---|---|---|---|"
    for world, rules in worlds.items():
        shown = len(rules[QUANTILES])
        for rule, judged in rules.items():
            p = measure(judged)
            shares = " | ".join(f"{share:.1%}" for share in (p.items / shown, p.exact, p.far, p.unclicked))
            yield f"| {world} | {rule} | {p.items:,} | {shares} |"


def write_calibration(worlds: dict[str, dict[str, pd.DataFrame]]) -> Iterator[str]:
    yield "| world | tenth of judgments by confidence | mean confidence | true grade |"
    yield "|---|---|---|---|"
    for world, rules in worlds.items():
        judged = rules[ALL].sort_values("confidence", kind="stable")
        for tenth, part in enumerate(np.array_split(np.arange(len(judged)), 10), 1):
            rows = judged.iloc[part]
            right = (rows["grade"] == rows["true"]).mean()
            yield f"| {world} | {tenth} | {rows['confidence'].mean():.2f} | {right:.2f} |"


def write_page(seed: int) -> Iterable[str]:
    worlds = {name: judge_world(queries, pages, seed) for name, (queries, pages) in WORLDS.items()}
    sizes = ", ".join(
        f"{name}: {queries:,} queries with {pages:,} pages each" for name, (queries, pages) in WORLDS.items()
    )
    yield from ("# Precision of judgments", "", f"Simulated worlds, seed {seed} ({sizes}).", "")
    yield from write_precision(worlds)
    yield from ("", "Is a confidence what it says? All items, known or not:", "")
    yield from write_calibration(worlds)


def main() -> None:
    parser = argparse.ArgumentParser(description="Precision of judgments, where the truth is simulated.")
    parser.add_argument("--out", type=Path, help="File to write; without it the page goes to stdout.")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    page = "\n".join(write_page(chosen.seed)) + "\n"
    if chosen.out is None:
        sys.stdout.write(page)
    else:
        chosen.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
