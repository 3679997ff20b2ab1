"""Are values of rankings right, and do their intervals hold? Worlds whose truth is simulated, then real clicks."""

from __future__ import annotations

import numpy as np

from elute.reporting.charts import specs
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study
from elute_reproduce.value.runs import LogOutcome, try_logs
from elute_reproduce.value.worlds import DOCS, PLACES, ValueWorld, list_worlds
from elute_reproduce.value.yandex import run_yandex

RUNS = 200
"""Logs of a world: a share of 95% is known from them to 3.1 points (two standard errors)."""

_AT_ONCE = 25
_LOW, _HIGH = 0.93, 0.97


def run(study: Study) -> Reproduction:
    """The number of logs is fixed: it is what the answer's precision rests on."""
    worlds = list_worlds()
    jobs = [
        (world, number, first, min(_AT_ONCE, RUNS - first))
        for number, world in enumerate(worlds.values())
        for first in range(0, RUNS, _AT_ONCE)
    ]
    done = study.map("worlds", try_logs, jobs)
    found: dict[str, list[LogOutcome]] = {name: [] for name in worlds}
    names = list(worlds)
    for (_, number, _, _), outcomes in zip(jobs, done, strict=True):
        found[names[number]] += outcomes
    real = run_yandex(study)
    compared = [value for name, outcomes in found.items() for value in _compare(name, outcomes)]
    sampling = 2 * float(np.sqrt(0.95 * 0.05 / RUNS))
    return Reproduction(
        name="value",
        title="What would another ranking earn? Values and their intervals",
        source="The estimators and intervals of `elute value`",
        settings=(
            f"{RUNS} logs from each of {len(worlds)} worlds: queries of {DOCS} documents, {PLACES} on a page by a "
            "Plackett-Luce ranker whose scores follow relevance closely (strong) or hardly (weak); the other ranking "
            "is "
            "the same with noise (small change) or another ranker (large). Dense: 50 queries, 20,000 pages; sparse: "
            "400 "
            "and 8,000; very sparse: 2,000 and 6,000.",
            "Users: position-based, places seen as 1/k; trust bias, where what is not relevant is clicked at 0.3/k "
            "of the "
            "looks; DBN, who goes on with 0.85 and leaves when satisfied. Propensities are fitted to each log, as "
            "`elute fit` does.",
            "Coverage: how often the 95% interval of the difference from what was shown (and of the value itself) "
            "holds the "
            f"truth, over the queries that are valued; known to ± {sampling:.1%}. Wrong: verdicts of the wrong sign. "
            "A/B "
            "pages: those of each arm of a test whose error is as large.",
            "`click rates`: a document earns its raw click rate wherever it stands; `replay`: what it got at that very "
            "place, over slots where it stood there. Neither has intervals.",
        ),
        compared=[*compared, *([] if real is None else real.compared)],
        claims=(*_judge(worlds, found), *([] if real is None else real.claims)),
        figures=(_draw(worlds, found),),
        reading=(
            "`ips` and `snips` need the click model alone, and hold wherever it does. `model` and `dr` lean on "
            "the posterior: on sparse logs their errors are smaller in some worlds and larger in others, and "
            "their intervals hold too seldom. They take a ranking at its word place by place, not document by "
            "document, and their intervals do not know what that leaves out. That is why snips comes first. "
            "Clipped weights are as wrong as they are said to be.",
            "A wrong click model is not mended by more pages: under trust bias and the DBN's user the intervals of a "
            "fit of "
            "pbm shrink around another number. The affine fit holds where its model does. `elute audit --assumptions` "
            "tests which it is, and `--under` shows what session models make of a ranking.",
            *([] if real is None else real.reading),
        ),
    )


def _compare(name: str, outcomes: list[LogOutcome]) -> list[ComparedValue]:
    """Rows of one world."""
    variance = float(np.mean([one.page_variance for one in outcomes]))
    truth = np.array([one.difference for one in outcomes])
    out = []

    def add(by: str, **figures: float) -> None:
        for figure, value in figures.items():
            if np.isfinite(value):
                out.append(ComparedValue({"world": name, "by": by, "figure": figure.replace("_", " ")}, (value,)))

    add("truth", valued=float(np.mean([one.valued for one in outcomes])), difference=float(truth.mean()))
    for by in outcomes[0].by:
        mine = [one.by[by] for one in outcomes]
        error = np.array([one.error for one in mine])
        verdict = np.array([one.verdict for one in mine])
        rmse = float(np.sqrt((error**2).mean()))
        add(
            by,
            bias=float(error.mean()),
            RMSE=rmse,
            coverage=float(np.mean([one.inside for one in mine])),
            coverage_of_value=float(np.mean([one.value_inside for one in mine])),
            wrong=float((verdict * np.sign(truth) < 0).mean()),
            cannot_tell=float((verdict == 0).mean()),
            **{"A/B_pages": float(round(2 * variance / rmse**2))},
        )
    for by in outcomes[0].raw:
        error = np.array([one.raw[by] for one in outcomes])
        rmse = float(np.sqrt((error**2).mean()))
        add(by, bias=float(error.mean()), RMSE=rmse, **{"A/B_pages": float(round(2 * variance / rmse**2))})
    return out


