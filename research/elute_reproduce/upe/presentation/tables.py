"""What the UPE tables share: metrics by learner with marks of significance, and the sentences of their settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elute.auditing.significance import Difference, fisher_randomisation
from elute.simulation.grades import PROPENSITIES
from elute_reproduce.result import Claim, ComparedValue
from elute_reproduce.study import Study
from elute_reproduce.upe.experiment.grid import SEEDS, Grid, describe_effort
from elute_reproduce.upe.experiment.learners import BASELINES, FITTED, PAGES, RANDOM, UPE_PUBLIC, UPE_STAGED, UPE_TEXT
from elute_reproduce.upe.experiment.store import METRICS, TrainingRun
from elute_reproduce.upe.experiment.worlds import Graded
from elute_reproduce.upe.presentation.published import Table, look_up_published

BETTER, WORSE = "*", "†"
LEVEL = 0.05
_TWO_SIDED = 1.96
SOURCE = "Luo et al., Unbiased Learning-to-Rank Needs Unconfounded Propensity Estimation (SIGIR 2024)"
POLICIES = (
    "Weak policy: a Ranking SVM on 1% of the training queries, at least one, drawn anew for each seed; its features "
    "are scaled over these queries alone, unlike what `elute simulate --policy weak` does. Strong policy: "
    "LambdaMART on all training grades (100 trees), which nearly knows them."
)
TRUTH = PROPENSITIES[0] / PROPENSITIES[-1]


def average_by_query(runs: Sequence[TrainingRun], metric: str) -> NDArray[np.float64]:
    """The metric of every test query, mean over seeds."""
    return np.asarray(np.mean([run.metrics[metric] for run in runs], axis=0))


def compare(grid: Grid, paradigm: str, one: str, other: str, metric: str) -> Difference:
    """Fisher's randomisation test over test queries; the first less the second."""
    return fisher_randomisation(
        average_by_query(grid[paradigm, one], metric), average_by_query(grid[paradigm, other], metric)
    )


def find_best_baseline(grid: Grid, paradigm: str, metric: str) -> str:
    """The best of the learners without result randomisation that are not UPE's or ours."""
    there = [name for name in BASELINES if (paradigm, name) in grid]
    return max(there, key=lambda name: float(average_by_query(grid[paradigm, name], metric).mean()))


def mark_significance(grid: Grid, paradigm: str, learner: str, metric: str) -> str:
    """Whether UPE or ours is significantly better or worse than the best baseline; nothing for the others."""
    if learner in (*BASELINES, RANDOM):
        return ""
    found = compare(grid, paradigm, learner, find_best_baseline(grid, paradigm, metric), metric)
    return "" if found.p_value > LEVEL else BETTER if found.difference > 0 else WORSE


def metric_rows(graded: Graded, grid: Grid, paradigm: str, table: Table, marked: bool = True) -> list[ComparedValue]:
    """All metrics of every learner of a paradigm."""
    return [
        ComparedValue(
            {"data": graded.name, "learner": learner, "metric": metric},
            tuple(run.mean(metric) for run in own),
            look_up_published(table, graded.known, learner, metric),
            mark=mark_significance(grid, paradigm, learner, metric) if marked else "",
        )
        for (its, learner), own in grid.items()
        if its == paradigm
        for metric in METRICS
    ]


def ratios(runs: Sequence[TrainingRun], position: int = 1) -> NDArray[np.float64]:
    """By seed: the last propensity of a position against that of the last position."""
    return np.array([run.ratios[-1, position - 1] for run in runs])


def curve_rows(where: dict[str, str], runs: Sequence[TrainingRun], positions: Sequence[int]) -> list[ComparedValue]:
    """Last propensities of some positions, and nDCG@10."""
    return [
        *(ComparedValue({**where, "quantity": f"p{k}/p10"}, tuple(ratios(runs, k).tolist())) for k in positions),
        ComparedValue({**where, "quantity": "nDCG@10"}, tuple(run.mean("nDCG@10") for run in runs)),
    ]


def format_spread(values: NDArray[np.float64]) -> str:
    """Mean ± standard deviation."""
    return f"{values.mean():.3g} ± {values.std():.2g}"


def standard_error(values: NDArray[np.float64]) -> float:
    """The standard error of the mean."""
    return float(values.std() / np.sqrt(len(values)))


def format_difference(found: Difference) -> str:
    """A difference and its p-value."""
    return f"{found.difference:+.3f}, p {'< .001' if found.p_value < 0.001 else f'= {found.p_value:.3f}'}"


def claim_better(graded: Graded, grid: Grid, paradigm: str, one: str, other: str, metric: str = "nDCG@10") -> Claim:
    """A claim that one learner is significantly better than another."""
    found = compare(grid, paradigm, one, other, metric)
    return Claim(
        f"{graded.name}, {paradigm}: {one} is better than {other} in {metric}.",
        found.difference > 0 and found.p_value <= LEVEL,
        format_difference(found),
    )


def claim_close(graded: Graded, grid: Grid, paradigm: str, learner: str) -> Claim:
    """A claim that the ratio of the first and the last propensity is right: within 10% of the truth."""
    found = ratios(grid[paradigm, learner])
    return Claim(
        f"{graded.name}, {paradigm}: {learner} has p₁/p₁₀ within 10% of the truth, {TRUTH:.1f}.",
        bool(abs(found.mean() / TRUTH - 1) <= 0.1),
        format_spread(found),
    )


