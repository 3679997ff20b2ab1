"""Figure 2 of the CMIP paper: seven click models by what is known in advance, and under another policy."""

from __future__ import annotations

import numpy as np
from scipy import stats

from elute.reporting.charts import specs
from elute_reproduce.cmip import grid as cmip_grid
from elute_reproduce.cmip.fits import MODELS
from elute_reproduce.cmip.grid import CODE, TEXT, Cell, FitGrid, Floats
from elute_reproduce.cmip.page import SOURCE, describe_settings, format_table
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

_METRICS = {"ind PPL": "inside", "nDCG": "ndcg", "CMIP": "cmip", "ood PPL": "outside"}


def run(study: Study) -> Reproduction:
    """The configuration of the figure: PBM users, the NoisyOracle's log, tested under uniform rankings."""
    grid = cmip_grid.load_grid(study)
    cell, code = _find_cell(grid, TEXT), _find_cell(grid, CODE)
    compared = [
        ComparedValue({"model": model, "metric": metric}, tuple(map(float, getattr(cell, field)[i])))
        for i, model in enumerate(MODELS)
        for metric, field in _METRICS.items()
    ]
    return Reproduction(
        name="cmip-figure2",
        title="Figure 2: seven click models, before and after the policy is changed",
        source=SOURCE,
        settings=(*describe_settings(grid), "Users: PBM. Logging policy: NoisyOracle. Test policy: uniform."),
        compared=compared,
        claims=_claims(cell),
        figures=[_picture(cell)],
        reading=(
            "The same after the paper's public code (oracle noise of standard deviation 0.5, one page a query in the "
            "test, perplexity given the clicks above, CMIP against raw scores), means over runs:",
            format_table(
                ("model", *_METRICS),
                [
                    (model, *(f"{getattr(code, field)[i].mean():.3f}" for field in _METRICS.values()))
                    for i, model in enumerate(MODELS)
                ],
            ),
            "Rank correlation with out-of-distribution perplexity over the seven models (means over runs; in all 16 "
            "configurations the median and, in brackets, how often it has the right sign):",
            _correlations(grid),
        ),
    )


def _find_cell(grid: FitGrid, choice: cmip_grid.Choice) -> Cell:
    wanted = ("PBM", "NoisyOracle", "Uniform")
    return next(c for c in grid.cells(choice) if (c.user, c.logging, c.test) == wanted)


def _claims(cell: Cell) -> list[Claim]:
    """The paper's sentences in section 6.1."""
    ndcg, cmip, outside = (
        {m: float(v[i].mean()) for i, m in enumerate(MODELS)} for v in (cell.ndcg, cell.cmip, cell.outside)
    )
    rank = {
        "ndcg": 1 + sum(value > ndcg["NCM"] for value in ndcg.values()),
        "cmip": 1 + sum(value < cmip["NCM"] for value in cmip.values()),
        "outside": 1 + sum(value < outside["NCM"] for value in outside.values()),
    }
    worst = max(MODELS, key=lambda m: outside[m])
    better = sum(ndcg[m] > ndcg["DCTR"] for m in MODELS)
    return [
        Claim(
            "The DCTR model's nDCG is competitive, yet it generalises worst",
            better <= 3 and worst == "DCTR",
            f"nDCG {ndcg['DCTR']:.3f}, {better} models above it; worst out of distribution: {worst} "
            f"{outside[worst]:.4f}",
        ),
        Claim(
            "CMIP identifies it: its CMIP is the highest",
            max(MODELS, key=lambda m: cmip[m]) == "DCTR",
            ", ".join(f"{m} {cmip[m]:.3f}" for m in sorted(MODELS, key=lambda m: -cmip[m])),
        ),
        Claim(
            "NCM does better out of distribution than its nDCG lets expect, as its low CMIP says",
            max(rank["outside"], rank["cmip"]) < rank["ndcg"],
            f"of seven, NCM is number {rank['ndcg']} by nDCG, {rank['cmip']} by CMIP, {rank['outside']} out of "
            "distribution",
        ),
    ]


def _correlations(grid: FitGrid) -> str:
    rows = []
    for name, field in list(_METRICS.items())[:3]:
        sign = -1.0 if field == "ndcg" else 1.0
        values = [
            _rank_correlation(sign * getattr(c, field).mean(axis=1), c.outside.mean(axis=1)) for c in grid.cells()
        ]
        cell = _find_cell(grid, TEXT)
        here = _rank_correlation(sign * getattr(cell, field).mean(axis=1), cell.outside.mean(axis=1))
        label = "less nDCG" if field == "ndcg" else name
        rows.append((label, f"{here:.2f}", f"{np.median(values):.2f} ({sum(v > 0 for v in values)} of {len(values)})"))
    return format_table(("metric", "this figure", "all configurations"), rows)


def _rank_correlation(a: Floats, b: Floats) -> float:
    return float(stats.spearmanr(a, b).statistic)


def _picture(cell: Cell) -> StudyFigure:
    panels = []
    for metric, field in _METRICS.items():
        values = getattr(cell, field)
        error = (
            stats.sem(values, axis=1) * stats.t.ppf(0.975, values.shape[1] - 1)
            if values.shape[1] > 1
            else 0 * values[:, 0]
        )
        rows = [
            {"model": model, metric: float(values[i].mean()), "error": float(error[i])}
            for i, model in enumerate(MODELS)
        ]
        panels.append(specs.add_title(specs.dots(rows, x=metric, y="model", spread="error", size=(150, 180)), metric))
    return StudyFigure(
        "models",
        "Seven click models by metrics known in advance (in-distribution perplexity, nDCG, CMIP) and by perplexity "
        "under uniform rankings. Mean and 95% interval over runs. Lower is better but for nDCG.",
        specs.place_side_by_side(*panels),
    )