def _judge(worlds: dict[str, ValueWorld], found: dict[str, list[LogOutcome]]) -> list[Claim]:
    right = {name: found[name] for name, world in worlds.items() if world.holds}
    wrong = {name: found[name] for name, world in worlds.items() if not world.holds}
    cover = {
        by: {name: float(np.mean([one.by[by].inside for one in outcomes])) for name, outcomes in right.items()}
        for by in ("snips", "ips")
    }
    of_value = {
        name: float(np.mean([one.by["snips"].value_inside for one in outcomes])) for name, outcomes in right.items()
    }
    slack = 2 * float(np.sqrt(0.95 * 0.05 / RUNS))
    each = [share for shares in (*cover.values(), of_value) for share in shares.values()]
    means = {name: float(np.mean(list(shares.values()))) for name, shares in (*cover.items(), ("value", of_value))}
    verdicts = [
        one.by["snips"].verdict * np.sign(one.difference) < 0 for outcomes in right.values() for one in outcomes
    ]
    better = {name: _rmse(outcomes, "snips") < min(_raw_rmse(outcomes)) for name, outcomes in right.items()}
    named, wrongly = (sum(getattr(one, part) for o in right.values() for one in o) for part in ("named", "wrongly"))
    open_worlds = {name: o for name, o in right.items() if np.mean([one.valued for one in o]) < 0.99}
    bounded = [one.bounded for outcomes in open_worlds.values() for one in outcomes]
    held = sum(bounded) / max(len(bounded), 1)
    failing = {name: float(np.mean([one.by["snips"].inside for one in o])) for name, o in wrong.items()}
    dr, plain = (np.mean([_rmse(o, by) for n, o in right.items() if n.startswith("very")]) for by in ("dr", "snips"))
    return [
        Claim(
            f"Where the click model holds, intervals by snips and ips hold the truth in {_LOW:.0%} to {_HIGH:.0%} of "
            "logs, "
            "over all worlds.",
            all(_LOW <= share <= _HIGH for share in means.values()),
            f"differences by snips {means['snips']:.1%}, by ips {means['ips']:.1%}; values by snips "
            f"{means['value']:.1%}, over "
            f"{len(right)} worlds of {RUNS} logs",
        ),
        Claim(
            "So they do in every single world, as far as its logs can tell.",
            all(_LOW - slack <= share <= _HIGH + slack for share in each),
            f"from {min(each):.1%} to {max(each):.1%}; {RUNS} logs tell a share to ± {slack:.1%}",
        ),
        Claim(
            "Where the click model holds, few verdicts have the wrong sign.",
            float(np.mean(verdicts)) <= 0.025,
            f"{np.mean(verdicts):.2%} of {len(verdicts):,} verdicts by snips",
        ),
        Claim(
            "snips is nearer to the truth than raw clicks, by click rates or by replay, wherever the click model "
            "holds.",
            all(better.values()),
            f"in {sum(better.values())} of {len(better)} worlds"
            + "".join(f"; not in '{name}'" for name, holds in better.items() if not holds),
        ),
        Claim(
            "On very sparse logs the posterior's help makes dr's error smaller than snips'.",
            bool(dr < plain),
            f"mean RMSE of dr {dr:.4f}, of snips {plain:.4f}",
        ),
        Claim(
            "Of queries named as winners or losers, no more than 10% are named wrongly.",
            wrongly <= 0.1 * named,
            f"{wrongly:,} of {named:,} ({wrongly / max(named, 1):.1%})",
        ),
        Claim(
            "Where queries are not valued, the worst and best hold the true difference over all pages in 95% or more.",
            held >= 0.95,
            f"{held:.1%} of {len(bounded):,} logs of {len(open_worlds)} worlds",
        ),
        Claim(
            "Where the click model is wrong, intervals do not hold: no number of pages mends that.",
            min(failing.values()) < _LOW,
            "; ".join(f"{name}: {share:.0%}" for name, share in failing.items()),
        ),
    ]


def _rmse(outcomes: list[LogOutcome], by: str) -> float:
    return float(np.sqrt(np.mean([one.by[by].error ** 2 for one in outcomes])))


def _raw_rmse(outcomes: list[LogOutcome]) -> list[float]:
    return [float(np.sqrt(np.mean([one.raw[by] ** 2 for one in outcomes]))) for by in outcomes[0].raw]


def _draw(worlds: dict[str, ValueWorld], found: dict[str, list[LogOutcome]]) -> StudyFigure:
    rows = []
    for name, outcomes in found.items():
        share = float(np.mean([one.by["snips"].inside for one in outcomes]))
        slack = 2 * float(np.sqrt(max(share * (1 - share), 0.002) / RUNS))
        ends = {"low": max(share - slack, 0.0), "high": min(share + slack, 1.0)}
        kind = "the click model holds" if worlds[name].holds else "it does not"
        rows.append({"world": name, "coverage": share, **ends, "kind": kind})
    chart = specs.intervals(
        rows,
        label="world",
        x="coverage",
        low="low",
        high="high",
        series="kind",
        values=("the click model holds", "it does not"),
        at=0.95,
    )
    return StudyFigure(
        "coverage", "Share of logs whose 95% interval of the difference, by snips, holds the truth", chart
    )
