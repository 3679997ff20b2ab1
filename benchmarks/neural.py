"""The neural learners: steps a second against the floor, and what each learner makes of weak and strong logs.

    python -m benchmarks.neural [--quick] [--large] [--study] [--steps N] [--seeds N] [--rate R]

The floor is a bare jitted forward and backward pass of the same network on one fixed batch: no clicks drawn, no
features looked up, no optimiser. Needs numpy, jax and optax and `src` on the path; nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.neural.learner import Learner
from elute.neural.learners import learner
from elute.neural.learners.upe import UPE, Stages
from elute.neural.losses import softmax_loss
from elute.neural.metrics import candidates, judged, ndcg
from elute.neural.optimise import Optimiser
from elute.neural.sources import Offline, World, shown_by, world
from elute.neural.train import Settings, train
from elute.ranking import RankingData

BIAS = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
POSITIONS, FEATURES, BATCH = 10, 136, 256
GRADE_SHARES = (0.52, 0.23, 0.13, 0.08, 0.04)
MIX = {"strong": 0.95, "weak": 0.47}
"""Correlation of the logging policy's scores with what makes grades; tuned to nDCG@10 of about .91 and .54."""


class Synthetic(NamedTuple):
    """Graded documents, and what two logging policies score them."""

    train: RankingData
    validation: RankingData
    test: RankingData
    logging: dict[str, NDArray[np.float32]]
    """By document of `train`."""


