"""The limits paper: its worked numbers, Figure 1, and how often each test of an assumption is right over worlds."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from elute.auditing.assumptions import assess_assumptions
from elute.estimate.models.pbm import PBM
from elute.estimate.solve.problem import Floats
from elute.reporting.charts import specs
from elute_reproduce.limits.numbers import CASCADE, OTHERS, check_worked_numbers, plackett_luce
from elute_reproduce.limits.repeated import SETTING, claim_visited, count_visited, tabulate_visited
from elute_reproduce.limits.verdicts import MORE, REPLICATES, WORLDS_A_SEED, read_verdicts, share_rejected
from elute_reproduce.limits.worlds import DENSITY, ITEMS, PLACES, WORLDS, draw
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

SIZES = (60, 600)
"""Impressions a cell."""

TESTS = ("examination", "groups", "linear", "affine", "linear in labels", "pairwise debiasing")

_TRUE = {
    "pbm": ("examination", "groups", "linear", "affine", "linear in labels"),
    "contextual pbm": (),
    "trust": ("affine", "linear in labels"),
    "cascade": ("examination", "groups", "linear", "affine", "linear in labels"),
    "cascade, by position": (),
    "dbn": ("examination", "groups", "linear", "affine", "linear in labels"),
    "dbn, by position": (),
    "plackett-luce": (),
    "no bias": ("examination", "groups", "linear", "affine", "linear in labels", "pairwise debiasing"),
}
"""What theory says holds in each world, exactly. ('groups' supposes r·o.)"""

Shares = dict[tuple[str, int, str], Floats]


def run(study: Study) -> Reproduction:
    """20 worlds of each kind for every seed asked for: 200 by default, 1,000 where a size is measured."""
    rejected = _count_rejections(study)
    visited = count_visited(study)
    number, many = (study.seeds * WORLDS_A_SEED * times for times in (1, MORE))
    return Reproduction(
        name="limits",
        title="Limits of unbiasedness: do tests find where a click model's assumptions fail?",
        source="Oosterhuis, Reaching the End of Unbiasedness (ICTIR 2022): Section 6.1, Figure 1, Theorems 5.5 and 7.2",
        settings=(
            f"{number:,} worlds of each kind, {many:,} where an assumption holds: {ITEMS} items, {PLACES} factors, "
            f"each item under each with probability {DENSITY}; {SIZES[0]} or {SIZES[1]} impressions a cell. Relevance "
            "uniform between 0.05 and 0.95.",
            "A factor is a place on a page whose other results are fixed (a display context, Definition 5.1). In "
            "worlds 'by position' it is the place alone, over random pages of the item's query, of 4 queries.",
            "Clicks come from a phone or a desktop, in shares that differ by item; only 'contextual pbm' users act "
            "differently on the two. The log's bias column is the position.",
            f"Shares of worlds in which a test rejects at level 0.05, with {REPLICATES} draws a test; in the others it "
            f"holds, -1: never testable. A share of 5% of {many:,} worlds is itself known to ± "
            f"{_sampling_error(many):.1%} (two standard errors), one of 50% of {number:,} to ± "
            f"{np.sqrt(1 / number):.1%}.",
            SETTING,
        ),
        compared=[*_table(rejected), *tabulate_visited(visited)],
        claims=(*_claims(rejected, many), *claim_visited(visited, many), *check_worked_numbers()),
        figures=(_figure(),),
        reading=_READING,
    )


def _count_rejections(study: Study) -> Shares:
    """By world, size and test: 1 where rejected, 0 where it holds, NaN where untestable."""
    found: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    jobs = [
        (world, size, [2, code, size, run])
        for code, world in enumerate(WORLDS)
        for size in SIZES
        for run in range(study.seeds * WORLDS_A_SEED * (MORE if _TRUE[world] else 1))
    ]
    for (world, size, _), shares in zip(jobs, study.map("worlds", _test_world, jobs), strict=True):
        for test, share in shares.items():
            found[world, size, test].append(share)
    return {key: np.array(values) for key, values in found.items()}


def _test_world(world: str, size: int, seed: list[int]) -> dict[str, float]:
    """By test."""
    log = draw(world, size, np.random.default_rng(seed))
    fit = PBM(relevance_prior="none").fit(log.counts, allow_unidentified=True)
    findings = assess_assumptions(
        log.counts, fit, groups=log.groups, labels=log.relevance, seed=seed[-1], replicates=REPLICATES
    )
    return read_verdicts(findings)


def _table(rejected: Shares) -> list[ComparedValue]:
    return [
        ComparedValue(
            {"world": world, "impressions a cell": f"{size:,}", "test": test},
            (share_rejected(rejected[world, size, test]),),
        )
        for world in WORLDS
        for size in SIZES
        for test in TESTS
    ]


def _claims(rejected: Shares, number: int) -> tuple[Claim, ...]:
    size = {key: share_rejected(found) for key, found in rejected.items() if key[2] in _TRUE[key[0]]}
    outside = {key: value for key, value in size.items() if not 0.03 <= value <= 0.07}
    beyond = {key: value for key, value in outside.items() if not abs(value - 0.05) <= 0.02 + _sampling_error(number)}
    large = SIZES[1]
    return (
        Claim(
            "Where an assumption holds it is rejected in 3% to 7% of worlds, at level 0.05.",
            not outside,
            f"{len(size) - len(outside)} of {len(size)} shares, from {min(size.values()):.1%} to "
            f"{max(size.values()):.1%}{_name_shares(outside)}",
        ),
        Claim(
            "No share is outside 3% to 7% by more than two standard errors of itself.",
            not beyond,
            f"{len(beyond)} of {len(size)}{_name_shares(beyond)}",
        ),
        _claim_power(
            rejected, "Trust bias is told from position bias: 'linear' is rejected.", "trust", large, "linear"
        ),
        _claim_power(
            rejected, "Plackett–Luce choice is not affine (Section 5.1): rejected.", "plackett-luce", large, "affine"
        ),
        _claim_power(
            rejected, "With labels, Plackett–Luce choice is not affine.", "plackett-luce", large, "linear in labels"
        ),
        _claim_power(rejected, "A device that changes position effects is found.", "contextual pbm", large, "groups"),
        Claim(
            "A cascade is affine given the display context (Section 5.1).",
            share_rejected(rejected["cascade", large, "affine"]) <= 0.07,
            f"'affine' rejected in {share_rejected(rejected['cascade', large, 'affine']):.1%} of worlds",
        ),
        _claim_power(
            rejected,
            "Recorded by position alone, it is not: α depends on the other results.",
            "cascade, by position",
            large,
            "examination",
        ),
    )


def _sampling_error(number: int) -> float:
    """Two standard errors of a share of 5% of so many worlds."""
    return 2 * float(np.sqrt(0.05 * 0.95 / number))


def _name_shares(shares: dict[tuple[str, int, str], float]) -> str:
    """Single shares in words."""
    words = (f"{test} of {world}, {size}: {value:.1%}" for (world, size, test), value in shares.items())
    return f" ({'; '.join(words)})" if shares else ""


def _claim_power(rejected: Shares, sentence: str, world: str, size: int, test: str) -> Claim:
    small, large = (share_rejected(rejected[world, n, test]) for n in SIZES)
    return Claim(
        sentence,
        share_rejected(rejected[world, size, test]) >= 0.8,
        f"rejected in {small:.0%} of worlds at {SIZES[0]} impressions a cell, {large:.0%} at {SIZES[1]}",
    )


def _figure() -> StudyFigure:
    """Figure 1."""
    r = np.linspace(0.0, 1.0, 101)
    rows = [
        {"relevance": float(x), "click probability": float(y), "user": name}
        for name, values in (("Plackett–Luce", plackett_luce(r)), ("cascade", CASCADE * r))
        for x, y in zip(r, values, strict=True)
    ]
    chart = specs.lines(rows, x="relevance", y="click probability", series="user", domain=(0.0, 1.0))
    caption = (
        f"Figure 1: click probability against relevance. Plackett–Luce choice beside other relevances of {OTHERS} "
        f"in sum is not affine; a cascade with α = {CASCADE} is"
    )
    return StudyFigure("figure1", caption, chart)


_READING = (
    "'Holds' means that these clicks do not contradict the assumption, not that it is true: at 60 impressions a cell "
    "several wrong models go unnoticed in a good part of worlds, as the table shows.",
    "A cascade or a DBN user is as good as a position-based one where the display context is recorded: examination "
    "then depends on the context alone. By position alone the same users are not of the form r·o: examination depends "
    "on the query's other results. That is what the paper means by α depending on other items.",
    "Without labels a bend that all contexts share cannot be seen: relevance is known only up to what the lines show. "
    "Plackett–Luce choice is found out because contexts bend it differently.",
    "'groups' asks whether one r·o serves all groups. Where r·o itself is wrong it may be rejected though groups are "
    "alike, as devices show different mixtures of items: read it where adding the column makes 'examination' hold.",
    "'pairwise debiasing' is rejected wherever propensities differ, whatever the user, as Theorem 7.2 says it must be.",
    "Sizes are over worlds of known truth, drawn anew each time, so they hold for logs of this shape. That in "
    "which 'pairwise debiasing' is true is 'no bias'.",
    "'linear in labels' was given the true relevance. Graded labels must be turned into probabilities first, or the "
    "test answers whether the grades are equidistant.",
)
