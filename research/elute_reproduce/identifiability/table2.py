"""Tables 2 and 6 of the identifiability paper: no debiasing, DLA, and DLA under node merging, with contextual bias.

Table 2's DLA starts with every propensity at 1 (I in Table 6); Table 6 adds uniform random starts (R)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from elute.checking.check import check
from elute.estimate.models.base import Estimator
from elute.estimate.models.dla import DLA
from elute.estimate.models.naive import Naive
from elute.repair.merge_plan import plan_merges
from elute_reproduce.identifiability import semi_synthetic as semi
from elute_reproduce.identifiability.semi_synthetic import METRICS, Dataset
from elute_reproduce.identifiability.twins import TWINS, make_twins
from elute_reproduce.result import ROUNDING, Claim, ComparedValue, Published, Reproduction
from elute_reproduce.study import Study

_EPOCHS = 100
_TWIN_RUNS = 2
"""Of a twin at most: its 48,000 components take their time to merge, and runs hardly differ."""
_NAIVE, _ONES, _RANDOM = "No debias", "DLA, start 1", "DLA, random start"
_MERGED = " + node merging"
_STARTS, _ENDS = (_ONES, _RANDOM), (("alone", ""), ("merged", _MERGED))
_METHODS = (_NAIVE, _ONES, _RANDOM, _ONES + _MERGED, _RANDOM + _MERGED)

_PUBLISHED: dict[str, dict[str, tuple[tuple[float, float], ...]]] = {
    semi.YAHOO: {
        _NAIVE: ((0.765, 0.0), (0.841, 0.0), (0.915, 0.0), (0.693, 0.002), (0.741, 0.001)),
        _ONES: ((0.750, 0.0), (0.844, 0.0), (0.914, 0.0), (0.693, 0.001), (0.741, 0.001)),
        _RANDOM: ((0.619, 0.003), (0.819, 0.001), (0.892, 0.001), (0.688, 0.001), (0.737, 0.001)),
        _ONES + _MERGED: ((0.771, 0.0), (0.853, 0.0), (0.920, 0.0), (0.697, 0.001), (0.745, 0.001)),
        _RANDOM + _MERGED: ((0.744, 0.002), (0.863, 0.001), (0.921, 0.001), (0.699, 0.001), (0.746, 0.001)),
    },
    semi.ISTELLA: {
        _NAIVE: ((0.764, 0.0), (0.885, 0.0), (0.941, 0.0), (0.634, 0.001), (0.682, 0.001)),
        _ONES: ((0.764, 0.0), (0.886, 0.0), (0.941, 0.0), (0.633, 0.001), (0.682, 0.001)),
        _RANDOM: ((0.748, 0.001), (0.874, 0.001), (0.931, 0.0), (0.638, 0.002), (0.686, 0.002)),
        _ONES + _MERGED: ((0.772, 0.0), (0.892, 0.0), (0.944, 0.0), (0.636, 0.001), (0.684, 0.001)),
        _RANDOM + _MERGED: ((0.782, 0.001), (0.900, 0.001), (0.947, 0.0), (0.638, 0.001), (0.686, 0.001)),
    },
}
"""Table 6, which holds Table 2: mean and standard deviation of METRICS without click MSE."""

Scores = Mapping[str, list[dict[str, float]]]
"""Of every method, run by run."""


class _Shape(NamedTuple):
    """Of one run."""

    factors: int
    components: int
    left: int
    """Propensities that merging leaves."""
    converged: int
    """How many of the merged fits, one from each start, had come to rest."""


Shapes = Mapping[tuple[str, str], list[_Shape]]
"""By set and setting, run by run."""


class _Setting(NamedTuple):
    name: str
    contexts: int
    coarse: bool
    """Items told apart by few features instead of all."""


def run(study: Study) -> Reproduction:
    """Ranker, contexts, clicks and random starts are drawn anew in each run, alike for every method."""
    sets = [*semi.load_datasets(study.data), *make_twins()]
    settings = {dataset.name: _choose_settings(dataset) for dataset in sets}
    found: dict[tuple[str, str], Scores] = {}
    shapes: dict[tuple[str, str], list[_Shape]] = {}
    runs = {dataset.name: min(study.seeds, _TWIN_RUNS) if dataset.twin_of else study.seeds for dataset in sets}
    done, total = 0, sum(runs[name] * len(own) for name, own in settings.items())
    for dataset in sets:
        for setting in settings[dataset.name]:
            scores: dict[str, list[dict[str, float]]] = {method: [] for method in _METHODS}
            for seed, streams in enumerate(study.generators(3)[: runs[dataset.name]]):
                shape, measured = _measure(dataset, setting, seed, *streams)
                shapes.setdefault((dataset.name, setting.name), []).append(shape)
                for method, values in measured.items():
                    scores[method].append(values)
                done += 1
                study.progress(f"{dataset.name}, {setting.name}", done, total)
            found[dataset.name, setting.name] = scores
    known = {dataset.name: dataset.known for dataset in sets}
    return Reproduction(
        name="identifiability-table2",
        title="Tables 2 and 6: learners under contextual bias",
        source="Chen et al., Identifiability Matters (ICML 2024), Tables 2 and 6; " + ", ".join(known),
        settings=_sentences(study, shapes),
        compared=[
            ComparedValue(
                {"data": name, "setting": setting, "method": method, "metric": metric},
                tuple(values[metric] for values in runs),
                _look_up_published(known[name], setting, method, metric),
            )
            for (name, setting), scores in found.items()
            for method, runs in scores.items()
            for metric in METRICS
            if metric in runs[0]
        ]
        + _list_published_elsewhere(set(known.values())),
        claims=[claim for (name, setting), scores in found.items() for claim in _claims(f"{name}, {setting}", scores)],
        reading=_reading(shapes),
    )


def _choose_settings(dataset: Dataset) -> list[_Setting]:
    """The paper's; and, where not even positions are connected, one in which merging has something to join."""
    pages = semi.rank(dataset, 0)
    paper = _Setting(_name_contexts(semi.CONTEXTS), semi.CONTEXTS, False)
    if semi.is_connected_by_position(dataset.train, pages):
        return [paper]
    fewer = semi.scale_contexts(pages)
    return [paper, _Setting(f"{_name_contexts(fewer)}, {semi.FEW} features", fewer, True)]


