"""Figure 7 of the identifiability paper: how often the graph is connected, (a)(b) over the share of the data with
positions as the only bias, (c)(d) over the number of features with contexts beside them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elute.reporting.charts import specs
from elute_reproduce.identifiability import semi_synthetic as semi
from elute_reproduce.identifiability.semi_synthetic import Dataset
from elute_reproduce.identifiability.twins import TWINS, make_twins
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

_SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_ENOUGH = {semi.YAHOO: 0.02, semi.ISTELLA: 0.5}
"""Shares above which the paper finds the graph always connected."""

_FEATURES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200, 400, 700)
_CONTEXTS = {semi.YAHOO: 500, semi.ISTELLA: 50}
_OTHER_CONTEXTS = 5
_SUFFICE = 10
"""The paper: 5 to 10 features are enough to induce unidentifiability."""

Frequencies = Mapping[float, float]


def run(study: Study) -> Reproduction:
    """One weak ranking of each set; impressions, contexts and features are drawn anew each time."""
    sets = [*semi.load_datasets(study.data), *make_twins()]
    by_share: dict[str, Frequencies] = {}
    by_features: dict[str, Frequencies] = {}
    connected = {}
    for number, dataset in enumerate(sets):
        pages = semi.rank(dataset, 0)
        connected[dataset.name] = semi.is_connected_by_position(dataset.train, pages)
        draws = [rng for streams in study.generators(2) for rng in streams]
        few = None if connected[dataset.name] else semi.FEW
        by_share[dataset.name] = _measure_over_shares(dataset, pages, draws, few)
        by_features[dataset.name] = _measure_over_features(dataset, pages, draws)
        study.progress(dataset.name, number + 1, len(sets))
    return Reproduction(
        name="identifiability-figure7",
        title="Figure 7: identifiability over the size of the data and the number of features",
        source="Chen et al., Identifiability Matters (ICML 2024), Figure 7; " + ", ".join(by_share),
        settings=_sentences(study, sets, connected),
        compared=[
            ComparedValue({"over": over, "at": at.format(value), "data": name}, (frequency,))
            for over, at, found in (("share of impressions", "{:.1%}", by_share), ("features", "{:,}", by_features))
            for name, frequencies in found.items()
            for value, frequency in frequencies.items()
        ],
        claims=[claim for dataset in sets for claim in _claims(dataset, by_share, by_features, connected)],
        figures=_figures(by_share, by_features),
    )


def _measure_over_shares(
    dataset: Dataset, pages: semi.RankedPages, draws: list[np.random.Generator], few: int | None
) -> dict[float, float]:
    """Each impression is kept with the given probability. All positions must be left: two impressions at one
    position are no connected graph of ten."""
    features = dataset.train.features[pages.row]
    found: dict[float, list[bool]] = {share: [] for share in _SHARES}
    for rng in draws:
        columns = None if few is None else semi.draw_columns(features.shape[1], few, rng)
        item = semi.identify_items(features, columns)
        for share in _SHARES:
            kept = rng.random(len(item)) < share
            found[share].append(_is_connected(item[kept], pages.position[kept], int(pages.position.max()) + 1))
    return {share: float(np.mean(outcomes)) for share, outcomes in found.items()}


def _is_connected(item: semi.Ints, position: semi.Ints, positions: int) -> bool:
    return len(np.unique(position)) == positions and semi.count_components(item, position) == 1


def _measure_over_features(
    dataset: Dataset, pages: semi.RankedPages, draws: list[np.random.Generator]
) -> dict[float, float]:
    """Features are removed one after the other in a random order, another in each draw."""
    features = dataset.train.features[pages.row]
    width = features.shape[1]
    contexts = _choose_contexts(dataset)
    found: dict[float, list[bool]] = {n: [] for n in (*(n for n in _FEATURES if n < width), width)}
    for rng in draws:
        order = semi.draw_columns(width, width, rng)
        factor = pages.position * contexts + rng.integers(contexts, size=len(features))
        for n, outcomes in found.items():
            outcomes.append(semi.count_components(semi.identify_items(features, order[: int(n)]), factor) == 1)
    return {n: float(np.mean(outcomes)) for n, outcomes in found.items()}


def _choose_contexts(dataset: Dataset) -> int:
    return _CONTEXTS.get(dataset.like or "", _OTHER_CONTEXTS)


def _sentences(study: Study, sets: list[Dataset], connected: Mapping[str, bool]) -> tuple[str, ...]:
    contexts = ", ".join(f"{dataset.name}: {_choose_contexts(dataset)}" for dataset in sets)
    sentences = [
        f"{2 * study.seeds} draws from one weak ranking of the set. The paper prints the figure without numbers; the "
        "table gives the share of draws in which the graph is connected.",
        "(a)(b) Impressions are kept at random; positions are the only bias.",
        f"(c)(d) Features are removed in a random order, another in each draw. Contexts: {contexts}"
        + (
            f" ({_OTHER_CONTEXTS} where the paper names none: few enough to see a transition)."
            if _has_others(sets)
            else "."
        ),
    ]
    sentences.append(TWINS)
    if not all(connected.values()):
        apart = ", ".join(name for name, whole in connected.items() if not whole)
        sentences.append(
            f"With all features positions alone do not connect {apart}: hardly any feature vector occurs twice, so no "
            f"sample can. There (a)(b) tell items apart by {semi.FEW} features, others in each draw."
        )
    return tuple(sentences)


def _has_others(sets: list[Dataset]) -> bool:
    return any(dataset.like not in _CONTEXTS for dataset in sets)


def _claims(
    dataset: Dataset,
    by_share: Mapping[str, Frequencies],
    by_features: Mapping[str, Frequencies],
    connected: Mapping[str, bool],
) -> list[Claim]:
    name = dataset.name
    shares, features = by_share[name], by_features[name]
    few = "" if connected[name] else f", items by {semi.FEW} features"
    claims = [
        Claim(
            f"{name}{few}: the smaller the sample, the less often it is identifiable.",
            _falls(list(shares.values())[::-1]),
            ", ".join(f"{share:.1%}: {value:.2f}" for share, value in shares.items()),
        ),
        Claim(
            f"{name}: identifiability falls as features grow in number.",
            _falls(list(features.values())),
            ", ".join(f"{n:,}: {value:.2f}" for n, value in features.items()),
        ),
    ]
    if _SUFFICE in features:
        claims.append(
            Claim(
                f"{name}: {_SUFFICE} features suffice to make it unidentifiable.",
                features[_SUFFICE] < 0.5,
                f"connected in {features[_SUFFICE]:.0%}",
            )
        )
    if dataset.like in _ENOUGH:
        enough = _ENOUGH[dataset.like]
        claims.append(
            Claim(
                f"{name}: samples are sure to be connected only beyond about {enough:.0%}.",
                all(value == 1 for share, value in shares.items() if share > enough)
                and any(value < 1 for share, value in shares.items() if share < enough),
                ", ".join(f"{share:.1%}: {value:.2f}" for share, value in shares.items()),
            )
        )
    return claims


def _falls(values: list[float]) -> bool:
    """The last is below the first, and no step between goes up by more than a quarter of the way down."""
    return values[-1] < values[0] and float(np.diff(values).max()) <= (values[0] - values[-1]) / 4


def _figures(by_share: Mapping[str, Frequencies], by_features: Mapping[str, Frequencies]) -> tuple[StudyFigure, ...]:
    panels = []
    for title, x, found in (("(a)(b)", "share of impressions", by_share), ("(c)(d)", "features", by_features)):
        rows = [
            {x: value, "connected": frequency, "set": name}
            for name, frequencies in found.items()
            for value, frequency in frequencies.items()
        ]
        chart = specs.lines(rows, x=x, y="connected", series="set", log_x=True, domain=(0, 1))
        panels.append(specs.add_title(chart, title))
    caption = "Share of draws in which the identifiability graph is connected, over the share of impressions kept and "
    return (StudyFigure("connected", caption + "over the number of features", specs.place_side_by_side(*panels)),)
