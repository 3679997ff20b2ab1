"""Figure 6 of the identifiability paper: observation curves of DLA, alone and under node merging."""

from __future__ import annotations

import numpy as np

from elute.checking.check import check
from elute.repair.merge_plan import plan_merges
from elute.reporting.charts import specs
from elute.simulation.grades import PROPENSITIES
from elute_reproduce.identifiability.paper_sets import load
from elute_reproduce.identifiability.quick_dla import QuickDLA
from elute_reproduce.identifiability.synthetic import CLICKS, propensity_curve
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

_SETS = (2, 3, 4)
_METHODS = ("DLA", "node merging")


def run(study: Study) -> Reproduction:
    """Propensities over that of the first position, as the paper plots them."""
    found: dict[tuple[int, str], list[np.ndarray]] = {}
    done = 0
    for k in _SETS:
        world = load(study.data, f"K={k}")
        for seed, (rng,) in enumerate(study.generators()):
            with world.draw_log(CLICKS, rng) as log:
                plans = {"DLA": None, "node merging": plan_merges(check(log))}
                for method in _METHODS:
                    estimated = propensity_curve(QuickDLA(seed=seed).fit(log, plans[method], allow_unidentified=True))
                    found.setdefault((k, method), []).append(estimated / estimated[0])
                    done += 1
                    study.progress(f"K = {k}, {method}", done, len(_SETS) * len(_METHODS) * study.seeds)
    truth = np.array(PROPENSITIES) / PROPENSITIES[0]
    error = {key: np.abs(np.log(np.array(curves) / truth)).mean(axis=1) for key, curves in found.items()}
    compared = [
        ComparedValue({"method": method, "error": f"K = {k}"}, tuple(float(e) for e in values))
        for (k, method), values in error.items()
    ]
    return Reproduction(
        name="identifiability-figure6",
        title="Figure 6: observation curves",
        source="Chen et al., Identifiability Matters (ICML 2024), Figure 6; their K = 2 to 4 sets",
        settings=(
            f"{study.seeds} runs with DLA; clicks (10⁶ an impression) and start are drawn anew in each.",
            "The table gives the mean absolute error of log propensities against position 0.",
        ),
        compared=compared,
        claims=_claims(error, found),
        figures=tuple(_figure(k, found, truth) for k in _SETS),
    )


def _claims(
    error: dict[tuple[int, str], np.ndarray], found: dict[tuple[int, str], list[np.ndarray]]
) -> tuple[Claim, ...]:
    alone, merged = ([float(error[k, method].mean()) for k in _SETS] for method in _METHODS)
    spread = [
        max(float(np.ptp(np.log(np.array(found[k, method])), axis=0).max()) for k in _SETS) for method in _METHODS
    ]
    return (
        Claim(
            "Without repair DLA's curve depends on the start; under node merging it does not.",
            spread[0] > 1 and spread[1] < 0.05,
            f"largest range of a log propensity over runs: {spread[0]:.2f} alone, {spread[1]:.4f} merged",
        ),
        Claim(
            "Node merging is closer to the truth for every K.",
            all(m < a for m, a in zip(merged, alone, strict=True)),
            ", ".join(f"K = {k}: {m:.3f} against {a:.3f}" for k, m, a in zip(_SETS, merged, alone, strict=True)),
        ),
        Claim(
            "It is least close for K = 4, which merges positions that differ most.",
            merged[-1] == max(merged),
            ", ".join(f"K = {k}: {m:.3f}" for k, m in zip(_SETS, merged, strict=True)),
        ),
    )


def _figure(k: int, found: dict[tuple[int, str], list[np.ndarray]], truth: np.ndarray) -> StudyFigure:
    curves = {"truth": [truth], **{method: found[k, method] for method in _METHODS}}
    rows = [
        {"position": position, "curve": name, "propensity / first": float(values[position])}
        for name, several in curves.items()
        for values in several
        for position in range(len(truth))
    ]
    chart = specs.boxes(rows, x="position", y="propensity / first", series="curve", log_y=True, size=(560, 260))
    return StudyFigure(
        f"k{k}", f"K = {k}: propensities over the first one; boxes over runs, whiskers to the extremes", chart
    )
