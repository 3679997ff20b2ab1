"""The law of UPE's second stage on the lists and dual-learning curves of trainings: table, chart and claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elute.reporting.charts import specs
from elute.simulation.grades import PROPENSITIES
from elute_reproduce.result import Claim, StudyFigure
from elute_reproduce.upe import exact
from elute_reproduce.upe.exact import Floats, ShownLists
from elute_reproduce.upe.experiment.grid import Grid
from elute_reproduce.upe.experiment.learners import DLA, UPE_STAGED
from elute_reproduce.upe.experiment.training import Setup
from elute_reproduce.upe.experiment.worlds import STRONG, WEAK, Graded, set_up
from elute_reproduce.upe.presentation.tables import TRUTH, ratios

CELLS = tuple((policy, learner) for policy in (STRONG, WEAK) for learner in (DLA, UPE_STAGED))
"""The trainings it rests on."""
_SCALES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
_TABLED = (0.1, 0.5, 1.0, 2.0)
_NEAR, _RIGHT = 0.25, 0.1
_TRUE = np.array(PROPENSITIES)


@dataclass(frozen=True)
class Law:
    """p₁/p₁₀ by seed, for one set under one policy."""

    where: str
    dual: Floats
    """The target: dual learning's, from trainings of its own."""
    trained: Floats
    """UPE in stages, as trained."""
    scaled: dict[float, Floats]
    """Exact, by the scale τ of the score."""
    own: Floats
    """Exact, documents at their own positions (Eq. 7 as printed)."""
    known: Floats
    """Exact, with the true log r as the score."""
    clicks: Floats
    """Exact, with clicks as the target and the logging score."""
    clicks_known: Floats
    """Exact, with clicks as the target and the true log r as the score."""
    right: list[float | None]
    """The τ that gives the truth."""


def solve_law(graded: Graded, grid: Grid) -> list[Law]:
    """Under both policies; the lists are those that the trainings had."""
    return [_solve(graded, grid, policy) for policy in (STRONG, WEAK)]


def _solve(graded: Graded, grid: Grid, policy: str) -> Law:
    runs = grid[policy, DLA]
    world = set_up(graded, policy, len(runs))
    shown = [_list_shown(world, seed) for seed in range(len(runs))]
    curves = [np.asarray(run.log_ratio[-1], np.float64) for run in runs]
    pairs = list(zip(shown, curves, strict=True))

    def first(found: list[Floats]) -> Floats:
        return np.exp([curve[0] for curve in found])

    return Law(
        where=f"{graded.name}, {policy}",
        dual=ratios(runs),
        trained=ratios(grid[policy, UPE_STAGED]),
        scaled={scale: first([exact.adjust(*pair, scale) for pair in pairs]) for scale in _SCALES},
        own=first([exact.adjust_own(*pair, 1.0) for pair in pairs]),
        known=first([exact.adjust(own._replace(score=np.log(own.relevance)), y, 1.0) for own, y in pairs]),
        clicks=first([exact.adjust_clicks(own, _TRUE, own.score) for own in shown]),
        clicks_known=first([exact.adjust_clicks(own, _TRUE, np.log(own.relevance)) for own in shown]),
        right=[exact.find_scale(own, y, TRUTH) for own, y in pairs],
    )


def _list_shown(world: Setup, seed: int) -> ShownLists:
    rows = world.documents[seed]
    there = rows >= 0
    score = np.where(there, world.logging[seed], np.nan).astype(np.float64)
    return ShownLists(score, np.where(there, world.relevance[np.maximum(rows, 0)], np.nan))


def tabulate(laws: Sequence[Law]) -> str:
    """A row for each set and policy; medians over seeds."""
    heads = ["p₁/p₁₀ (truth 11.3)", "DLA, its target", *(f"exact, τ = {scale:g}" for scale in _TABLED)]
    heads += ["trained in stages", "Eq. 7 as printed", "score: true log r", "target: clicks", "clicks and log r"]
    heads += ["τ that gives the truth"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for law in laws:
        values = [law.dual, *(law.scaled[scale] for scale in _TABLED), law.trained, law.own, law.known, law.clicks]
        cells = [law.where, *(f"{np.median(value):.3g}" for value in (*values, law.clicks_known)), _describe_right(law)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _describe_right(law: Law) -> str:
    found = [scale for scale in law.right if scale is not None]
    if not found:
        return "none"
    return f"{np.median(found):.2g}" + ("" if len(found) == len(law.right) else f" ({len(found)} of {len(law.right)})")


def draw(laws: Sequence[Law]) -> StudyFigure:
    """p₁/p₁₀ over τ."""
    rows = [
        {"scale of the score τ": scale, "p₁/p₁₀": float(np.median(found)), "set and policy": law.where}
        for law in laws
        for scale, found in law.scaled.items()
    ]
    rows += [{"scale of the score τ": s, "p₁/p₁₀": TRUTH, "set and policy": "truth"} for s in (_SCALES[0], _SCALES[-1])]
    chart = specs.lines(
        rows, x="scale of the score τ", y="p₁/p₁₀", series="set and policy", log_y=True, size=(560, 300)
    )
    caption = (
        "UPE's second stage solved exactly: p₁/p₁₀ over the scale of the logging policy's score, which no loss ties to "
        "clicks; medians over seeds. At τ = 0 it is dual learning's own answer."
    )
    return StudyFigure("law", caption, chart)


def claim_law(laws: Sequence[Law]) -> list[Claim]:
    """What the law says, and what is false of UPE."""
    return [
        *(_claim_trained(law) for law in laws),
        _claim_all(
            f"Read as Eq. 7 is printed, UPE returns its target: p₁/p₁₀ within {_RIGHT:.0%} of DLA's.",
            [(law.where, law.own, law.dual) for law in laws],
        ),
        _claim_all(
            f"With the true log r as the score, UPE's p₁/p₁₀ is within {_RIGHT:.0%} of the truth.",
            [(law.where, law.known, np.array([TRUTH])) for law in laws],
        ),
        _claim_all(
            "With clicks as the target and the true log r as the score, it is the truth to 5 digits.",
            [(law.where, law.clicks_known, np.array([TRUTH])) for law in laws],
            1e-5,
        ),
        Claim(
            "One scale τ of the score gives the truth on all sets and policies.",
            _agree(laws),
            ", ".join(f"{law.where}: {_describe_right(law)}" for law in laws),
        ),
    ]


def _claim_trained(law: Law) -> Claim:
    solved, trained = (float(np.median(values)) for values in (law.scaled[1.0], law.trained))
    return Claim(
        f"{law.where}: `{UPE_STAGED}`, as trained, has the exact solution's p₁/p₁₀ to {_NEAR:.0%}.",
        abs(trained / solved - 1) <= _NEAR,
        f"trained {trained:.3g}, exact {solved:.3g}",
    )


def _claim_all(sentence: str, pairs: list[tuple[str, Floats, Floats]], within: float = _RIGHT) -> Claim:
    medians = [(where, float(np.median(found)), float(np.median(wanted))) for where, found, wanted in pairs]
    return Claim(
        sentence,
        all(abs(found / wanted - 1) <= within for _, found, wanted in medians),
        ", ".join(f"{where}: {found:.4g} ({wanted:.4g})" for where, found, wanted in medians),
    )


def _agree(laws: Sequence[Law]) -> bool:
    found = [scale for law in laws for scale in law.right]
    known = [scale for scale in found if scale is not None]
    return len(known) == len(found) and max(known) <= 1.1 * min(known)
