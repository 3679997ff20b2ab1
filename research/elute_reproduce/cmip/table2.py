"""Table 2 of the CMIP paper: what choosing a click model by known metrics loses under another policy."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from elute.auditing.selection import STRATEGIES, regret, select
from elute_reproduce.cmip import grid as cmip_grid
from elute_reproduce.cmip.fits import MODELS
from elute_reproduce.cmip.grid import CHOICES, TEXT, Cell, Choice, Floats
from elute_reproduce.cmip.page import SOURCE, describe_choices, describe_settings, format_table
from elute_reproduce.cmip.world import TEMPERATURE
from elute_reproduce.result import Claim, ComparedValue, Published, Reproduction
from elute_reproduce.study import Study

CODE = Choice("code", "code", 0.0, TEMPERATURE, "conditional", "cmip_score")
"""For this table the code takes in-distribution perplexity from validation sessions, which are not at temperature 0."""
WAYS = (*CHOICES[:2], Choice("text, the other policy's at temperature 0", temperature=0.0), *CHOICES[2:-1], CODE)
SUBSETS = [list(chosen) for size in (5, 6, 7) for chosen in combinations(range(len(MODELS)), size)]
"""All of five, six or seven models: 29."""
PUBLISHED = {
    "PPL": (2.5499, 0.0506),
    "nDCG": (5.2406, 0.8480),
    "top-4 nDCG: PPL": (1.6423, 0.1417),
    "top-4 PPL: nDCG": (2.5199, 0.3168),
    "CMIP": (2.5268, 0.2722),
    "top-4 CMIP: PPL": (2.5505, 0.0507),
    "top-4 CMIP: nDCG": (0.9493, 0.1175),
    "top-4 CMIP, top-4 nDCG: PPL": (1.6404, 0.1430),
    "top-4 CMIP, top-4 PPL: nDCG": (0.9176, 0.1221),
}
"""Regret × 1000 with the half width of its 95% interval."""
_ADDED = (
    ("PPL", "top-4 CMIP: PPL"),
    ("nDCG", "top-4 CMIP: nDCG"),
    ("top-4 nDCG: PPL", "top-4 CMIP, top-4 nDCG: PPL"),
    ("top-4 PPL: nDCG", "top-4 CMIP, top-4 PPL: nDCG"),
)
"""Each strategy without CMIP, and the same among the four models with the lowest CMIP."""
_BEST = "top-4 CMIP, top-4 PPL: nDCG"


def run(study: Study) -> Reproduction:
    """The nine strategies over all configurations, runs and subsets."""
    grid = cmip_grid.load_grid(study)
    found = {}
    for done, choice in enumerate(WAYS):
        study.progress(choice.name, done, len(WAYS))
        found[choice.name] = compute_regrets(grid.cells(choice))
    text = {name: values.mean(axis=0) for name, values in found[TEXT.name].items()}
    compared = [
        ComparedValue({"strategy": strategy, "regret × 1000": "after the text"}, tuple(map(float, values)), published)
        for strategy, values in text.items()
        for published in [_look_up_published(strategy, grid.seeds) if grid.graded.is_papers else None]
    ]
    return Reproduction(
        name="cmip-table2",
        title="Table 2: choosing a click model before its policy is changed",
        source=SOURCE,
        settings=(
            *describe_settings(grid),
            f"Regret: the chosen model's out-of-distribution perplexity less that of the best candidate, × 1000; the "
            f"mean over 16 configurations and all {len(SUBSETS)} sets of five to seven candidates, by run.",
        ),
        compared=compared,
        claims=claims(found[TEXT.name], found[CODE.name]),
        reading=(
            "Mean regret × 1000 under each choice in which text and code differ, beside the published ones (after the "
            "code, on MSLR-WEB10K):",
            format_table(
                ("strategy", *(choice.name for choice in WAYS), "published"),
                [
                    (name, *(f"{found[c.name][name].mean():.2f}" for c in WAYS), f"{PUBLISHED[name][0]:.2f}")
                    for name in STRATEGIES
                ],
            ),
            describe_choices().replace("The rows above change", "The columns change"),
            "In-distribution perplexity is a good guide where it is measured on pages that vary as in training. On "
            "one fixed page a query (temperature 0) it no longer tells a model that has learnt pages by heart from "
            "one that has learnt relevance, and the same strategy loses many times more.",
            "With at most seven candidates two choices of four always share one, so what to do when they share none "
            "(where text and code differ too) never matters.",
            "By user, after the text:",
            _tabulate_by_user(grid.cells(), found[TEXT.name]),
        ),
    )


def compute_regrets(cells: list[Cell]) -> dict[str, Floats]:
    """Mean regret × 1000 over subsets, by strategy: an array by (configuration, run)."""
    runs = cells[0].outside.shape[1]
    total = {name: np.zeros((len(cells), runs)) for name in STRATEGIES}
    for i, cell in enumerate(cells):
        for run in range(runs):
            for chosen in SUBSETS:
                known = (values[chosen, run] for values in (cell.inside, cell.ndcg, cell.cmip))
                for name, model in select(*known).items():
                    total[name][i, run] += regret(cell.outside[chosen, run], model)
    return {name: 1000 * values / len(SUBSETS) for name, values in total.items()}


def claims(text: dict[str, Floats], code: dict[str, Floats]) -> list[Claim]:
    """The paper's sentences in section 6.3, after the text; the code's reading as further evidence."""
    mean, other = ({name: float(values.mean()) for name, values in found.items()} for found in (text, code))
    better = [after for before, after in _ADDED if mean[after] < mean[before]]
    best = min(mean, key=lambda name: mean[name])
    without = [name for name in STRATEGIES if "CMIP" not in name]
    least = min(without, key=lambda name: mean[name])
    return [
        Claim(
            "Most strategies incur less regret when restricted to the four models with the lowest CMIP",
            len(better) > len(_ADDED) / 2,
            "; ".join(f"{a}: {mean[a]:.2f} → {mean[b]:.2f} (code {other[a]:.2f} → {other[b]:.2f})" for a, b in _ADDED),
        ),
        Claim(
            f"'{_BEST}' incurs the least regret of all",
            best == _BEST,
            f"least: '{best}' {mean[best]:.2f}; '{_BEST}' {mean[_BEST]:.2f}; best without CMIP: '{least}' "
            f"{mean[least]:.2f}; after the code least is '{min(other, key=lambda name: other[name])}' "
            f"{min(other.values()):.2f}",
        ),
        Claim(
            "CMIP alone is a better guide than nDCG alone",
            mean["CMIP"] < mean["nDCG"],
            f"{mean['CMIP']:.2f} against {mean['nDCG']:.2f} (code {other['CMIP']:.2f}, {other['nDCG']:.2f})",
        ),
    ]


def _look_up_published(strategy: str, runs: int) -> Published:
    mean, half_width = PUBLISHED[strategy]
    return Published(mean, half_width / 1.96 * runs**0.5, runs)


def _tabulate_by_user(cells: list[Cell], found: dict[str, Floats]) -> str:
    users = list(dict.fromkeys(cell.user for cell in cells))
    rows = [
        (name, *(f"{values[[i for i, c in enumerate(cells) if c.user == user]].mean():.2f}" for user in users))
        for name, values in found.items()
    ]
    return format_table(("strategy", *users), rows)
