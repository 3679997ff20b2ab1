"""Figure 4 (a) and (b) of the identifiability paper: which swap to show, and which factors to merge (K = 2)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from elute.estimate.models.dla import DLA
from elute.reporting.charts import specs
from elute_reproduce.identifiability.paper_sets import PaperSet, load
from elute_reproduce.identifiability.synthetic import CLICKS, intervene, measure, score
from elute_reproduce.result import Claim, ComparedValue, Published, Reproduction, StudyFigure
from elute_reproduce.study import Study

_UPPER = (0, 1, 2, 3)
"""One component of the K = 2 set; the other holds positions 4 to 9."""

_CLICKS = (10**2, 10**3, 10**4, 10**5, 10**6)
_MERGES = {"1 & 4": 0.746, "2 & 4": 0.847, "3 & 4": 0.975}
"""MCC from a run of the authors' public code; the figure itself has no numbers."""


class _Merge:
    """Two positions that share a propensity."""

    def __init__(self, a: int, b: int) -> None:
        self.positions = (a, b)

    def pairs_of(self, factors: pa.Table) -> np.ndarray:
        codes = {position: code for code, position in enumerate(factors["position"].to_pylist())}
        return np.array([[codes[position] for position in self.positions]])


def run(study: Study) -> Reproduction:
    """DLA as the paper writes it; random swaps are drawn anew in every run."""
    world = load(study.data, "K=2")
    cheapest = intervene(world, np.random.default_rng(0))
    total = (3 * len(_CLICKS) + len(_MERGES)) * study.seeds
    done = 0

    def tell(what: str) -> None:
        nonlocal done
        done += 1
        study.progress(what, done, total)

    swaps: dict[tuple[str, int], list[float]] = {}
    merges: dict[str, list[float]] = {}
    for seed, (rng, choice) in enumerate(study.generators(2)):
        random = world.show([_draw_swap(world, choice)])
        for clicks in _CLICKS:
            for name, shown in (("min cost", cheapest), ("random cost", random), ("no swap", world)):
                found = measure(shown, DLA(seed=seed), rng, clicks=clicks)
                swaps.setdefault((name, clicks), []).append(found["MCC"])
                tell(name)
        with world.draw_log(CLICKS, rng) as log:
            for name in _MERGES:
                a, b = (int(word) for word in name.split(" & "))
                merges.setdefault(name, []).append(
                    score(world, log.counts(), DLA(seed=seed).fit(log, _Merge(a, b), allow_unidentified=True))["MCC"]
                )
                tell(name)
    compared = [
        ComparedValue({"strategy": f"swap, {name}", "clicks": f"{clicks:,} clicks"}, tuple(values))
        for (name, clicks), values in swaps.items()
    ]
    compared += [
        ComparedValue(
            {"strategy": f"merge {name}", "clicks": f"{CLICKS:,} clicks"}, tuple(values), Published(_MERGES[name])
        )
        for name, values in merges.items()
    ]
    return Reproduction(
        name="identifiability-figure4ab",
        title="Figure 4 (a) and (b): which swap, which merge",
        source="Chen et al., Identifiability Matters (ICML 2024), Figure 4 (a), (b); their K = 2 set",
        settings=(
            f"{study.seeds} runs with DLA; clicks, start and random swap are drawn anew in each. Values are MCC.",
            "Min cost: the swap of Algorithm 2, planned from a fit under node merging. Random cost: a cost drawn "
            "uniformly for every (document, position, other position): any swap between components is as likely.",
            "The figure has no numbers; those beside the merges are from a run of the paper's public code.",
        ),
        compared=compared,
        claims=_claims(swaps, merges),
        figures=_figures(swaps, merges),
    )


def _draw_swap(world: PaperSet, rng: np.random.Generator) -> tuple[int, int]:
    """A document, and a position of the component that it was not shown in."""
    cells = np.unique(np.stack((world.doc, world.position)), axis=1)
    doc, position = cells[:, rng.integers(cells.shape[1])]
    others = [p for p in range(10) if (p in _UPPER) != (int(position) in _UPPER)]
    return int(doc), int(rng.choice(others))


def _claims(swaps: dict[tuple[str, int], list[float]], merges: dict[str, list[float]]) -> tuple[Claim, ...]:
    few = _CLICKS[:-1]
    spread = {name: [float(np.std(swaps[name, clicks])) for clicks in few] for name in ("min cost", "random cost")}
    last = {name: float(np.mean(swaps[name, CLICKS])) for name in ("min cost", "random cost", "no swap")}
    means = [float(np.mean(merges[name])) for name in _MERGES]
    return (
        Claim(
            "Random cost varies more between runs than min cost, and needs more clicks (Proposition 1).",
            all(low < high for low, high in zip(spread["min cost"], spread["random cost"], strict=True)),
            "standard deviation of MCC at 10², 10³, 10⁴, 10⁵ clicks: "
            + ", ".join(f"{a:.3f} against {b:.3f}" for a, b in zip(*spread.values(), strict=True)),
        ),
        Claim(
            "With enough clicks a random swap too is far better than none.",
            last["random cost"] > last["no swap"] + 0.1,
            f"MCC at 10⁶ clicks: {last['random cost']:.3f} against {last['no swap']:.3f}",
        ),
        Claim(
            "The closer the merged positions, the better (Proposition 2).",
            means == sorted(means),
            ", ".join(f"{name}: {mean:.3f}" for name, mean in zip(_MERGES, means, strict=True)),
        ),
    )


def _figures(swaps: dict[tuple[str, int], list[float]], merges: dict[str, list[float]]) -> tuple[StudyFigure, ...]:
    left = [
        {
            "clicks per impression": clicks,
            "swap": name,
            "MCC": float(np.mean(values)),
            "low": float(np.mean(values) - np.std(values)),
            "high": min(float(np.mean(values) + np.std(values)), 1.0),
        }
        for (name, clicks), values in swaps.items()
    ]
    right = [{"merged": name, "MCC": float(np.mean(v)), "sd": float(np.std(v))} for name, v in merges.items()]
    a = specs.lines(left, x="clicks per impression", y="MCC", series="swap", low="low", high="high", log_x=True)
    b = specs.bars(right, x="merged", y="MCC", spread="sd", size=(220, 260))
    caption = "(a) Swaps by cost, over clicks; bands: one standard deviation over runs. (b) Merges by distance"
    return (
        StudyFigure(
            "strategies", caption, specs.place_side_by_side(specs.add_title(a, "(a)"), specs.add_title(b, "(b)"))
        ),
    )
