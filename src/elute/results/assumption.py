"""What files say of an assumption that plans and fits rest on, in the words of `elute.door`."""

from __future__ import annotations

from elute.door.fields import Kind, choice, number, record, text, whole

VERDICT: Kind = choice("holds", "contradicted", "untestable")

ASSUMPTION: Kind = record(
    {
        **dict.fromkeys(("sentence", "score"), text),
        "verdict": VERDICT,
        "score_scale": choice("raw", "query", "rank"),
        **dict.fromkeys(("components_placed", "components_combined"), whole()),
        "impressions_share": number(0, 1),
    },
    closed=True,
)
