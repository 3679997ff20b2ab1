"""How much is known, in a sentence, from the fields that every file keeps: said before any number that rests on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elute._util.text import format_share

_RUNGS = {
    "apart": "Apart: items link only some of the factors, each component has its own scale",
    "linked": "Linked, not estimable: clicks do not determine all propensities",
    "loose": "Loose: not all propensities are known",
    "known": "Known: all propensities are known",
}


def describe_knowledge(fields: Mapping[str, Any]) -> str:
    """From `rung` and `precision` of a check or a fit; empty where these were not measured. A fit that trusts a score
    says first what that is worth."""
    known = fields.get("precision")
    if fields.get("score") is not None:
        said = [fields["score"]["sentence"]]
        said += [] if fields.get("assumption") is None else [fields["assumption"]["sentence"]]
        if known is not None and fields["score"]["verdict"] != "contradicted":
            share, target = format_share(known["impressions_known_share"]), known["target_log_se"]
            said.append(
                f"If so, propensities of {share} of the impressions are known to a standard error of {target:g}."
            )
        return " ".join(said)
    if fields.get("rung") not in _RUNGS or known is None:
        return ""
    words = [f"{_RUNGS[fields['rung']]} (those of {format_share(known['impressions_known_share'])} of the impressions"]
    words[0] += f" are, to a standard error of {known['target_log_se']:g})"
    words.append(f"{format_share(known['items_known_share'])} of the items have a known place")
    if known["queries_ordered_share"] is not None:
        words.append(f"{format_share(known['queries_ordered_share'])} of the pairs in a query are certain")
    return "; ".join(words) + "."
