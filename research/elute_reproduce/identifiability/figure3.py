"""Figure 3 of the identifiability paper: (a) DLA over the number of components and of clicks; (b) DLA, node
merging and node intervention over the number of components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elute.reporting.charts import specs
from elute_reproduce.identifiability.paper_sets import load
from elute_reproduce.identifiability.quick_dla import QuickDLA
from elute_reproduce.identifiability.synthetic import CLICKS, intervene, measure
from elute_reproduce.result import PUBLIC_CODE, ROUNDING, Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

_SETS = (1, 2, 3, 4)
_CLICKS = (10**2, 10**3, 10**4, 10**5, 10**6)
_METHODS = ("DLA", "node merging", "node intervention")

_MERGED = {2: 0.975, 3: 0.959, 4: 0.738}
"""MCC after merging, K by K, from a run of the authors' public code: the paper prints only K = 2."""


def run(study: Study) -> Reproduction:
    """DLA as the paper writes it, on the authors' own sets."""
    worlds = {k: load(study.data, f"K={k}") for k in _SETS}
    runs = study.generators(2)
    shown = {k: intervene(world, np.random.default_rng(0)) if k > 1 else world for k, world in worlds.items()}
    total = (len(_SETS) * len(_CLICKS) + 2 * len(_SETS)) * study.seeds
    done = 0

    def measure_runs(k: int, clicks: int, method: str) -> list[dict[str, float]]:
        nonlocal done
        world = shown[k] if method == "node intervention" else worlds[k]
        scores = []
        for seed, (_, rng) in enumerate(runs):
            scores.append(measure(world, QuickDLA(seed=seed), rng, clicks=clicks, merging=method == "node merging"))
            done += 1
            study.progress(f"K = {k}, {method}", done, total)
        return scores

    by_clicks = {(k, clicks): measure_runs(k, clicks, "DLA") for k in _SETS for clicks in _CLICKS}
    by_method = {(k, "DLA"): by_clicks[k, CLICKS] for k in _SETS}
    by_method |= {(k, method): measure_runs(k, CLICKS, method) for method in _METHODS[1:] for k in _SETS}

    compared = []
    for k, method in by_method:
        for metric in ("MCC", "nDCG@10"):
            values = tuple(score[metric] for score in by_method[k, method])
            compared.append(ComparedValue({"method": method, "metric": metric, "K": f"K = {k}"}, values))
    for k, value in _MERGED.items():
        where = {"method": f"node merging, {PUBLIC_CODE}", "metric": "MCC", "K": f"K = {k}"}
        compared.append(ComparedValue(where, (value,)))
    return Reproduction(
        name="identifiability-figure3",
        title="Figure 3: recovery over components and clicks",
        source="Chen et al., Identifiability Matters (ICML 2024), Figure 3; their K = 1 to 4 sets",
        settings=(
            f"{study.seeds} runs; clicks and DLA's uniform random start are drawn anew in each.",
            "(a) DLA alone, 10² to 10⁶ draws of a click for every impression. (b) 10⁶ draws. Node intervention shows "
            "the K − 1 swaps of least cost, planned from a fit under node merging.",
            "The paper prints Figure 3 without numbers, so nothing here is published (but K = 2, which is in its Table "
            f"1). “{PUBLIC_CODE}” are values of the paper's public code, which we ran.",
        ),
        compared=compared,
        claims=_claims(by_clicks, by_method),
        figures=_figures(by_clicks, by_method),
    )


Scores = list[dict[str, float]]


def _mean(scores: Scores, metric: str) -> float:
    return float(np.mean([score[metric] for score in scores]))


