"""Figure 4 (a) and (b) of the identifiability paper: which swap to show, and which factors to merge (K = 2)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from elute.estimate.models.base import Estimator
from elute.estimate.models.pbm import PBM
from elute.reporting.charts import specs
from elute_reproduce.identifiability.paper_sets import PaperSet, load
from elute_reproduce.identifiability.quick_dla import QuickDLA
from elute_reproduce.identifiability.synthetic import CLICKS, SETTLED, intervene, score
from elute_reproduce.result import PUBLIC_CODE, ROUNDING, Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

_UPPER = (0, 1, 2, 3)
"""One component of the K = 2 set; the other holds positions 4 to 9."""

_CLICKS = (10**2, 10**3, 10**4, 10**5, 10**6)
_SWAPS = ("min cost", "random cost", "no swap")
_FITS = ("DLA", "PBM")
"""The paper's, which may run out of steps; and the maximum of the likelihood on the same clicks, which does not."""
_MERGES = {"1 & 4": 0.746, "2 & 4": 0.847, "3 & 4": 0.975}
"""MCC from a run of the authors' public code; the figure itself has no numbers."""

Swaps = dict[tuple[str, str, int], list[dict[str, float]]]
"""By swap, fit and clicks, run by run; without runs whose likelihood has no maximum."""


class _Merge:
    """Two positions that share a propensity."""

    def __init__(self, a: int, b: int) -> None:
        self.positions = (a, b)

    def pairs_of(self, factors: pa.Table) -> np.ndarray:
        codes = {position: code for code, position in enumerate(factors["position"].to_pylist())}
        return np.array([[codes[position] for position in self.positions]])


def run(study: Study) -> Reproduction:
    """DLA as the paper writes it, and PBM on the same clicks; random swaps are drawn anew in every run."""
    world = load(study.data, "K=2")
    cheapest = intervene(world, np.random.default_rng(0))
    total = (len(_SWAPS) * len(_CLICKS) + 1) * study.seeds
    done = 0

    def tell(what: str) -> None:
        nonlocal done
        done += 1
        study.progress(what, done, total)

    swaps: Swaps = {}
    merges: dict[str, list[float]] = {}
    for seed, (rng, choice) in enumerate(study.generators(2)):
        shown = dict(zip(_SWAPS, (cheapest, world.show([draw_swap(world, choice)]), world), strict=True))
        for clicks in _CLICKS:
            for name, own in shown.items():
                with own.draw_log(clicks, rng) as log:
                    for fit in _FITS:
                        model = _build_model(fit, seed).fit(log, allow_unidentified=True)
                        found = swaps.setdefault((name, fit, clicks), [])
                        if np.isfinite(model.solution_.relevance).all():
                            found.append(score(own, log.counts(), model))
                tell(name)
        with world.draw_log(CLICKS, rng) as log:
            for name in _MERGES:
                a, b = (int(word) for word in name.split(" & "))
                model = QuickDLA(seed=seed).fit(log, _Merge(a, b), allow_unidentified=True)
                merges.setdefault(name, []).append(score(world, log.counts(), model)["MCC"])
            tell("merges")
    compared = [
        ComparedValue({"strategy": f"swap, {name}", "fit": fit, "clicks": f"{clicks:,} clicks"}, _mccs(scores))
        for (name, fit, clicks), scores in sorted(swaps.items(), key=lambda found: _FITS.index(found[0][1]))
    ]
    for name, values in merges.items():
        where = {"strategy": f"merge {name}", "fit": "DLA"}
        compared.append(ComparedValue({**where, "clicks": f"{CLICKS:,} clicks"}, tuple(values)))
        compared.append(ComparedValue({**where, "clicks": PUBLIC_CODE}, (_MERGES[name],)))
    return Reproduction(
        name="identifiability-figure4ab",
        title="Figure 4 (a) and (b): which swap, which merge",
        source="Chen et al., Identifiability Matters (ICML 2024), Figure 4 (a), (b); their K = 2 set",
        settings=(
            f"{study.seeds} runs; clicks, start and random swap are drawn anew in each. Values are MCC. DLA, as in the "
            "paper, 20,000 steps at most; PBM is the maximum of the likelihood on the same clicks, ours.",
            "Min cost: the swap of Algorithm 2, planned from a fit under node merging. Random cost: the least of costs "
            "drawn uniformly for every (document, position, other position) of Eq. 4 and 5, so that any of these is as "
            "likely: half of the swaps move a document from positions 0–3, half one from 4–9.",
            f"The figure has no numbers, and nothing here is published. “{PUBLIC_CODE}” are values of the paper's "
            "public code, which we ran.",
        ),
        compared=compared,
        claims=_claims(swaps, merges),
        figures=_figures(swaps, merges),
        reading=_reading(swaps, study.seeds),
    )


def _build_model(fit: str, seed: int) -> Estimator:
    return QuickDLA(seed=seed) if fit == "DLA" else PBM(seed=seed, relevance_prior="none")


def _mccs(scores: list[dict[str, float]]) -> tuple[float, ...]:
    return tuple(one["MCC"] for one in scores)