def compute_errors(runs: Sequence[TrainingRun]) -> NDArray[np.float64]:
    """By seed: how far log p₁/p₁₀ of `elute` is from the truth, in its own standard errors."""
    off, se = np.array([(run.log_ratio[-1][0] - np.log(TRUTH), run.log_se[0]) for run in runs]).T
    return np.asarray(np.divide(off, se, out=np.full(len(se), np.inf), where=se > 0))  # 0: the two were merged


def claim_covered(graded: Graded, grid: Grid, paradigm: str) -> Claim:
    """A claim that the error bars of `elute` are right."""
    held = np.abs(compute_errors(grid[paradigm, FITTED])) <= _TWO_SIDED
    return Claim(
        f"{graded.name}, {paradigm}: 95% intervals of p₁/p₁₀ by {FITTED} hold the truth in 4 runs of 5 or more.",
        bool(held.mean() >= 0.8),
        f"{held.sum()} of {len(held)}",
    )


def describe_fit(graded: Graded, grid: Grid, paradigm: str) -> str:
    """Whether the learner `elute` had a recoverable log, and how precise its propensities are."""
    own = grid[paradigm, FITTED]
    merges, errors = sorted(run.merges for run in own), np.array([run.log_se[0] for run in own])
    where = f"{graded.name}, {paradigm}"
    if not any(merges):
        return f"{where}: recoverable in every run, standard error of log p₁/p₁₀ {errors.mean():.3f}"
    count = str(merges[-1]) if merges[0] == merges[-1] else f"{merges[0]} to {merges[-1]}"
    return f"{where}: not recoverable in {sum(map(bool, merges))} of {len(own)} runs, {count} merges of positions"


def describe_settings(
    study: Study, sets: Sequence[Graded], grids: Sequence[Grid], most: int = SEEDS, policies: str = POLICIES
) -> tuple[str, ...]:
    """How all of it was trained."""
    sizes = "; ".join(
        f"{one.name} ({one.train.n_queries} training and {one.test.n_queries} test queries, "
        f"{one.train.features.shape[1]} features, grades to {one.top}, "
        + ("the ranker best on the validation data)" if one.validation else "no validation data: the last ranker)")
        for one in sets
    )
    return (
        f"{sizes}. Queries of one document or none relevant are left out. Features as (sign(x)·log(1 + |x|) − mean) / "
        "sd.",
        f"{min(study.seeds, most)} seeds (at most {most}), each with its own first weights and clicks. {policies}",
        "Ten results are shown; clicks are drawn on the fly by position "
        f"({' '.join(f'{p:g}' for p in PROPENSITIES)}; first to last {TRUTH:.1f}), ε = .1.",
        "Network 512-256-128, ELU, dropout .1; AdaGrad at .05 (sums from .1), gradient norm at most 5; batches of 256, "
        "10,000 steps. The paper tunes rates from .01 to .05 by learner; here all have the same.",
        f"`ipw-random`: click rates on {PAGES:,} pages in random order. `elute`: the fixed-effect fit by feature "
        "vector on all clicks so far, renewed every 500 steps.",
        f"`{UPE_TEXT}`: both losses in every step, one reading of the text; `{UPE_STAGED}`: 500 steps of each, then "
        f"the ranker, every 2,500 steps; `{UPE_PUBLIC}`: clicks weighted by inverse relevance as its target, nothing "
        "frozen, mean probabilities, all losses in every step. It differs from that code in: the encoder (one layer of "
        "64 with ELU; there 256 and 64 with LeakyReLU, and 64 more), the ranker (dropout; there layer norms), one "
        "AdaGrad at .05 (there three at .005, one with weight decay), and the average (every document at every "
        "position; there the list and 16 permutations of it).",
        "`vectorization` is after its paper and differs from it: there the base vector to rank by is predicted from "
        "features, here it is the mean observation of what was shown. MULTR has no rows here: those of former pages "
        "had another objective than its paper's, and it has not been trained anew since it has that one.",
        "; ".join(f"{one.name}: {describe_effort(grid)}" for one, grid in zip(sets, grids, strict=True))
        + ". With `--out FOLDER` trainings are kept in `FOLDER/data` and made anew only where data or settings differ; "
        "those of this page lie in `data/` beside it.",
    )


MERGED = (
    "Where a log is not recoverable, nearest positions are made to share one propensity; without truth in that, what "
    "`elute` learns is biased. Nine merges of ten positions leave no debiasing at all: `elute` then is `naive`."
)


def describe_small_sets(sets: Sequence[Graded]) -> str:
    """What small sets can show."""
    few = [one for one in sets if one.test.n_queries < 1_000]
    if not few:
        return ""
    names = " and ".join(f"{one.name} ({one.test.n_queries} test queries)" for one in few)
    return (
        f"What these data can show: propensities well, as clicks are drawn anew at every step; rankings hardly. With "
        f"{names} a difference of nDCG@10 must reach several hundredths to be told from chance, where the paper's "
        "tables differ by one. A table without marks is what such data give, not evidence that learners are equal."
    )
