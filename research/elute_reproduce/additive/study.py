"""Several biases at once: what effects that multiply give, and what when they do not, beside what else people do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.auditing.assumptions.tied.additivity import assess_additivity
from elute.cells.counts import Counts
from elute.cells.formula import BiasFormula
from elute.checking.check import check
from elute.estimate.models.pbm import PBM
from elute.log import as_log
from elute.reporting.charts import specs
from elute_reproduce.additive.contexts import WORLDS, compare_contexts
from elute_reproduce.additive.graded import compare_graded, list_sets
from elute_reproduce.additive.methods import METHODS, score
from elute_reproduce.additive.world import ADDITIVE, KINDS, AdditiveWorld, build_world, tie
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

Floats = NDArray[np.float64]

REPETITIONS = 40
"""Logs for each seed: with 10 seeds 400 of a world, and a share of 95% is known to ± 2.2%."""

CONTEXTS, CONTEXT_QUERIES = 5_000, 3_000


class _Seed(NamedTuple):
    """Of one seed's logs of a world: tests that rejected, intervals that hold the truth by factor and how many were
    there, the same of effects, scores by method."""

    rejected: int
    held: Floats
    asked: Floats
    effects_held: Floats
    scores: dict[str, dict[str, float]]


def run(study: Study) -> Reproduction:
    """Worlds, and then contexts."""
    jobs = [(kind, seed) for kind in KINDS for seed in range(study.seeds)]
    found = dict(zip(jobs, study.map("worlds", measure_world, jobs), strict=True))
    by = {kind: [found[kind, seed] for seed in range(study.seeds)] for kind in KINDS}
    logs = study.seeds * REPETITIONS
    rejects = {kind: sum(one.rejected for one in by[kind]) / logs for kind in KINDS}
    held = np.sum([one.held for one in by["additive"]], axis=0)
    asked = np.sum([one.asked for one in by["additive"]], axis=0)
    inside = held[asked > logs / 2] / asked[asked > logs / 2]
    effects = np.sum([one.effects_held for one in by["additive"]], axis=0) / logs
    errors = {
        kind: {name: [one.scores[name]["propensity error"] for one in by[kind]] for name in METHODS} for kind in KINDS
    }
    components = {
        name: check(as_log(tie(_first_log(), name) if " " in name else _first_log()), target_log_se=None).components
        for name in ("position,device,layout", ADDITIVE)
    }
    settings = [(world, CONTEXT_QUERIES, CONTEXTS, seed) for world in WORLDS for seed in range(min(study.seeds, 3))]
    contexts = study.map("contexts", compare_contexts, settings)
    sets = list_sets(study.data)
    graded_jobs = [(study.data, name, seed) for name in sets for seed in range(study.seeds)]
    graded = study.map("graded sets", compare_graded, graded_jobs)
    of_contexts = [(job[0], one) for job, one in zip(settings, contexts, strict=True)]
    of_contexts += [(f"{job[1]}, paper's contexts", one) for job, one in zip(graded_jobs, graded, strict=True)]
    mean = {kind: {name: float(np.mean(values)) for name, values in errors[kind].items()} for kind in KINDS}
    margin = 2 * float(np.sqrt(0.05 * 0.95 / logs))
    return Reproduction(
        name="additive",
        title="Several biases at once: effects that multiply",
        source="`elute check`, `fit` and `audit` with a formula for `--bias`",
        settings=(
            "Cells of 6 positions × 3 devices × 5 layouts and 100 queries of 6 documents, 20 to 80 impressions a "
            f"cell; {REPETITIONS} logs from each of {study.seeds} worlds of a kind.",
            "Every device and layout turns the page by some places, so that no document links two positions of one "
            "combination. *One interaction*: positions fall more steeply on one device. *Not additive*: every "
            "combination has an effect of its own beside, of standard deviation 0.35.",
            "*Propensity error*: root mean square of log propensities around their mean; *pairs right*: of documents "
            "within a query, by relevance. On the first log of every world; product and smooth prior put each "
            "component at its own scale.",
            f"Contexts: {CONTEXT_QUERIES:,} queries of 10 documents, each under 3 of {CONTEXTS:,} contexts, 400 "
            "impressions a cell. *Contexts multiply*: a context multiplies all propensities. *Contexts bend*: it "
            "changes how they fall with position, as in the identifiability paper, which no sum of effects can say.",
            "Graded sets at hand (as in Table 2 of that paper, its own sets not being among them): contexts such that "
            "a factor has about 4 impressions, clicks nearly free of noise.",
            f"With {logs} logs a share of 5% is known to ± {margin:.1%} (two standard errors).",
        ),
        compared=[
            *(
                ComparedValue(
                    {"world": kind, "method": name, "figure": figure}, tuple(_collect(by[kind], name, figure))
                )
                for kind in KINDS
                for name in METHODS
                for figure in ("propensity error", "pairs right")
            ),
            *(
                ComparedValue({"world": world, "method": name, "figure": figure}, values)
                for world in dict.fromkeys(world for world, _ in of_contexts)
                for name in ("additive", "merging", "no debias")
                for figure in ("MCC", "nDCG@10", "components")
                for values in (tuple(one[name][figure] for where, one in of_contexts if where == world),)
            ),
        ],
        claims=(
            Claim(
                "One propensity a combination leaves several components, a formula one.",
                components[ADDITIVE] == 1 < components["position,device,layout"],
                f"{components['position,device,layout']} components and {components[ADDITIVE]}",
            ),
            Claim(
                "In additive worlds 95% intervals hold the truth in 93% to 97% of logs, for propensities and effects.",
                bool(0.93 <= inside.mean() <= 0.97 and 0.93 <= effects.mean() <= 0.97),
                f"mean {inside.mean():.1%} over {len(inside)} factors (from {inside.min():.1%} to {inside.max():.1%}), "
                f"{effects.mean():.1%} over {len(effects)} effects",
            ),
            Claim(
                "The test of additivity rejects 3% to 7% of additive logs, and 80% or more where one interaction is.",
                bool(0.03 <= rejects["additive"] <= 0.07 and rejects["one interaction"] >= 0.8),
                ", ".join(f"{kind} {share:.1%}" for kind, share in rejects.items()),
            ),
            Claim(
                "In additive worlds the formula's propensities are nearer to the truth than all else.",
                mean["additive"]["additive"] < min(v for name, v in mean["additive"].items() if name != "additive"),
                ", ".join(f"{name} {value:.3f}" for name, value in mean["additive"].items()),
            ),
            Claim(
                "With one interaction left out they still are.",
                mean["one interaction"]["additive"]
                < min(v for name, v in mean["one interaction"].items() if name != "additive"),
                ", ".join(f"{name} {value:.3f}" for name, value in mean["one interaction"].items()),
            ),
        ),
        figures=(_figure(mean),),
        reading=(
            "Where effects do not multiply the formula is wrong, and its intervals mean little: the test says so.",
            "The paper's own contexts bend the curve of positions. A sum of effects cannot follow that; it is there to "
            "see how far that matters. On graded sets, whose items are mostly shown once or twice, runs differ widely: "
            "the standard deviations say by how much.",
        ),
    )


def measure_world(kind: str, seed: int) -> _Seed:
    """All logs of one world."""
    world, rng = build_world(kind, seed), np.random.default_rng([seed, 77])
    rejected, held, asked, effects_held = 0, np.zeros(len(world.o)), np.zeros(len(world.o)), np.zeros(0)
    scores: dict[str, dict[str, float]] = {}
    for repetition in range(REPETITIONS):
        counts = tie(world.draw(rng), ADDITIVE)
        finding = assess_additivity(counts, BiasFormula.parse(ADDITIVE))
        rejected += finding.verdict == "rejected"
        if kind == "additive":
            fit = PBM(relevance_prior="none").fit(counts, allow_unidentified=True)
            there, inside = _hold(world, fit)
            held, asked = held + inside, asked + there
            effects = _hold_effects(world, fit)
            effects_held = effects if not repetition else effects_held + effects
        if not repetition:
            plain = world.draw(np.random.default_rng([seed, 78]))
            scores = {name: score(world, method(plain)) for name, method in METHODS.items()}
    return _Seed(rejected, held, asked, effects_held, scores)


def _hold(world: AdditiveWorld, fit: PBM) -> tuple[Floats, Floats]:
    """By factor, whether it has an interval (the reference has none, nor one that no cell has), and whether that holds
    the truth."""
    error = fit.propensity_log_se_
    reference = int(np.flatnonzero(error == 0)[0])
    off = np.log(fit.propensity_ / fit.propensity_[reference]) - np.log(world.o / world.o[reference])
    there = (error > 0) & np.isin(np.arange(len(error)), world.factor)
    return there.astype(np.float64), (there & (np.abs(off) <= 1.96 * error)).astype(np.float64)


def _hold_effects(world: AdditiveWorld, fit: PBM) -> Floats:
    """By effect other than references."""
    table = fit.effects_
    log_o = np.log(world.o).reshape(6, 3, 5)
    truth = {"position": log_o[:, 0, 0], "device": log_o[0, :, 0], "layout": log_o[0, 0, :]}
    rows = [] if table is None else table.to_pylist()
    base = {row["term"]: row[row["term"]] for row in rows if row["reference"]}
    kept = [row for row in rows if not row["reference"]]
    off = [
        row["effect"] - (truth[row["term"]][row[row["term"]]] - truth[row["term"]][base[row["term"]]]) for row in kept
    ]
    return np.asarray(np.abs(off) <= 1.96 * np.array([row["log_se"] for row in kept]), np.float64)


def _first_log() -> Counts:
    return build_world("additive", 0).draw(np.random.default_rng(0))


def _collect(found: list[_Seed], name: str, figure: str) -> list[float]:
    return [one.scores[name][figure] for one in found]


def _figure(mean: dict[str, dict[str, float]]) -> StudyFigure:
    rows = [
        {"method": name, "world": kind, "propensity error": value}
        for kind in KINDS
        for name, value in mean[kind].items()
        if np.isfinite(value)
    ]
    chart = specs.bars(rows, x="method", y="propensity error", series="world")
    return StudyFigure("errors", "Error of log propensities by method and kind of world", chart)