def synthetic(queries: int = 1_400, seed: int = 0) -> Synthetic:
    """Queries of 20 to 30 documents with 136 features and 5 grades; grades follow a smooth function and noise."""
    rng = np.random.default_rng(seed)
    inner, outer = rng.normal(size=(FEATURES, 32)) / FEATURES**0.5, rng.normal(size=32) / 32**0.5
    other = rng.normal(size=FEATURES) / FEATURES**0.5

    def made(count: int) -> tuple[RankingData, NDArray[np.float64]]:
        offsets = np.concatenate(([0], np.cumsum(rng.integers(20, 31, count))))
        x = rng.normal(size=(offsets[-1], FEATURES))
        signal = _standard(np.tanh(2 * x @ inner) @ outer)
        noisy = signal + 0.3 * rng.normal(size=len(x))
        grades = np.searchsorted(np.quantile(noisy, np.cumsum(GRADE_SHARES)[:-1]), noisy).astype(np.int32)
        names = np.arange(len(x)).astype(np.str_)
        return RankingData(x.astype(np.float32), grades, offsets, names[:count], names), signal

    (data, signal), (validation, _), (test, _) = made(queries), made(queries // 7), made(queries * 2 // 7)
    apart = _standard(data.features @ other)
    scores = {name: (mix * signal + (1 - mix**2) ** 0.5 * apart).astype(np.float32) for name, mix in MIX.items()}
    return Synthetic(data, validation, test, scores)


def _standard(values: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.asarray((values - values.mean()) / values.std(), np.float64)


def logged_world(data: RankingData, scores: NDArray[np.float32]) -> World:
    """What a policy with these scores shows, and users who click with ε = .1 (UPE paper, 5.1)."""
    shown, top = shown_by(jnp.asarray(scores), jnp.asarray(candidates(data)), POSITIONS)
    relevance = 0.1 + 0.9 * (2.0**data.grades - 1) / 15
    return world(data.features, shown, top, relevance, BIAS)


def learners(truth: World, rule: Optimiser) -> dict[str, Learner]:
    """Every learner by name, and readings of UPE."""
    pages = truth.randomised(jax.random.PRNGKey(99), 50_000)
    names = ("naive", "dla", "rem", "pairwise-debias", "vectorization", "multr", "grad-reversal")
    made = {
        name: learner(name, optimiser=rule) for name in (*names, "observation-dropout", "upe-mrr", "upe-dcg", "upe-n")
    }
    return made | {
        "ipw": learner("ipw", optimiser=rule, given=tuple(BIAS)),
        "ipw-random": learner("ipw-random", documents=pages.documents, clicks=pages.clicks, optimiser=rule),
        "upe": UPE(optimiser=rule),
        "upe, in stages": UPE(optimiser=rule, stages=Stages()),
        "upe, mean exponential": UPE(optimiser=rule, average="exponential"),
        "upe, mean probability": UPE(optimiser=rule, average="probability"),
        "upe, probability target": UPE(optimiser=rule, target="probability"),
        "upe, ratio target": UPE(optimiser=rule, target="ratio"),
        "upe, as public": UPE(optimiser=rule, target="clicks", frozen=False, average="probability"),
    }


def speed(truth: World, steps: int, repeats: int) -> dict[str, Any]:
    """Median steps a second of the floor and of training, turn by turn so that a slow spell hits both alike.

    On a CPU also by processor time, which other work on the machine disturbs less.
    """
    naive, dla, upe = learner("naive"), learner("dla"), learner("upe")
    batch = truth.draw(jax.random.PRNGKey(0), BATCH)
    x, mask = truth.features[batch.documents], batch.documents >= 0
    state = naive.init(jax.random.PRNGKey(0), FEATURES, POSITIONS)
    keys = list(jax.random.split(jax.random.PRNGKey(1), steps))

    @jax.jit
    def forward_backward(layers: Any, x: Any, clicks: Any, key: Any) -> Any:
        return jax.value_and_grad(lambda layers: softmax_loss(naive.network.scores(layers, x, key), clicks, mask))(
            layers
        )

    def floor() -> None:
        for number in range(steps):
            out = forward_backward(state.params["ranker"], x, batch.clicks, keys[number])
        jax.block_until_ready(out)

    def trained(model: Learner) -> Any:
        first = model.init(jax.random.PRNGKey(0), FEATURES, POSITIONS)
        return lambda: jax.block_until_ready(Offline(truth).advance(model, first, steps, BATCH))

    work = {"floor": floor, "naive": trained(naive), "dla": trained(dla), "upe": trained(upe)}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for turn in range(repeats + 1):
        for name, run in work.items():
            began, used = time.perf_counter(), time.process_time()
            run()
            if turn:
                taken[name].append((time.perf_counter() - began, time.process_time() - used))
    wall, processor = (
        {name: steps / float(np.median(runs, axis=0)[i]) for name, runs in taken.items()} for i in (0, 1)
    )
    out: dict[str, Any] = {"steps_per_second": wall, "of_the_floor": _relative(wall)}
    if jax.default_backend() == "cpu":
        out["of_the_floor_by_processor_time"] = _relative(processor)
    return out


def large(steps: int, rule: Optimiser, queries: int = 20_000, features: int = 700) -> dict[str, float]:
    """Seconds of a whole training, compilation included, on a set of the size of Yahoo! LETOR set 1."""
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 24 * queries + 1, 24)
    x = rng.standard_normal((24 * queries, features), np.float32)
    signal = _standard(x @ rng.standard_normal(features, np.float32))
    grades = np.searchsorted(np.quantile(signal, np.cumsum(GRADE_SHARES)[:-1]), signal).astype(np.int32)
    names = np.arange(len(x)).astype(np.str_)
    data = RankingData(x, grades, offsets, names[:queries], names)
    truth = logged_world(data, (signal + rng.standard_normal(len(x))).astype(np.float32))
    taken = {}
    for name in ("dla", "upe"):
        began = time.perf_counter()
        model = learner(name, optimiser=rule)
        done = train(model, Offline(truth), Settings(steps, BATCH, 100, steps))
        jax.block_until_ready(done.scores(data.features[:100]))
        taken[name] = round(time.perf_counter() - began, 2)
    return taken


def _relative(rates: dict[str, float]) -> dict[str, float]:
    return {name: rate / rates["floor"] for name, rate in rates.items()}


def study(
    data: Synthetic, settings: Settings, seeds: int, rule: Optimiser, only: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Ratio of propensities 1 to 10 and test nDCG@10 of every learner on the strong and on the weak log."""
    rows, held = [], judged(data.test)
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
    held = judged(data.train)
    for policy, scores in data.logging.items():
        truth = logged_world(data.train, scores)
        rates = (np.asarray(truth.relevance)[np.asarray(truth.documents)] * BIAS).mean(axis=0)
        out[policy] = {"ndcg": float(ndcg(jnp.asarray(scores), held)), "click_rate_ratio": float(rates[0] / rates[-1])}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 queries, few steps")
    parser.add_argument("--study", action="store_true", help="train every learner on both logs")
    parser.add_argument("--large", action="store_true", help="train on 20,000 queries with 700 features")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--start", type=float, default=0.1, help="of AdaGrad's sums of squares")
    parser.add_argument("--only", default="", help="learners to study, by the start of their names, with commas")
    arguments = parser.parse_args()
    rule = Optimiser(rate=arguments.rate, start=arguments.start)
    data = synthetic(200 if arguments.quick else 1_400)
    result: dict[str, Any] = {"device": str(jax.devices()[0]), "world": describe(data)}
    print(json.dumps(result), file=sys.stderr, flush=True)
    truth = logged_world(data.train, data.logging["strong"])
    result["speed"] = speed(truth, *((10, 3) if arguments.quick else (100, 5)))
    if arguments.large:
        result["large"] = large(arguments.steps, rule)
        print(json.dumps(result["large"]), file=sys.stderr, flush=True)
    if arguments.study:
        steps = 100 if arguments.quick else arguments.steps
        settings = Settings(steps, BATCH, 50, max(50, steps // 1_000 * 50))
        result["study"] = study(data, settings, arguments.seeds, rule, tuple(arguments.only.split(",")))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
