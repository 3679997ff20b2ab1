"""What the file of a plan may hold, in the words of `elute.door.fields`."""

from __future__ import annotations

from typing import Any

from elute.door.fields import (
    Damaged,
    Kind,
    anything,
    both,
    choice,
    each,
    flag,
    mapping,
    maybe,
    number,
    record,
    scalar,
    text,
    whole,
)
from elute.repair.distortion.fields import STANDARD
from elute.results.assumption import ASSUMPTION, VERDICT
from elute.results.provenance import PROVENANCE

FORECAST = (
    *("impressions", "users_lose", "log_lengths", "days"),
    *("largest_log_se_before", "largest_log_se", "median_log_se"),
)
"""What a swap plan takes and gives: impressions shown elsewhere, expected clicks lost, time (as a multiple of the log's
and in days, where it is known how many the log has), standard errors of log propensities before and after."""

LIMITS = ("target_se", "share", "log_days", "fixed", "movable", "guessed", "notes")
"""What a swap plan was made for."""

_MANY = 10**15
"""Impressions; a plan of more would never end, and sums stay within 64 bits."""

_SOME = maybe(number())
_ROW = mapping(scalar, least=1)
"""A factor or an item: a value for each of its columns."""

_PAIR = record(
    {"a": _ROW, "b": _ROW, "cost": number()},
    dict.fromkeys(("bound", "bound_share", "log_ratio"), _SOME),
    closed=True,
)
_SWAP = record(
    {
        **dict.fromkeys(("item", "from", "to"), _ROW),
        **dict.fromkeys(("cost", "users_lose"), number()),
        "impressions_needed": whole(most=_MANY),
        "click_probability": number(0, 1),
        "share": number(0),
    },
    {
        "query": scalar,
        "impressions_planned": maybe(whole(most=_MANY)),
        "impressions_needed_at_source": whole(most=_MANY),
    },
    closed=True,
)
_FORECAST: dict[str, Kind] = {
    "impressions": whole(most=_MANY * _MANY),
    "users_lose": number(),
    **dict.fromkeys(("log_lengths", "days", "largest_log_se_before", "largest_log_se", "median_log_se"), _SOME),
}
_DESIGN = record({**_FORECAST, "name": text, "parts_after": whole(), "reaches_target": flag})
_LOOK = record(
    {
        "log": maybe(each(text)),
        "links": whole(1),
        **dict.fromkeys(("impressions", "clicks", "links_done"), whole()),
    },
    {"date": maybe(text)},
)
_DELTA = record(
    {"delta": number(1), "largest": _SOME, "queries_safe_share": maybe(number(0, 1))},
    closed=True,
)


def _has_standard(value: Any, at: str) -> None:
    if not any(row["delta"] == STANDARD for row in value):
        raise Damaged(f"'{at}' says nothing of a delta of {STANDARD:g}")


def _has_one_chosen(value: Any, at: str) -> None:
    if sum(row["chosen"] for row in value) != 1:
        raise Damaged(f"'{at}' has not exactly one that was chosen")


_DISTORTION = both(each(_DELTA), _has_standard)
_ALTERNATIVE = record(
    {
        "name": text,
        **dict.fromkeys(("chosen", "exact"), flag),
        **dict.fromkeys(("cost", "longest_distance"), number()),
        "longest_path": number(0),
        "unit": _SOME,
        "distortion": _DISTORTION,
    },
    {"gap": maybe(number(0))},
    closed=True,
)
_CONSEQUENCE: dict[str, Kind] = {
    "longest_path": number(0),
    "longest_distance": number(),
    "queries_across": maybe(whole()),
    "distortion": _DISTORTION,
    "queries_safe_curve": maybe(each(record({"delta": number(1), "queries_safe_share": number(0, 1)}))),
    "distortion_known": maybe(
        record({**dict.fromkeys(("smallest", "largest", "ratio"), number(0)), "scale": _ROW}, closed=True)
    ),
    "alternatives": both(each(_ALTERNATIVE, least=1), _has_one_chosen),
}
_COMMON: dict[str, Kind] = {
    "method": choice("merge", "swap", "score"),
    "provenance": PROVENANCE,
    **dict.fromkeys(("components_before", "components_after"), whole(1)),
    "cost": number(),
}
_MERGE = record(
    {**_COMMON, "pairs": each(_PAIR), "bound": _SOME},
    {
        "bound_scale": maybe(_ROW),
        **dict.fromkeys(("factors", "propensities_after", "largest_merged_factors"), maybe(whole())),
        "largest_merged_share": maybe(number(0, 1)),
        **_CONSEQUENCE,
    },
)
_SWAPS = record(
    {
        **_COMMON,
        **_FORECAST,
        "swaps": each(_SWAP),
        **dict.fromkeys(("parts_before", "parts_after"), whole(1)),
        "infeasible": each(record({"factor": _ROW, "reason": text}, {"part": anything, "component": anything})),
        "designs": each(_DESIGN),
        "target_se": number(1e-9, 1e9),
        "share": number(0, 1),
        "log_days": _SOME,
        "fixed": mapping(text),
        "movable": each(text),
        "guessed": flag,
        "notes": each(text),
    },
    {
        "precision": each(record({"factor": _ROW, "se_before": _SOME, "se_after": _SOME})),
        "history": each(_LOOK),
    },
)
_SCORE = record(
    {
        **_COMMON,
        "assumption": ASSUMPTION,
        "score": record({**dict.fromkeys(("column", "scale", "sentence"), text), "verdict": VERDICT}),
        "links": each(
            record({**dict.fromkeys(("a", "b"), _ROW), **dict.fromkeys(("ratio", "log_se"), maybe(number(0)))})
        ),
        "components": each(
            record(
                {
                    **dict.fromkeys(("factors", "impressions"), whole(1)),
                    "ratios": maybe(choice("items", "both")),
                }
            ),
            least=1,
        ),
        "propensities": each(record({"factor": _ROW, "propensity": number(0), "log_se": maybe(number(0))}), least=1),
    }
)


def _score_kind(value: Any, at: str) -> None:
    _SCORE(value, at)
    bias = set(value["provenance"]["bias"])
    named = [(f"links[{n}].{end}", link[end]) for n, link in enumerate(value["links"]) for end in ("a", "b")]
    named += [(f"propensities[{n}].factor", row["factor"]) for n, row in enumerate(value["propensities"])]
    for place, row in named:
        if set(row) != bias:
            raise Damaged(f"'{place}' has other columns than {', '.join(sorted(bias))}")


def plan_kind(value: Any, at: str) -> None:
    """A plan of any kind, whose steps have the columns that it was made for."""
    record(_COMMON)(value, at)
    if value["method"] == "score":
        _score_kind(value, at)
        return
    merge = value["method"] == "merge"
    (_MERGE if merge else _SWAPS)(value, at)
    if merge and "longest_path" in value:
        record(_CONSEQUENCE)(value, at)
    bias, item = (set(value["provenance"][name]) for name in ("bias", "item"))
    for place, step in enumerate(value["pairs"] if merge else value["swaps"]):
        for name, columns in (("a", bias), ("b", bias)) if merge else (("item", item), ("from", bias), ("to", bias)):
            if set(step[name]) != columns:
                steps = "pairs" if merge else "swaps"
                raise Damaged(f"'{steps}[{place}].{name}' has other columns than {', '.join(sorted(columns))}")
    if not merge and value["log_days"] is not None:
        for row in (value, *value["designs"]):
            number()(row["days"], "days")
