"""Is what `elute check` calls known, known? Worlds whose truth is simulated, from dense to very sparse."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from elute.auditing.assumptions.brief import assess_briefly
from elute.checking.check import Check, check
from elute.estimate.priors.gamma import know_items
from elute.estimate.solve.problem import Floats
from elute.known.pairs import CERTAIN, OWN, compare, find_signs
from elute.known.precision import Precision
from elute.log import read_log
from elute.reporting.charts import specs
from elute_reproduce.known.worlds import PLACES, SHAPES, WORLDS, SearchWorld
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

_QUERIES = 400
"""Queries of a log whose pairs are compared with the truth."""

_TESTED = 5
"""Logs of a world on which the tests of `elute fit` are run."""

_ENOUGH = 200
"""Certain pairs of a world, over all logs, below which their share in the right order says little."""


class WorldOutcome(NamedTuple):
    """Of one log. Pairs are those of different true relevance; `inside`: factors whose 95% interval holds the truth."""

    rung: str
    pairs: int
    certain: int
    certain_right: int
    expected_right: float
    right: int
    inside: float
    design_effect: float
    rejected: float
    """1 where the tests of a fit reject the model, 0 where not, NaN where they were not run."""


def run(study: Study) -> Reproduction:
    """Every world, `seeds` logs each."""
    found: dict[str, list[WorldOutcome]] = {}
    for at, (name, world) in enumerate(WORLDS.items()):
        study.progress(name, at, len(WORLDS))
        found[name] = [_try_world(world, number, at) for number in range(study.seeds)]
    shapes = {name: _try_shape(name, study.seeds) for name in SHAPES}
    summed = {name: _sum_up(outcomes) for name, outcomes in found.items()}
    compared = [
        ComparedValue({"world": name, "figure": figure}, (value,))
        for name, figures in summed.items()
        for figure, value in figures.items()
        if np.isfinite(value)
    ]
    return Reproduction(
        name="known",
        title="Is what is called known, known?",
        source="The rungs, the design effect and the order of pairs of `elute check`",
        settings=(
            f"{study.seeds} logs from each of {len(WORLDS)} worlds: queries of 14 documents, ten on a page by a ranker "
            "that changes its mind, positions seen as 1/k, relevance mostly below .3 (Beta(1, 6)).",
            f"Pairs: of {_QUERIES} queries a log, documents shown at least once and of different true relevance. "
            "Certain: at 95%, both documents with evidence of their own. Expected: what the posteriors expect of an "
            "order by them; right: what it is.",
            "Inside: the share of positions whose true log propensity (relative to position 1) lies within ± 1.96 "
            "standard errors, dependence of clicks taken in.",
            f"Model rejected: the share of logs, {_TESTED} a world, in which the tests of `elute fit` reject its "
            "model; nothing where the log is too large for them.",
            "Design effect: the median over positions of the variance over that of independent clicks. Clusters are "
            "queries, and users in 'users who come again'.",
        ),
        compared=compared,
        claims=_judge(found, summed, shapes),
        figures=(_figure(summed),),
        reading=(
            "The last worlds break what the measure rests on. Errors of propensities do not take in a wrong model: "
            "where pages end with a click, or clicks come from trust, the model's propensities are not the world's, "
            "and no number of clicks mends that. `elute audit --assumptions` tests for it.",
            "Expected shares are below the true ones in most worlds: the posteriors are wider than they need to be, "
            "as a bound stands for the propensities' errors.",
        ),
    )


def _try_world(world: SearchWorld, number: int, at: int) -> WorldOutcome:
    log, truth = world.draw(np.random.default_rng([number, at]))
    seen = np.arange(1.0, PLACES + 1) ** -world.eta
    with read_log(log, session="user_id" if world.users else None) as opened:
        verdict = check(opened)
        found = verdict.precision
        if found is None:
            raise ValueError("a world without clicks")
        counts = opened.counts()
        query, doc = (counts.items[name].to_numpy() for name in ("query_id", "doc_id"))
        rejected = float("nan")
        if number < _TESTED:
            tested = assess_briefly(counts, "pbm")
            rejected = float(bool(tested.rejected)) if tested.run else float("nan")
    off = np.log(found.propensity / found.propensity[0]) - np.log(seen / seen[0])
    inside = np.abs(off[1:]) <= 1.96 * _measure_to_first(found)
    pairs = _compare_pairs(found, truth[query, doc], query)
    return WorldOutcome(verdict.rung, *pairs, float(inside.mean()), found.design_effect, rejected)


def _measure_to_first(found: Precision) -> Floats:
    """Standard errors relative to position 1, which is the reference unless another is as large."""
    errors = found.log_se.copy()
    return np.asarray(np.maximum(errors[1:], errors[0]))


def _compare_pairs(found: Precision, truth: Floats, query: np.ndarray) -> tuple[int, int, int, float, int]:
    know = know_items(found.sample.problem.cells, found.propensity, found.log_se, found.population)
    own, totals = know.evidence >= OWN, np.zeros(5)
    signs = find_signs(*know, query, found.sample.problem.item_component)
    for code in np.unique(query)[:_QUERIES]:
        rows = np.flatnonzero(query == code)
        a, b = np.triu_indices(len(rows), 1)
        a, b = rows[a], rows[b]
        differ = truth[a] != truth[b]
        a, b = a[differ], b[differ]
        p = compare(*know, a, b, signs)
        sure, right = np.maximum(p, 1 - p), (p > 0.5) == (truth[a] > truth[b])
        certain = (sure >= CERTAIN) & own[a] & own[b]
        totals += len(a), certain.sum(), (certain & right).sum(), sure.sum(), right.sum()
    return int(totals[0]), int(totals[1]), int(totals[2]), float(totals[3]), int(totals[4])


def _try_shape(name: str, seeds: int) -> list[Check]:
    draw = SHAPES[name][0]
    out = []
    for number in range(seeds):
        with read_log(draw(np.random.default_rng([100, number]))[0]) as opened:
            out.append(check(opened))
    return out


def _sum_up(outcomes: list[WorldOutcome]) -> dict[str, float]:
    pairs, certain = (sum(getattr(one, name) for one in outcomes) for name in ("pairs", "certain"))
    right = sum(one.certain_right for one in outcomes)
    return {
        "certain": certain / pairs,
        "certain and right": right / certain if certain else float("nan"),
        "expected right": sum(one.expected_right for one in outcomes) / pairs,
        "right": sum(one.right for one in outcomes) / pairs,
        "inside": float(np.mean([one.inside for one in outcomes])),
        "design effect": float(np.median([one.design_effect for one in outcomes])),
        "model rejected": float(np.mean([one.rejected for one in outcomes[:_TESTED]])),
    }


def _judge(
    found: dict[str, list[WorldOutcome]], summed: dict[str, dict[str, float]], shapes: dict[str, list[Check]]
) -> tuple[Claim, ...]:
    right = {
        name: summed[name]["certain and right"]
        for name, outcomes in found.items()
        if sum(one.certain for one in outcomes) >= _ENOUGH
    }
    few = [name for name in found if name not in right]
    rungs = {name: Counter(one.rung for one in outcomes) for name, outcomes in found.items()}
    asked = {name: world.rung for name, world in WORLDS.items() if world.rung}
    shaped = {name: Counter(str(one.rung) for one in checks) for name, checks in shapes.items()}
    over = {name: figures["expected right"] - figures["right"] for name, figures in summed.items()}
    thin = [one.filter for one in shapes["nine results far below"]]
    return (
        Claim(
            "Of the pairs called certain at 95%, at least 95% are in the right order.",
            min(right.values()) >= 0.95,
            "; ".join(f"{name} {share:.1%}" for name, share in right.items())
            + f". Fewer than {_ENOUGH} such pairs: {', '.join(few) or 'nowhere'}",
        ),
        Claim(
            "No world is expected to be ordered better than it is, beyond 3 points.",
            max(over.values()) <= 0.03,
            f"the largest excess is {max(over.values()):+.1%} ({max(over, key=lambda name: over[name])})",
        ),
        Claim(
            "Dense worlds are known, sparse ones loose.",
            all(rungs[name] == Counter({rung: len(found[name])}) for name, rung in asked.items()),
            "; ".join(f"{name}: {_list(counts)}" for name, counts in rungs.items()),
        ),
        Claim(
            "Lone positions and stray results are apart, a dead link is linked, a position seen six times is loose.",
            all(counts == Counter({SHAPES[name][1]: len(shapes[name])}) for name, counts in shaped.items()),
            "; ".join(f"{name}: {_list(counts)}" for name, counts in shaped.items()),
        ),
        Claim(
            "The nine stray results are named, with the filter that leaves them out.",
            all(one is not None and (one.option, one.value) == ("max_position", 40) for one in thin),
            f"in {sum(one is not None for one in thin)} of {len(thin)} logs"
            + "".join(f"; --{one.option.replace('_', '-')} {one.value}" for one in thin[:1] if one is not None),
        ),
    )


def _list(counts: Counter[str]) -> str:
    return ", ".join(f"{rung} {n}" for rung, n in counts.most_common())


def _figure(summed: dict[str, dict[str, float]]) -> StudyFigure:
    rows = [
        {"world": name, "pairs": figure, "share": value}
        for name, figures in summed.items()
        for figure, value in figures.items()
        if figure in ("certain", "expected right", "right")
    ]
    chart = specs.bars(rows, x="world", y="share", series="pairs")
    return StudyFigure("known", "Pairs of documents of a query: certain, expected in the right order, and in it", chart)
