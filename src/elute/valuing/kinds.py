"""What `value.json` may hold, where it is read again."""

from __future__ import annotations

from typing import Any

from elute.door.fields import Damaged, choice, each, mapping, maybe, number, plain, record, scalar, text, whole

_NUMBER, _SHARE = maybe(number()), number(0.0, 1.0)
_VERDICT = choice("better", "worse", "cannot tell")
_RANGE = dict.fromkeys(("value", "low", "high", "difference", "difference_low", "difference_high"), _NUMBER)
_ESTIMATE = record({"estimator": text, **_RANGE, "verdict": _VERDICT})
_QUERY = record({"query": scalar, "pages": whole(), "difference": _NUMBER, "se": _NUMBER, "q_value": _NUMBER})
_QUERIES = record(
    {
        "tested": whole(),
        "false_discovery": _SHARE,
        "winners": whole(),
        "losers": whole(),
        "most_winners": each(_QUERY),
        "most_losers": each(_QUERY),
    }
)
_GROUP = record({"group": text, "queries": whole(), "difference": number()})
_SHOWN = {
    "name": text,
    **_RANGE,
    "verdict": _VERDICT,
    "metrics": maybe(mapping(record({"value": _NUMBER}))),
}
_RANKING = record(
    {
        **_SHOWN,
        "estimators": each(_ESTIMATE),
        "valued_share": _SHARE,
        "difference_worst": _NUMBER,
        "difference_best": _NUMBER,
        "verdict_all": _VERDICT,
        "unvalued": mapping(record({"queries": whole(), "pages_share": _SHARE})),
        "by_query": maybe(_QUERIES),
        "groups": maybe(each(_GROUP)),
    }
)
_VALUE = record(
    {
        "rankings": each(record(_SHOWN), least=2),
        "valued_share": _SHARE,
        "pages": whole(),
        "estimator": text,
        "assumption": text,
        "notes": each(text),
    }
)


def value_kind(value: Any, at: str) -> None:
    """The fields of `elute value`, what was shown first. Of a ranking that is valued all ends are known."""
    mapping(plain)(value, at)
    _VALUE(value, at)
    each(_RANKING)(value["rankings"][1:], "rankings")
    for row in value["rankings"][1:]:
        ends = ["difference", "difference_low", "difference_high"]
        ends += ["difference_worst", "difference_best"] if value["valued_share"] < 1 else []
        if row["value"] is not None and any(row[name] is None for name in ends):
            raise Damaged(f"'{row['name'][:40]}' has a value and no difference")
