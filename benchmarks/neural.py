"""The neural learners: steps a second against the floor, and what each learner makes of weak and strong logs.

    python -m benchmarks.neural [--quick] [--torch] [--large] [--study] [--steps N] [--seeds N] [--rate R]

`benchmarks.neural_speed` says what the floor is. Needs numpy, jax and optax and `src` on the path; nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from benchmarks.neural_speed import BATCH, BIAS, POSITIONS, speed, torch_loop
from elute.errors import EluteError
from elute.neural.learner import Learner
from elute.neural.learners import build_learner
from elute.neural.learners.upe import AFTER_PUBLIC_CODE, UPE, Stages
from elute.neural.metrics import list_candidates, ndcg, to_graded_documents
from elute.neural.optimise import Optimiser
from elute.neural.sources import Offline, SimulatedLists, build_simulated_lists, rank_lists
from elute.neural.train import Settings, train
from elute.ranking.data import RankingData
from elute_reproduce.upe.experiment.synthetic import GRADE_SHARES, Synthetic, draw_synthetic, standardise


def logged_world(data: RankingData, scores: NDArray[np.float32]) -> SimulatedLists:
    """What a policy with these scores shows, and users who click with ε = .1 (UPE paper, 5.1)."""
    shown, top = rank_lists(jnp.asarray(scores), jnp.asarray(list_candidates(data)), POSITIONS)
    relevance = 0.1 + 0.9 * (2.0**data.grades - 1) / 15
    return build_simulated_lists(data.features, shown, top, relevance, BIAS)


def learners(truth: SimulatedLists, rule: Optimiser) -> dict[str, Learner]:
    """Every learner by name, and readings of UPE."""
    pages = truth.randomise(jax.random.PRNGKey(99), 50_000)
    names = ("naive", "dla", "rem", "pairwise-debias", "vectorization", "multr", "grad-reversal")
    made = {
        name: build_learner(name, optimiser=rule)
        for name in (*names, "observation-dropout", "upe-mrr", "upe-dcg", "upe-n")
    }
    return made | {
        "ipw": build_learner("ipw", optimiser=rule, given=tuple(BIAS)),
        "ipw-random": build_learner("ipw-random", documents=pages.documents, clicks=pages.clicks, optimiser=rule),
        "upe": UPE(optimiser=rule),
        "upe, in stages": UPE(optimiser=rule, stages=Stages()),
        "upe, mean exponential": UPE(optimiser=rule, average="exponential"),
        "upe, mean probability": UPE(optimiser=rule, average="probability"),
        "upe, probability target": UPE(optimiser=rule, target="probability"),
        "upe, ratio target": UPE(optimiser=rule, target="ratio"),
        "upe, after the public code": UPE(optimiser=rule, **AFTER_PUBLIC_CODE),
    }


def large(steps: int, rule: Optimiser, queries: int = 20_000, features: int = 700) -> dict[str, float]:
    """Seconds of a whole training, compilation included, on a set of the size of Yahoo! LETOR set 1."""
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 24 * queries + 1, 24)
    x = rng.standard_normal((24 * queries, features), np.float32)
    signal = standardise(x @ rng.standard_normal(features, np.float32))
    grades = np.searchsorted(np.quantile(signal, np.cumsum(GRADE_SHARES)[:-1]), signal).astype(np.int32)
    names = np.arange(len(x)).astype(np.str_)
    data = RankingData(x, grades, offsets, names[:queries], names)
    truth = logged_world(data, (signal + rng.standard_normal(len(x))).astype(np.float32))
    taken = {}
    for name in ("dla", "upe"):
        began = time.perf_counter()
        model = build_learner(name, optimiser=rule)
        done = train(model, Offline(truth), Settings(steps=steps, batch=BATCH, fused=100, every=steps))
        jax.block_until_ready(done.scores(data.features[:100]))
        taken[name] = round(time.perf_counter() - began, 2)
    return taken


def study(
    data: Synthetic, settings: Settings, seeds: int, rule: Optimiser, only: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Ratio of propensities 1 to 10 and test nDCG@10 of every learner on the strong and on the weak log."""
    rows, held = [], to_graded_documents(data.test)
    for policy, scores in data.logging.items():
        truth = logged_world(data.train, scores)
        for name, model in learners(truth, rule).items():
            if not name.startswith(only):
                continue
            for seed in range(seeds):
                began = time.perf_counter()
                try:
                    done = train(model, Offline(truth), settings, seed=seed, validation=data.validation)
                except EluteError as error:
                    print(f"{policy:7} {name:26} {error}", file=sys.stderr, flush=True)
                    continue
                last = done.history[-1]
                row = {
                    "policy": policy,
                    "learner": name,
                    "seed": seed,
                    "ratio": float(1 / last.propensities[-1]),
                    "test_ndcg": float(ndcg(jnp.asarray(done.scores(data.test.features)), held)),
                    "validation_ndcg": [round(moment.ndcg, 4) for moment in done.history],
                    "seconds": round(time.perf_counter() - began, 1),
                }
                rows.append(row)
                print(
                    f"{policy:7} {name:26} ratio {row['ratio']:8.2f}  nDCG@10 {row['test_ndcg']:.3f}"
                    f"  {row['seconds']:6.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
    return rows


def describe(data: Synthetic) -> dict[str, Any]:
    """How strong the two policies are, and what click rates they give."""
    out: dict[str, Any] = {"true_ratio": float(BIAS[0] / BIAS[-1])}
    held = to_graded_documents(data.train)
    for policy, scores in data.logging.items():
        truth = logged_world(data.train, scores)
        rates = (np.asarray(truth.relevance)[np.asarray(truth.documents)] * BIAS).mean(axis=0)
        out[policy] = {"ndcg": float(ndcg(jnp.asarray(scores), held)), "click_rate_ratio": float(rates[0] / rates[-1])}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 queries, few steps")
    parser.add_argument("--torch", action="store_true", help="also DLA as a plain loop in PyTorch, on the CPU")
    parser.add_argument("--study", action="store_true", help="train every learner on both logs")
    parser.add_argument("--large", action="store_true", help="train on 20,000 queries with 700 features")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--start", type=float, default=0.1, help="of AdaGrad's sums of squares")
    parser.add_argument("--only", default="", help="learners to study, by the start of their names, with commas")
    arguments = parser.parse_args()
    rule = Optimiser(rate=arguments.rate, start=arguments.start)
    data = draw_synthetic(200 if arguments.quick else 1_400)
    result: dict[str, Any] = {"device": str(jax.devices()[0]), "world": describe(data)}
    print(json.dumps(result), file=sys.stderr, flush=True)
    turns = (10, 2) if arguments.quick else (50, 5)
    result["speed"] = {f"{features} features": speed(features, *turns) for features in (136, 700)}
    if arguments.torch:
        result["torch"] = {f"{features} features": torch_loop(features, *turns) for features in (136, 700)}
    if arguments.large:
        result["large"] = large(arguments.steps, rule)
        print(json.dumps(result["large"]), file=sys.stderr, flush=True)
    if arguments.study:
        steps = 100 if arguments.quick else arguments.steps
        settings = Settings(steps=steps, batch=BATCH, fused=50, every=max(50, steps // 1_000 * 50))
        result["study"] = study(data, settings, arguments.seeds, rule, tuple(arguments.only.split(",")))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