def _name_contexts(contexts: int) -> str:
    return f"{contexts:,} contexts"


def _measure(
    dataset: Dataset,
    setting: _Setting,
    seed: int,
    feature_rng: np.random.Generator,
    context_rng: np.random.Generator,
    click_rng: np.random.Generator,
) -> tuple[_Shape, dict[str, dict[str, float]]]:
    """What the log looks like, and the scores of every method."""
    pages = semi.rank(dataset, seed)
    width = dataset.train.features.shape[1]
    columns = semi.draw_columns(width, semi.FEW, feature_rng) if setting.coarse else None
    world = semi.draw(dataset.train, pages, setting.contexts, context_rng, columns)
    test = dataset.test if columns is None else dataset.test.with_features(dataset.test.features[:, columns])
    with world.draw_log(click_rng) as log:
        verdict = check(log, target_log_se=None)
        plan = plan_merges(verdict, vectors=world.bias_features)
        counts = verdict.counts
        measured, converged = {}, 0
        for method in _METHODS:
            model = _build_model(method, seed).fit(
                counts, plan if method.endswith(_MERGED) else None, allow_unidentified=True
            )
            converged += method.endswith(_MERGED) and model.converged_
            relevance = semi.relevance_of(counts, model, len(world.relevance))
            measured[method] = semi.score_training(world, counts, model)
            if dataset.twin_of is None:
                measured[method] |= semi.score_held_out(world.features, relevance, test)
    return _Shape(counts.n_factors, verdict.components, counts.n_factors - len(plan.pairs), converged), measured


def _build_model(method: str, seed: int) -> Estimator:
    if method == _NAIVE:
        return Naive()
    return DLA(seed=seed, max_iter=_EPOCHS, start=1.0 if method.startswith(_ONES) else None)


def _look_up_published(known: str | None, setting: str, method: str, metric: str) -> Published | None:
    """Of the paper's sets in the paper's setting. Click MSE is printed without a spread and is left out."""
    if known is None or setting != _name_contexts(semi.CONTEXTS) or metric == "click MSE":
        return None
    return Published(*_PUBLISHED[known][method][[m for m in METRICS if m != "click MSE"].index(metric)])


def _list_published_elsewhere(here: set[str | None]) -> list[ComparedValue]:
    """The published rows of sets that are not here."""
    setting = _name_contexts(semi.CONTEXTS)
    return [
        ComparedValue(
            {"data": semi.PUBLISHED.format(name), "setting": setting, "method": method, "metric": metric},
            (),
            _look_up_published(name, setting, method, metric),
        )
        for name in _PUBLISHED
        if name not in here
        for method in _METHODS
        for metric in METRICS
        if metric != "click MSE"
    ]