def _claims(by_clicks: dict[tuple[int, int], Scores], by_method: dict[tuple[int, str], Scores]) -> tuple[Claim, ...]:
    apart = [_mean(by_clicks[k, clicks], "MCC") for k in _SETS[1:] for clicks in _CLICKS]
    connected = _mean(by_clicks[1, CLICKS], "nDCG@10")
    shown = [_mean(by_method[k, "node intervention"], "MCC") for k in _SETS]
    merged = [_mean(by_method[k, "node merging"], "MCC") for k in _SETS]
    alone = [_mean(by_method[k, "DLA"], "MCC") for k in _SETS]
    spread = {k: float(np.std([score["MCC"] for score in by_clicks[k, CLICKS]])) for k in _SETS}
    return (
        Claim(
            "The ranking is perfect where the graph is connected and clicks are many.",
            connected > 0.9995,
            f"K = 1, 10⁶ clicks: nDCG@10 {connected:.4f}",
        ),
        Claim(
            "Where it is not, no number of clicks helps.",
            max(apart) < 0.9,
            f"largest mean MCC over K > 1 and all numbers of clicks: {max(apart):.3f}",
        ),
        Claim(
            "Where it is not, results are unstable.",
            min(spread[k] for k in _SETS[1:]) > 10 * spread[1],
            "standard deviation of MCC over runs, 10⁶ clicks: "
            + ", ".join(f"K = {k}: {v:.0e}" for k, v in spread.items()),
        ),
        _claim_alike(by_clicks),
        Claim("Node intervention recovers relevance for every K.", min(shown) > 0.999, f"least MCC {min(shown):.4f}"),
        Claim(
            "Node merging is better than no repair for every K > 1, and falls as K grows.",
            all(m > a for m, a in zip(merged[1:], alone[1:], strict=True)) and merged == sorted(merged, reverse=True),
            "MCC " + ", ".join(f"{m:.3f} (alone {a:.3f})" for m, a in zip(merged, alone, strict=True)),
        ),
        *_claim_rates(alone, merged),
        Claim(
            "Merges come out as in our run of the public code.",
            all(abs(merged[k - 1] - value) <= ROUNDING for k, value in _MERGED.items()),
            ", ".join(f"K = {k}: {merged[k - 1]:.4f} against {value}" for k, value in _MERGED.items()),
        ),
    )


def _claim_alike(by_clicks: dict[tuple[int, int], Scores]) -> Claim:
    """“Larger Ks (e.g., when K > 1) do not give rise to significant differences.”"""
    values = {k: np.array([score["nDCG@10"] for score in by_clicks[k, CLICKS]]) for k in _SETS[1:]}
    pairs = [(a, b) for a in values for b in values if a < b]
    gaps = {pair: float(np.subtract(*(values[k].mean() for k in pair))) for pair in pairs}
    errors = {pair: float(np.sqrt(sum(values[k].var() / len(values[k]) for k in pair))) for pair in pairs}
    return Claim(
        "Among K > 1 differences of nDCG@10 are not significant.",
        all(abs(gaps[pair]) <= 2 * errors[pair] for pair in pairs),
        "10⁶ clicks, difference ± its standard error: "
        + ", ".join(f"K = {a} and {b} {gaps[a, b]:+.3f} ± {errors[a, b]:.3f}" for a, b in pairs),
    )


def _claim_rates(alone: list[float], merged: list[float]) -> tuple[Claim, ...]:
    """“Both DLA and node merging show performance declines as K increases, while node merging exhibits a slower
    rate.”"""
    steps = list(zip((-np.diff(alone)).tolist(), (-np.diff(merged)).tolist(), strict=True))
    falls = [(alone[0] - a, merged[0] - m) for a, m in zip(alone[1:], merged[1:], strict=True)]

    def describe(pairs: Sequence[tuple[float, float]], words: str) -> str:
        return "MCC " + ", ".join(
            f"{words.format(k - 1, k)} −{merging:.3f} against −{dla:.3f}"
            for k, (dla, merging) in zip(_SETS[1:], pairs, strict=True)
        )

    return (
        Claim(
            "DLA and node merging both decline as K grows.",
            all(fall > 0 for pair in steps for fall in pair),
            describe(steps, "K = {} to {}"),
        ),
        Claim(
            "Node merging declines at a slower rate than DLA, counted from K = 1.",
            all(merging < dla for dla, merging in falls),
            describe(falls, "to K = {1}"),
        ),
        Claim(
            "Node merging declines at a slower rate than DLA at every step of K.",
            all(merging < dla for dla, merging in steps),
            describe(steps, "K = {} to {}"),
        ),
    )


def _figures(
    by_clicks: dict[tuple[int, int], Scores], by_method: dict[tuple[int, str], Scores]
) -> tuple[StudyFigure, ...]:
    def row(scores: Scores, metric: str) -> dict[str, float]:
        values = np.array([score[metric] for score in scores])
        return {metric: values.mean(), "low": values.mean() - values.std(), "high": values.mean() + values.std()}

    left = [
        {"clicks per impression": clicks, "set": f"K = {k}", **row(scores, "nDCG@10")}
        for (k, clicks), scores in by_clicks.items()
    ]
    right = [{"components K": k, "method": method, **row(s, "MCC")} for (k, method), s in by_method.items()]
    a = specs.lines(left, x="clicks per impression", y="nDCG@10", series="set", low="low", high="high", log_x=True)
    b = specs.lines(right, x="components K", y="MCC", series="method", low="low", high="high")
    caption = "(a) DLA over clicks for each K. (b) Methods over K. Bands: one standard deviation over runs"
    return (
        StudyFigure(
            "recovery", caption, specs.place_side_by_side(specs.add_title(a, "(a)"), specs.add_title(b, "(b)"))
        ),
    )
