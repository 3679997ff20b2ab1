"""Do tests of assumptions keep their size where users come again, and where queries have few pages?"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from elute.auditing.assumptions.affine import assess_affine
from elute.auditing.assumptions.examination import assess_examination
from elute.auditing.assumptions.linear import assess_linear
from elute.auditing.assumptions.null import Drawing, fit_null
from elute.estimate.solve.problem import Floats
from elute_reproduce.limits.verdicts import MORE, REPLICATES, WORLDS_A_SEED, read_verdicts, share_rejected
from elute_reproduce.limits.visits import (
    QUERIES,
    SPARSE_PAGES,
    SPARSE_QUERIES,
    SPARSE_WIDTH,
    USERS,
    VISITS,
    WIDTH,
    draw_sparse,
    draw_visits,
)
from elute_reproduce.result import Claim, ComparedValue
from elute_reproduce.study import Study

VISITED = ("own tastes", "activity")
"""Worlds of users who come again."""

WAYS = ("clusters", "independent", "trust", "sparse")
"""Users as clusters; clicks taken for independent; with trust bias, users as clusters; few pages a query."""

_HOLDS = {"clusters": ("examination", "linear", "affine"), "sparse": ("examination", "linear")}
"""What theory says of them. (No cell of the sparse world is filled enough for 'affine'.)"""

OFFSET = 0.15
"""Of trust: how often the first result is clicked though it is not relevant."""

SETTING = (
    f"Users who come again: {VISITS} visits each with the same query, {USERS} users for each of {QUERIES} "
    f"queries of {WIDTH} results, in nearly the same order at all visits; r·o on average over users. 'Own "
    "tastes': an item is relevant to a user or not; 'activity': all of a user's clicks are multiplied by one "
    "number between 0 and 2. Tested with users as clusters, and with clicks taken for independent. 'Sparse': "
    f"{SPARSE_PAGES} pages of {SPARSE_WIDTH} results for each of {SPARSE_QUERIES} queries."
)
"""How these worlds are made, in words."""


def count_visited(study: Study) -> dict[tuple[str, str, str], Floats]:
    """By world, way and test: as `_count_rejections`. 5 times as many worlds where a size is measured."""
    few, many = (study.seeds * WORLDS_A_SEED * times for times in (1, MORE))
    kinds = [(world, way) for world in VISITED for way in WAYS[:3]] + [("sparse", "sparse")]
    jobs = [
        (world, way, [3, code, run])
        for code, (world, way) in enumerate(kinds)
        for run in range(many if way in ("clusters", "sparse") else few)
    ]
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for (world, way, _), shares in zip(jobs, study.map("users", _test_visited, jobs), strict=True):
        for test in ("examination", "linear", "affine"):
            found[world, way, test].append(shares[test])
    return {key: np.array(values) for key, values in found.items()}


def _test_visited(world: str, way: str, seed: list[int]) -> dict[str, float]:
    """By test."""
    rng = np.random.default_rng(seed)
    log = draw_sparse(rng) if way == "sparse" else draw_visits(world, rng, OFFSET if way == "trust" else 0.0)
    clusters = log.clusters if way in ("clusters", "trust") else None
    base = fit_null(log.counts, clusters)
    drawing = Drawing(seed[-1], REPLICATES, clusters=clusters)
    return read_verdicts(
        [
            assess_examination(base, drawing),
            assess_linear(base, log.counts.factors, drawing),
            assess_affine(log.counts, base.o, drawing),
        ]
    )


def tabulate_visited(visited: dict[tuple[str, str, str], Floats]) -> list[ComparedValue]:
    words = {"independent": "clicks taken for independent", "trust": "trust bias, users as clusters"}
    words |= {"clusters": "users as clusters", "sparse": f"{SPARSE_PAGES} pages a query"}
    return [
        ComparedValue(
            {"world": f"{world}, {words[way]}", "impressions a cell": "few" if way == "sparse" else "about 125"}
            | {"test": test},
            (share_rejected(found),),
        )
        for (world, way, test), found in visited.items()
    ]


def claim_visited(visited: dict[tuple[str, str, str], Floats], number: int) -> tuple[Claim, ...]:
    share = {key: share_rejected(found) for key, found in visited.items()}

    def claim_size(sentence: str, way: str) -> Claim:
        sizes = {key: share[key] for key in share if key[1] == way and key[2] in _HOLDS[way]}
        told = "; ".join(f"{test} of {world}: {value:.1%}" for (world, _, test), value in sizes.items())
        kept = all(0.03 <= value <= 0.07 for value in sizes.values())
        return Claim(sentence, kept, f"{told} ({number:,} worlds each)")

    alone = share["own tastes", "independent", "examination"]
    power = [share[world, "trust", "linear"] for world in VISITED]
    return (
        claim_size("Where users come again, tests with users as clusters reject a true r·o in 3% to 7%.", "clusters"),
        Claim(
            "Taken for independent, clicks of users with tastes of their own reject a true r·o in more than 80%.",
            alone > 0.8,
            f"'examination' rejected in {alone:.0%} of worlds, of 'activity' in "
            f"{share['activity', 'independent', 'examination']:.0%}",
        ),
        Claim(
            "With clusters trust bias is still found.",
            min(power) >= 0.8,
            f"'linear' rejected in {' and '.join(f'{value:.0%}' for value in power)} of worlds",
        ),
        claim_size(f"At {SPARSE_PAGES} pages a query a true r·o is rejected in 3% to 7%.", "sparse"),
    )
