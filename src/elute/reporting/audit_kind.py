"""What the file of an audit may hold, as far as a page shows it, in the words of `elute.door.fields`."""

from __future__ import annotations

from typing import Any

from elute.door.fields import Damaged, Kind, choice, each, mapping, maybe, number, plain, record, scalar, text, whole

_SOME = maybe(number())
_P_VALUE = maybe(number(0, 1))
_CMIP = record(
    {"estimate": number(), "low": _SOME, "high": _SOME},
    {"excess": maybe(record({"estimate": number(), "p_value": _P_VALUE}))},
)
_MODEL = record(
    {
        **dict.fromkeys(("name", "model", "sentence"), text),
        **dict.fromkeys(("perplexity", "ood_perplexity", "ndcg"), _SOME),
        "perplexity_at": maybe(each(_SOME)),
        "cmip": maybe(_CMIP),
        "verdict": choice("pass", "unknown", "fail"),
        "notes": each(text),
    }
)
_FINDING = record(
    {
        **dict.fromkeys(("name", "sentence", "next"), text),
        "verdict": choice("holds", "rejected", "untestable"),
        "p_value": _P_VALUE,
        "effect": _SOME,
    },
    dict.fromkeys(("evidence", "factors"), each(mapping(plain))),
)
_OF_MODELS: dict[str, Kind] = {
    "models": each(_MODEL, least=1),
    "selected": maybe(text),
    "selection": record({"sentence": text}),
    "positions": maybe(each(scalar)),
    "judged_items": maybe(whole()),
}
_AUDIT = record({}, {"assumptions": maybe(each(_FINDING)), **_OF_MODELS})


def audit_kind(value: Any, at: str) -> None:
    """An audit of fits, of assumptions, or of both."""
    _AUDIT(value, at)
    if not {"models", "assumptions"} & value.keys():
        raise Damaged("neither models nor assumptions in it")
    if "models" in value:
        record(_OF_MODELS)(value, at)
        places = value["positions"]
        if places is not None and any(len(model["perplexity_at"] or ()) != len(places) for model in value["models"]):
            raise Damaged("'perplexity_at' has not a value for every position")
