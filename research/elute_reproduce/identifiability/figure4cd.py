"""Figure 4(c)(d) of the identifiability paper: how often the graph is connected, over the number of contexts."""

from __future__ import annotations

import numpy as np

from elute.reporting.charts import specs
from elute_reproduce.identifiability import semi_synthetic as semi
from elute_reproduce.identifiability.semi_synthetic import Dataset
from elute_reproduce.identifiability.twins import TWINS, make_twins
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

_CONTEXTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_APART = {semi.YAHOO: 200, semi.ISTELLA: 20}
"""Contexts that suffice, in the paper's words, to render the graph disconnected."""
_ALL, _FEW = "all features", f"{semi.FEW} features"

Found = dict[tuple[str, str], dict[int, list[int]]]
"""By set and identity of items: for every number of contexts the components of each draw."""


def run(study: Study) -> Reproduction:
    """One weak ranking of each set; contexts drawn anew for every number of them and every draw."""
    sets = [*semi.load_datasets(study.data), *make_twins()]
    found: Found = {}
    for number, dataset in enumerate(sets):
        found |= _draw_components(dataset, study)
        study.progress(dataset.name, number + 1, len(sets))
    return Reproduction(
        name="identifiability-figure4cd",
        title="Figure 4(c)(d): identifiability over the number of contexts",
        source="Chen et al., Identifiability Matters (ICML 2024), Figure 4(c)(d); " + ", ".join(s.name for s in sets),
        settings=(
            f"{2 * study.seeds} draws of a context for every impression of one weak ranking of the set. 1 context: "
            "positions alone. The paper prints the figure without numbers.",
            "The table gives the share of draws in which the graph is connected, and its components on average.",
            *_few_sentence(found),
            TWINS,
        ),
        compared=[
            ComparedValue({"data": name, "items": items, "figure": what, "contexts": f"{contexts:,}"}, (value,))
            for (name, items), by_contexts in found.items()
            for what in ("connected", "components")
            for contexts, drawn in by_contexts.items()
            for value in (_frequency(drawn) if what == "connected" else float(np.mean(drawn)),)
        ],
        claims=[claim for dataset in sets for claim in _claims(dataset, found)],
        figures=(_figure(found),),
    )


def _draw_components(dataset: Dataset, study: Study) -> Found:
    """With all features; and with few, drawn anew each time, where positions alone are not connected with all."""
    pages = semi.rank(dataset, 0)
    features = dataset.train.features[pages.row]
    whole = semi.identify_items(features)
    kinds = [_ALL] if semi.is_connected_by_position(dataset.train, pages) else [_ALL, _FEW]
    found: Found = {(dataset.name, kind): {contexts: [] for contexts in _CONTEXTS} for kind in kinds}
    for streams in study.generators(2):
        for rng in streams:
            items = {
                _ALL: whole,
                _FEW: semi.identify_items(features, semi.draw_columns(features.shape[1], semi.FEW, rng)),
            }
            for contexts in _CONTEXTS:
                factor = pages.position * contexts + rng.integers(contexts, size=len(whole))
                for kind in kinds:
                    found[dataset.name, kind][contexts].append(semi.count_components(items[kind], factor))
    return found


def _few_sentence(found: Found) -> tuple[str, ...]:
    if all(items == _ALL for _, items in found):
        return ()
    return (
        f"Where positions alone are not connected, because hardly any feature vector occurs twice, contexts can "
        f"disconnect nothing. There the figure is also drawn with items told apart by {semi.FEW} features, others in "
        "each draw, which is our addition.",
    )


def _frequency(components: list[int]) -> float:
    return float(np.mean(np.array(components) == 1))


def _claims(dataset: Dataset, found: Found) -> list[Claim]:
    name = dataset.name
    few = (name, _FEW) in found
    alone = found[name, _ALL][1][0]
    shown = {contexts: _frequency(drawn) for contexts, drawn in found[name, _FEW if few else _ALL].items()}
    values = list(shown.values())
    rise = max(0.0, float(np.diff(values).max()))
    claims = [
        Claim(
            f"{name}: if positions are the only bias, relevance is identifiable.",
            alone == 1,
            f"{alone} components with all features",
        ),
        Claim(
            f"{name}{f', items by {_FEW}' if few else ''}: identifiability falls as contexts grow in number.",
            values[-1] < values[0] and rise <= (values[0] - values[-1]) / 4,
            ", ".join(f"{contexts:,}: {value:.2f}" for contexts, value in shown.items())
            + f"; largest rise on the way {rise:.2f}",
        ),
    ]
    if dataset.like in _APART:
        enough = _APART[dataset.like]
        claims.append(
            Claim(f"{name}: {enough} contexts disconnect it.", shown[enough] < 0.5, f"connected in {shown[enough]:.0%}")
        )
    return claims


def _figure(found: Found) -> StudyFigure:
    rows = [
        {"contexts": contexts, "connected": _frequency(drawn), "set": f"{name}, {items}"}
        for (name, items), by_contexts in found.items()
        for contexts, drawn in by_contexts.items()
    ]
    chart = specs.lines(rows, x="contexts", y="connected", series="set", log_x=True, domain=(0, 1), size=(520, 260))
    return StudyFigure("contexts", "Share of draws in which the identifiability graph is connected", chart)