def _claims(where: str, scores: Scores) -> list[Claim]:
    """Each difference is taken run by run, and must be beyond rounding and two standard errors."""
    claims = []
    for alone in _STARTS:
        gains = {metric: _difference(scores, alone + _MERGED, alone, metric) for metric in ("MCC", "nDCG@10")}
        claims.append(_claim_gain(f"{where}: node merging beats {alone} in MCC and nDCG@10.", gains))
    if "test nDCG@10" in scores[_NAIVE][0]:
        held_out = {alone: _difference(scores, alone + _MERGED, alone, "test nDCG@10") for alone in _STARTS}
        claims.append(_claim_gain(f"{where}: node merging beats DLA in test nDCG@10.", held_out))
    apart = {name: float(np.abs(_difference(scores, _ONES + end, _RANDOM + end, "MCC")).mean()) for name, end in _ENDS}
    claims.append(
        Claim(
            f"{where}: under node merging the start matters less.",
            apart["merged"] < apart["alone"],
            "mean absolute difference of MCC between the starts: "
            + ", ".join(f"{k} {v:.3f}" for k, v in apart.items()),
        )
    )
    return claims


def _claim_gain(sentence: str, gains: Mapping[str, np.ndarray]) -> Claim:
    figures = ", ".join(f"{name} {gain.mean():+.3f} ± {gain.std():.3f}" for name, gain in gains.items())
    return Claim(sentence, all(_is_beyond_noise(gain) for gain in gains.values()), figures)


def _difference(scores: Scores, one: str, other: str, metric: str) -> np.ndarray:
    return np.array([a[metric] - b[metric] for a, b in zip(scores[one], scores[other], strict=True)])


def _is_beyond_noise(gain: np.ndarray) -> bool:
    return float(gain.mean()) > max(ROUNDING, 2 * float(gain.std() / np.sqrt(len(gain))))


def _sentences(study: Study, shapes: Shapes) -> tuple[str, ...]:
    sentences = [
        f"{study.seeds} runs; the 1% of queries (at least one) that a Ranking SVM learns from, contexts, clicks (10⁶ "
        "draws an impression) and random starts are drawn anew in each. Queries of one document or none relevant are "
        "dropped, in training and test alike.",
        "The first ten documents of every query are shown; items are feature vectors; relevance follows Eq. C.1 with "
        f"the highest grade of the training data; DLA as the paper writes it, at most {_EPOCHS} steps; node merging "
        "on context vector and 10 × position.",
        "MCC over items; training nDCG over the lists shown; click MSE against the click rates drawn. Test nDCG over "
        f"whole lists, ranked by {semi.TREES} boosted trees (rate 0.1, 255 leaves of at least 100 documents) that "
        "learnt each item's estimated relevance.",
        "The values published for click MSE have no spread; they are not set beside ours.",
        f"{TWINS} They have no test data; of each there are {min(study.seeds, _TWIN_RUNS)} runs.",
    ]
    if len(shapes) > len({name for name, _ in shapes}):
        sentences.append(
            f"The settings with {semi.FEW} features are ours. There the documents of a set in which hardly any feature "
            f"vector occurs twice are told apart by {semi.FEW} features, drawn anew in each run, which are also all "
            "that the trees learn from; an item's relevance is the mean over its documents. Contexts are as many as "
            "leave 4 impressions a factor, as 5,000 do on Yahoo!."
        )
    return tuple(sentences)


def _reading(shapes: Shapes) -> tuple[str, ...]:
    parts = []
    for (name, setting), runs in shapes.items():
        factors, components, left, converged = np.mean(runs, axis=0)
        parts.append(
            f"{name}, {setting}: {factors:,.0f} factors in {components:,.0f} components, {left:,.0f} left, "
            f"{converged / len(_STARTS):.0%} converged"
        )
    return (
        "K components need K − 1 merges, and merged factors share one propensity. Mean over runs of factors, "
        "components and propensities left after merging, and share of merged fits that had converged: "
        + "; ".join(parts)
        + ".",
        "Where almost every component is a single factor, merging leaves almost one propensity for all: it then is "
        "no debiasing by another name, and what it gains over a random start is what no debiasing gains over it. "
        "With a start at 1, DLA on single factors stays at the click rate too. Merging has something to gain where "
        "components are fewer and larger.",
        f"The paper stops DLA after {_EPOCHS} steps. A merged graph that few items hold together needs far more; where "
        "fits had not converged, what is left of the start is early stopping, not a lack of identifiability.",
    )
