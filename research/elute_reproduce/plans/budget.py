"""Is what a budget promises kept? Planners that see the truth, the items' own clicks, or what is typical of them."""

from __future__ import annotations

from elute_reproduce.plans.forecasts import DENSE, SPARSE, Kept, View, keep_forecast, sum_forecasts
from elute_reproduce.result import Claim, ComparedValue, Reproduction
from elute_reproduce.study import Study

_REDRAWS = 40
"""How often each plan is carried out; there is one for every seed."""

_WORLDS = {"dense": DENSE, "sparse": SPARSE}
_VIEWS: tuple[View, ...] = ("typical", "own clicks", "truth")
_ELUTE: View = "typical"


def run(study: Study) -> Reproduction:
    """Every world, every view."""
    cells = [(world, view) for world in _WORLDS for view in _VIEWS]
    jobs = [(_WORLDS[world], view, _REDRAWS, number) for world, view in cells for number in range(study.seeds)]
    found = study.map("plans", keep_forecast, jobs)
    kept = {cell: sum_forecasts(found[at * study.seeds :][: study.seeds]) for at, cell in enumerate(cells)}
    return Reproduction(
        name="plans-budget",
        title="Is what a budget promises kept?",
        source="`elute repair --method swap --budget N`",
        settings=(
            f"{study.seeds} logs of two parts and 8 factors, dense (60 items, 150 impressions a cell) or sparse (1,200 "
            f"items, 2.5 impressions a cell: most have no click); a plan for each, carried out {_REDRAWS} times. "
            "Clicks are drawn from the truth, and the position-based model is fitted to log and new clicks.",
            "promised: root mean square of the standard errors that were promised. came: that of the standard "
            "deviations over clicks drawn anew. off: what fits to the log as it was are off by. largest: of the factor "
            "with the largest standard error promised; all: of all factors. bias: mean error in standard errors.",
            "Planners take for the relevance of items what is typical of them (elute), the posterior mean of their own "
            "clicks, or the truth.",
        ),
        compared=[
            ComparedValue({"log": world, "planner": view, "figure": figure}, (value,))
            for (world, view), one in kept.items()
            for figure, value in _list_figures(one).items()
        ],
        claims=_judge(kept),
    )


def _list_figures(kept: Kept) -> dict[str, float]:
    return {
        "promised, largest": kept.largest,
        "came, largest": kept.spread_largest,
        "off, largest": kept.missed_largest,
        "promised, all": kept.typical,
        "came, all": kept.spread_typical,
        "off, all": kept.missed_typical,
        "bias": kept.biased,
    }


def _judge(kept: dict[tuple[str, View], Kept]) -> tuple[Claim, ...]:
    own = {world: kept[world, _ELUTE] for world in _WORLDS}
    ratios = {
        f"{world}, {name}": came / promised
        for world, one in own.items()
        for name, promised, came in (
            ("largest", one.largest, one.spread_largest),
            ("all", one.typical, one.spread_typical),
        )
    }
    lucky, fair = kept["sparse", "own clicks"], own["sparse"]
    return (
        Claim(
            "The standard errors that come are those promised (± 15%).",
            all(abs(ratio - 1) <= 0.15 for ratio in ratios.values()),
            "came over promised: " + "; ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()),
        ),
        Claim(
            "On a sparse log, items picked by their own clicks bring errors that were not promised.",
            lucky.missed_typical / lucky.typical > 1.15 > fair.missed_typical / fair.typical,
            f"off over promised: {lucky.missed_typical / lucky.typical:.2f} by own clicks (bias {lucky.biased:+.2f} "
            f"standard errors), {fair.missed_typical / fair.typical:.2f} by what is typical ({fair.biased:+.2f})",
        ),
    )
