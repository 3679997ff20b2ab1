"""What was found of rankings, as JSON holds it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.valuing.findings.limits import Limits, count_reasons
from elute.valuing.findings.queries import FALSE_DISCOVERY, GROUPS, QueryEffects
from elute.valuing.inputs.exposure import Exposure
from elute.valuing.inputs.rankings import Names, Ranking
from elute.valuing.inputs.traffic import PageTraffic
from elute.valuing.worth.contrasts import NOTHING, Contrasts, ValueInterval, judge, to_number
from elute.valuing.worth.estimators import ASSUMPTIONS, TOO_SMALL

LOGGED = "logged"

_EXAMPLES = 5


def share_pages(queries: NDArray[np.bool_], traffic: PageTraffic) -> float:
    """Of the pages that are of these queries."""
    return float(traffic.pages[queries].sum() / traffic.pages.sum())


def describe_logged(estimator: str, every: dict[str, Contrasts], over_all: Contrasts) -> dict[str, Any]:
    """What was shown, beside which the others stand; over all pages its value is known."""
    own, whole = every[estimator].values[0] if estimator in every else NOTHING, over_all.values[0]
    return {
        "name": LOGGED,
        **own.to_dict(),
        "difference": 0.0,
        "difference_low": 0.0,
        "difference_high": 0.0,
        "verdict": "cannot tell",
        "valued_share": 1.0,
        **whole.to_dict("value_all", "worst", "best"),
        "estimators": [{"estimator": name, **one.values[0].to_dict()} for name, one in every.items()],
        "metrics": None,
    }


def describe_ranking(
    number: int,
    exposure: Exposure,
    estimator: str,
    every: dict[str, Contrasts],
    over_all: Contrasts,
    limits: Limits,
) -> dict[str, Any]:
    """One ranking: over the pages that are valued, and over all with the rest at its worst and best."""
    main = every.get(estimator)
    value, difference = (NOTHING, NOTHING) if main is None else (main.values[number + 1], main.differences[number])
    whole, apart = over_all.values[number + 1], over_all.differences[number]
    reach = ValueInterval(math.nan, math.nan, apart.low + limits.low, apart.high + limits.high)
    return {
        "name": exposure.ranking.name,
        **value.to_dict(),
        **difference.to_dict("difference", "difference_low", "difference_high"),
        "verdict": judge(difference, estimator),
        "valued_share": share_pages(exposure.valued, exposure.traffic),
        "worst": to_number(max(whole.low + limits.low, 0.0)),
        "best": to_number(whole.high + limits.high),
        "difference_worst": to_number(reach.low),
        "difference_best": to_number(reach.high),
        "verdict_all": judge(reach, estimator),
        "unvalued": count_reasons(exposure),
        "estimators": [_describe_estimator(name, one, number) for name, one in every.items()],
        "metrics": None,
    }


def describe_effects(effects: QueryEffects | None, traffic: PageTraffic, names: Names) -> dict[str, Any]:
    """Which queries win and lose, and what groups of queries add."""
    if effects is None:
        return {"by_query": None, "groups": None}
    return {"by_query": _describe_queries(effects, traffic, names), "groups": _describe_groups(effects, traffic)}


def _describe_estimator(name: str, found: Contrasts, number: int) -> dict[str, Any]:
    value, difference = found.values[number + 1], found.differences[number]
    return {
        "estimator": name,
        "assumption": ASSUMPTIONS[name],
        **value.to_dict(),
        **difference.to_dict("difference", "difference_low", "difference_high"),
        "se": to_number(difference.se),
        "verdict": judge(difference, name),
    }


def _describe_queries(effects: QueryEffects, traffic: PageTraffic, names: Names) -> dict[str, Any]:
    gain = np.nan_to_num(effects.difference * traffic.pages)
    out: dict[str, Any] = {"tested": int(np.isfinite(effects.q_value).sum()), "false_discovery": FALSE_DISCOVERY}
    for name, chosen, sign in (("winners", effects.winners, -1.0), ("losers", effects.losers, 1.0)):
        at = np.flatnonzero(chosen)
        order = at[np.argsort(sign * gain[at], kind="stable")][:_EXAMPLES]
        out[name] = len(at)
        out[f"{name}_pages_share"] = share_pages(chosen, traffic)
        out[f"most_{name}"] = [
            {
                "query": names.queries[int(q)].as_py(),
                "pages": int(traffic.pages[q]),
                "difference": to_number(float(effects.difference[q])),
                "se": to_number(float(effects.se[q])),
                "q_value": to_number(float(effects.q_value[q])),
            }
            for q in order
        ]
    return out


def _describe_groups(effects: QueryEffects, traffic: PageTraffic) -> list[dict[str, Any]]:
    """What each group of queries adds to the difference, in clicks a page over all valued pages."""
    valued = np.isfinite(effects.difference)
    n, out = traffic.pages[valued].sum(), []
    for at, name in enumerate(GROUPS):
        mine = valued & (effects.group == at)
        total, se = float(effects.of_group[at] / n), float(effects.group_se[at] / n)
        fields = {"difference": total, "low": total - 1.96 * se, "high": total + 1.96 * se}
        out.append(
            {"group": name, "queries": int(mine.sum()), "pages_share": float(traffic.pages[mine].sum() / n)}
            | {key: to_number(value) for key, value in fields.items()}
        )
    return out


def describe_between(main: Contrasts | None, rankings: list[Ranking], estimator: str) -> list[dict[str, Any]]:
    """Of the second over the first; nothing can be told where both are too small."""
    if main is None:
        return []
    out = []
    for (a, b), one in main.between.items():
        turned = ValueInterval(-one.value, one.se, -one.high, -one.low)
        ends = turned.to_dict("difference", "difference_low", "difference_high")
        verdict = "cannot tell" if estimator in TOO_SMALL else turned.verdict
        out.append({"ranking": rankings[b].name, "over": rankings[a].name, **ends, "verdict": verdict})
    return out
