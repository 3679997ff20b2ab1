"""`elute.auditing.cmip` against known answers: error and seconds of each estimator, size and power of its test.

    python -m benchmarks.cmip

Five grades; within each, the pair is Gaussian with correlation rho, or X = Y² + noise · N(0, 1). No estimator can have
a standard error below sd(log ratio) / √n: the column "floor".
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elute.auditing.cmip import cmip
from elute.auditing.cmip.metric import Name

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from reference.plain_information import gaussian_pair, of_correlation, of_square, square_pair

Pair = Callable[[int, np.random.Generator], tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]


def cases() -> dict[str, tuple[Pair, float]]:
    gaussian = {
        f"rho {rho}": ((lambda n, rng, rho=rho: gaussian_pair(n, rho, rng)), of_correlation(rho))
        for rho in (0, 0.1, 0.3, 0.5, 0.7, 0.9)
    }
    square = {
        f"Y² + {noise} N": ((lambda n, rng, noise=noise: square_pair(n, noise, rng)), of_square(noise))
        for noise in (0.5, 1.0, 3.0)
    }
    return {**gaussian, **square}


def graded(
    pair: Pair, n: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    x, y, log_ratio = pair(n, rng)
    grade = rng.integers(0, 5, n)
    return x + grade, y + grade, grade, log_ratio


def errors(estimators: list[Name], n: int, draws: int) -> None:
    print(f"\n{n:,} documents, {draws} draws: bias ± standard deviation, share within the tolerance, seconds\n")
    tolerance = 0.01 if n >= 60_000 else 0.02
    print("| case | truth | floor | " + " | ".join(estimators) + " |\n|" + "---|" * (3 + len(estimators)))
    for name, (pair, truth) in cases().items():
        rng = np.random.default_rng(0)
        found: dict[Name, list[float]] = {estimator: [] for estimator in estimators}
        seconds = dict.fromkeys(estimators, 0.0)
        floor = 0.0
        for draw in range(draws):
            x, y, grade, log_ratio = graded(pair, n, rng)
            floor = log_ratio.std() / math.sqrt(n)
            for estimator in estimators:
                started = time.perf_counter()
                found[estimator].append(cmip(x, y, grade, estimator, seed=draw).estimate - truth)
                seconds[estimator] += time.perf_counter() - started
        row = [
            f"{np.mean(e):+.4f} ± {np.std(e):.4f}, {np.mean(np.abs(e) <= tolerance):.0%}, {seconds[k] / draws:.2f} s"
            for k, e in found.items()
        ]
        print(f"| {name} | {truth:.4f} | {floor:.4f} | " + " | ".join(row) + " |", flush=True)


def rejections(n: int, draws: int) -> None:
    print(f"\nRejected at 0.05, {n:,} documents, {draws} draws\n\n| case | share |\n|---|---|")
    for name, (pair, _) in cases().items():
        if name in ("rho 0", "rho 0.1", "Y² + 3.0 N"):
            rng = np.random.default_rng(1)
            p = [
                cmip(x, y, grade, "copula", seed=draw, permutations=199).p_value
                for draw in range(draws)
                for x, y, grade, _ in [graded(pair, n, rng)]
            ]
            print(f"| {name} | {np.mean(np.array(p) <= 0.05):.1%} |", flush=True)


def main() -> None:
    rng = np.random.default_rng(0)
    cmip(rng.random(1_000), rng.random(1_000), rng.integers(0, 5, 1_000))
    errors(["knn", "ksg", "copula"], 6_000, 30)
    errors(["knn", "ksg", "copula"], 60_000, 8)
    errors(["dv"], 6_000, 1)
    rejections(1_000, 600)
    rejections(60_000, 20)


if __name__ == "__main__":
    main()
