"""`elute.repair.merge` at the size of the identifiability paper's Table 4, against Prim over all pairs.

    python -m benchmarks.merge

The paper's graphs: about 48,900 factors (10 positions × 5,000 contexts) in 28,958 components (Yahoo!) and in 47,976
(Istella-S), bias features of 11 dimensions (Appendix C.3).
"""

from __future__ import annotations

import resource
import time

import numpy as np
from numpy.typing import NDArray

from elute.kernels.jit import jit
from elute.repair.merge import find_minimum_merges

TABLE_4 = {"Yahoo!": (48_894, 28_958, [15_684, 98, 96]), "Istella-S": (48_919, 47_976, [101, 7, 5])}


def factors(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """`n` of the 50,000 pairs of position and context, as bias features."""
    contexts = rng.normal(0, 0.35, size=(5_000, 10))
    chosen = rng.permutation(50_000)[:n]
    return np.column_stack((contexts[chosen // 10], 10.0 * (chosen % 10)))


def components(n: int, k: int, largest: list[int], rng: np.random.Generator) -> NDArray[np.int32]:
    """Labels of `n` factors in `k` components, the largest as given and the rest at random."""
    labels = np.concatenate([np.repeat(np.arange(len(largest)), largest), np.arange(len(largest), k)])
    labels = np.concatenate([labels, rng.integers(len(largest), k, size=n - len(labels))])
    return rng.permutation(labels).astype(np.int32)


@jit
def prim(features: NDArray[np.float64], label: NDArray[np.int32], k: int) -> float:
    """Algorithm 3's loop over all pairs: the total cost of the tree, in O(n²) distances."""
    n, axes = features.shape
    nearest = np.full(n, np.inf)
    found = np.zeros(k, np.bool_)
    current, total = label[0], 0.0
    for step in range(k):
        found[current] = True
        for i in range(n):
            if label[i] == current:
                for j in range(n):
                    if not found[label[j]]:
                        d = 0.0
                        for axis in range(axes):
                            d += (features[i, axis] - features[j, axis]) ** 2
                        nearest[j] = min(nearest[j], d)
        best = np.inf
        for j in range(n):
            if not found[label[j]] and nearest[j] < best:
                best, current = nearest[j], label[j]
        if step < k - 1:
            total += np.sqrt(best)
    return total


def main() -> None:
    rng = np.random.default_rng(0)
    find_minimum_merges(factors(100, rng), components(100, 60, [5], rng))
    prim(factors(100, rng), components(100, 60, [5], rng), 60)

    print("Growth, 60% as many components as factors (seconds)\n")
    print("| factors | Prim over all pairs | elute | equal cost |\n|---|---|---|---|")
    for n in (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 48_000):
        features, label = factors(n, rng), components(n, n * 6 // 10, [n // 10], rng)
        started = time.perf_counter()
        _, costs = find_minimum_merges(features, label)
        ours = time.perf_counter() - started
        theirs, equal = "", ""
        if n <= 8_000:
            started = time.perf_counter()
            total = prim(features, label, n * 6 // 10)
            theirs, equal = f"{time.perf_counter() - started:.2f}", "yes" if np.isclose(total, costs.sum()) else "NO"
        print(f"| {n:,} | {theirs} | {ours:.2f} | {equal} |", flush=True)

    print("\nThe size of Table 4\n\n| like | factors | components | seconds |\n|---|---|---|---|")
    for name, (n, k, largest) in TABLE_4.items():
        features, label = factors(n, rng), components(n, k, largest, rng)
        started = time.perf_counter()
        pairs, _ = find_minimum_merges(features, label)
        assert len(pairs) == k - 1
        print(f"| {name} | {n:,} | {k:,} | {time.perf_counter() - started:.2f} |", flush=True)
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
