"""Table 4 of the identifiability paper: the identifiability graph under position and 5,000 contexts.

Edges are counted factor by factor with one mark for each factor, so that no clique is ever written down: an item shown
under n factors costs n² steps but no memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elute.cells.counts import Counts
from elute.checking.check import check
from elute.kernels.jit import jit
from elute_reproduce.identifiability import semi_synthetic as semi
from elute_reproduce.identifiability.semi_synthetic import Ints, SemiSyntheticWorld
from elute_reproduce.identifiability.synthetic import items_of
from elute_reproduce.identifiability.twins import TWINS, make_twins
from elute_reproduce.result import Claim, ComparedValue, Published, Reproduction
from elute_reproduce.study import Study

_POSITIONS, _CONTEXTS = "positions alone", f"positions × {semi.CONTEXTS:,} contexts"
_LARGEST = ("nodes in the largest component", "in the second", "in the third")
_STATISTICS = ("nodes", "edges", "components", *_LARGEST)

_PUBLISHED = {
    semi.YAHOO: (48_894, 59_811_898, 28_958, 15_684, 98, 96),
    semi.ISTELLA: (48_919, 5_972, 47_976, 101, 7, 5),
}


def run(study: Study) -> Reproduction:
    """Positions alone stand beside the paper's graph: where they are not connected, no number of contexts is."""
    sets = [*semi.load_datasets(study.data), *make_twins()]
    found: dict[tuple[str, str], list[dict[str, int]]] = {}
    for number, dataset in enumerate(sets):
        for seed, (context_rng, click_rng) in enumerate(study.generators(2)):
            pages = semi.rank(dataset, seed)
            for bias, contexts in ((_POSITIONS, 1), (_CONTEXTS, semi.CONTEXTS)):
                world = semi.draw(dataset.train, pages, contexts, context_rng)
                found.setdefault((dataset.name, bias), []).append(compute_statistics(world, click_rng))
            study.progress(dataset.name, number * study.seeds + seed + 1, len(sets) * study.seeds)
    known = {dataset.name: dataset.known for dataset in sets}
    return Reproduction(
        name="identifiability-table4",
        title="Table 4: the identifiability graph",
        source="Chen et al., Identifiability Matters (ICML 2024), Table 4; " + ", ".join(known),
        settings=(
            f"{study.seeds} runs; the 1% of queries (at least one) that a Ranking SVM learns from and the context of "
            "every impression are drawn anew in each.",
            "The first ten documents of every query are shown; items are feature vectors. An edge is a pair of "
            "factors with an item in common, counted once however many items they share.",
            TWINS,
        ),
        compared=[
            ComparedValue(
                {"data": name, "bias": bias, "statistic": statistic},
                tuple(float(values[statistic]) for values in runs),
                _look_up_published(known[name], bias, statistic),
            )
            for (name, bias), runs in found.items()
            for statistic in _STATISTICS
        ]
        + [
            ComparedValue(
                {"data": semi.PUBLISHED.format(name), "bias": _CONTEXTS, "statistic": statistic},
                (),
                _look_up_published(name, _CONTEXTS, statistic),
            )
            for name in _PUBLISHED
            if name not in known.values()
            for statistic in _STATISTICS
        ],
        claims=[claim for name in known for claim in _claims(name, found[name, _POSITIONS], found[name, _CONTEXTS])],
        reading=(
            "Where positions alone fall into many components, as they do where hardly any feature vector occurs twice, "
            "contexts have nothing left to break: the share of components among factors then says nothing of contexts.",
            "The published edges of Yahoo! (59,811,898) are nearly those of one clique of 10,937 factors "
            "(59,803,516). The paper's public code reads the padding of short lists as a feature vector that occurs "
            "under very many factors; here short lists have no padding, but for the Yahoo! twin's. The printed "
            "edges cannot all be right: that clique leaves 8,382 edges for the 9,000 joins that 28,958 components "
            "need beside it.",
        ),
    )


def compute_statistics(world: SemiSyntheticWorld, rng: np.random.Generator) -> dict[str, int]:
    """Table 4's rows for one log; 0 for a component that there is not."""
    with world.draw_log(rng) as log:
        verdict = check(log, target_log_se=None)
        counts = verdict.counts
    largest = [*verdict.found.factors[: len(_LARGEST)].tolist(), 0, 0][: len(_LARGEST)]
    return {
        "nodes": counts.n_factors,
        "edges": count_edges(counts),
        "components": verdict.components,
        **dict(zip(_LARGEST, largest, strict=True)),
    }


def count_edges(counts: Counts) -> int:
    """Distinct pairs of factors that share an item."""
    order = np.argsort(counts.factor, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(counts.factor, minlength=counts.n_factors))))
    return _count_edges(counts.offsets, counts.factor, starts, items_of(counts)[order])


@jit
def _count_edges(offsets: Ints, factor: NDArray[np.int32], starts: Ints, item: Ints) -> int:
    """`item[starts[t]:starts[t + 1]]` are the items of factor t."""
    found = 0
    mark = np.full(starts.shape[0] - 1, -1)
    for t in range(mark.shape[0]):
        for i in item[starts[t] : starts[t + 1]]:
            for other in factor[offsets[i] : offsets[i + 1]]:
                if other > t and mark[other] != t:
                    mark[other] = t
                    found += 1
    return found


def _look_up_published(known: str | None, bias: str, statistic: str) -> Published | None:
    if known is None or bias != _CONTEXTS:
        return None
    return Published(float(_PUBLISHED[known][_STATISTICS.index(statistic)]))


def _claims(name: str, alone: list[dict[str, int]], contexts: list[dict[str, int]]) -> tuple[Claim, ...]:
    most = max(run["components"] for run in alone)
    shares, before = ([run["components"] / run["nodes"] for run in runs] for runs in (contexts, alone))
    return (
        Claim(
            f"{name}: with positions alone the graph is connected.",
            most == 1,
            f"at most {most:,} components of {max(run['nodes'] for run in alone):,} positions",
        ),
        Claim(
            f"{name}: {semi.CONTEXTS:,} contexts make more than half as many components as factors, and positions "
            "alone do not.",
            min(shares) > 0.5 >= max(before),
            f"{np.mean(shares):.1%} on average (as published: Yahoo! 59.2%, Istella-S 98.1%); positions alone "
            f"{np.mean(before):.1%}",
        ),
    )