def draw_swap(world: PaperSet, rng: np.random.Generator) -> tuple[int, int]:
    """A document, and a position of the component that it was not shown in: one of the triples (document, position it
    was shown at, position of the other component), each as likely as any other."""
    doc, position = np.unique(np.stack((world.doc, world.position)), axis=1)
    others = np.where(np.isin(position, _UPPER), 10 - len(_UPPER), len(_UPPER))
    chosen = rng.choice(len(doc), p=others / others.sum())
    where = [p for p in range(10) if (p in _UPPER) != (int(position[chosen]) in _UPPER)]
    return int(doc[chosen]), int(rng.choice(where))


def _claims(swaps: Swaps, merges: dict[str, list[float]]) -> tuple[Claim, ...]:
    few = _CLICKS[:-1]
    means = {name: float(np.mean(values)) for name, values in merges.items()}

    def claim_spread(fit: str, of: str) -> Claim:
        low, high = ([float(np.std(_mccs(swaps[name, fit, clicks]))) for clicks in few] for name in _SWAPS[:2])
        return Claim(
            f"Random cost varies more between runs than min cost, and needs more clicks (Proposition 1): {of}.",
            all(a < b for a, b in zip(low, high, strict=True)),
            "standard deviation of MCC at 10², 10³, 10⁴, 10⁵ clicks: "
            + ", ".join(f"{a:.4f} against {b:.4f}" for a, b in zip(low, high, strict=True)),
        )

    def claim_better(fit: str) -> Claim:
        random, none = (float(np.mean(_mccs(swaps[name, fit, CLICKS]))) for name in _SWAPS[1:])
        return Claim(
            f"With enough clicks a random swap too is far better than none: {fit}.",
            random > none + 0.1,
            f"MCC at 10⁶ clicks: {random:.4f} against {none:.3f}",
        )

    return (
        claim_spread("PBM", "PBM, what the swaps are worth"),
        claim_spread("DLA", "DLA, with the steps it did not take"),
        *(claim_better(fit) for fit in _FITS),
        Claim(
            "The closer the merged positions, the better (Proposition 2).",
            list(means.values()) == sorted(means.values()),
            ", ".join(f"{name}: {mean:.3f}" for name, mean in means.items()),
        ),
        Claim(
            "Merges come out as in our run of the public code.",
            all(abs(mean - _MERGES[name]) <= ROUNDING for name, mean in means.items()),
            ", ".join(f"{name}: {mean:.4f} against {_MERGES[name]}" for name, mean in means.items()),
        ),
    )


def _reading(swaps: Swaps, runs: int) -> tuple[str, ...]:
    lost = [
        f"{name}, {clicks:,} clicks: {runs - len(found)} of {runs}"
        for (name, fit, clicks), found in swaps.items()
        if fit == "PBM" and len(found) < runs
    ]

    def describe(name: str, clicks: int) -> str:
        own = swaps[name, "DLA", clicks]
        settled = float(np.mean([one[SETTLED] for one in own]))
        return f"{name}, {clicks:,} clicks: {settled:.0%}"

    random = {fit: np.array(_mccs(swaps["random cost", fit, CLICKS])) for fit in _FITS}
    return (
        "**DLA and Proposition 1.** The proposition is about the variance that clicks leave in an estimate. With many "
        "clicks there is next to none: at 10⁶, after a random swap, PBM has "
        f"{random['PBM'].mean():.4f} ± {random['PBM'].std():.4f}. DLA's {random['DLA'].mean():.4f} ± "
        f"{random['DLA'].std():.4f} on the same clicks is where its 20,000 steps ended: the less a swap's document is "
        "clicked, the less of the squared error it is, and the more steps DLA needs to follow it. That random costs "
        "“need sufficient clicks” is the proposition's effect up to where PBM's rows have become alike, and DLA's "
        "steps after that.",
        "Share of DLA's fits that had come to rest: "
        + "; ".join(describe(name, clicks) for name in _SWAPS[:2] for clicks in _CLICKS)
        + ".",
        *(
            [
                "Runs without a maximum, because the document that was swapped got no click at one of its positions; "
                f"PBM's rows leave them out, DLA ends somewhere: {'; '.join(lost)}."
            ]
            if lost
            else []
        ),
    )


def _figures(swaps: Swaps, merges: dict[str, list[float]]) -> tuple[StudyFigure, ...]:
    def draw_swaps(fit: str) -> dict[str, object]:
        rows = []
        for (name, own, clicks), scores in swaps.items():
            if own == fit:
                mean, sd = float(np.mean(_mccs(scores))), float(np.std(_mccs(scores)))
                band = {"low": mean - sd, "high": min(mean + sd, 1.0)}
                rows.append({"clicks per impression": clicks, "swap": name, "MCC": mean, **band})
        chart = specs.lines(rows, x="clicks per impression", y="MCC", series="swap", low="low", high="high", log_x=True)
        return specs.add_title(chart, f"(a) {fit}")

    bars = [{"merged": name, "MCC": float(np.mean(v)), "sd": float(np.std(v))} for name, v in merges.items()]
    merged = specs.add_title(specs.bars(bars, x="merged", y="MCC", spread="sd", size=(220, 260)), "(b) DLA")
    caption = (
        "(a) Swaps by cost, over clicks, by DLA and by PBM on the same clicks; bands: one standard deviation over "
        "runs. (b) Merges by distance"
    )
    return (StudyFigure("strategies", caption, specs.place_side_by_side(*map(draw_swaps, _FITS), merged)),)
