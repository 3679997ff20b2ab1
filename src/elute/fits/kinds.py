"""What `fit.json` and the tables beside it may hold, in the words of `elute.door`."""

from __future__ import annotations

import pyarrow as pa

from elute.door.fields import Kind, choice, each, flag, mapping, maybe, number, record, scalar, text, whole
from elute.door.seals import SEALS
from elute.door.tables import Column, Ids, Integers, Real
from elute.results.assumption import ASSUMPTION, VERDICT
from elute.results.provenance import PROVENANCE

_SHARE = maybe(number(0, 1))
_PRECISION: Kind = record(
    {
        "target_log_se": number(0),
        **dict.fromkeys(("impressions_known_share", "items_known_share"), number(0, 1)),
        "queries_ordered_share": _SHARE,
    },
)
_BOUNDS = record(
    {
        "sentence": text,
        "constraints": each(record({"what": text, "count": whole()})),
        "consistent": flag,
        "components": each(record({"factor": mapping(scalar), "low": number(0), "high": maybe(number(0))})),
        **dict.fromkeys(("ordered_pairs_share", "rankable_share_with_bounds"), _SHARE),
        "cross_pairs": maybe(whole()),
        "notes": each(text),
    }
)

_SCORE = record(
    {
        "column": text,
        "scale": choice("raw", "query", "rank"),
        **dict.fromkeys(("stiffness", "freedom", "ratio"), number(0)),
        "verdict": VERDICT,
        "sentence": text,
        "comparisons": each(
            record(
                {"with": choice("lists", "items", "labels"), "reason": maybe(text)},
                {
                    **dict.fromkeys(("other", "gap", "low", "high", "noticed"), maybe(number(0))),
                    "p_value": number(0, 1),
                },
            )
        ),
    }
)

SUMMARY: Kind = record(
    {"model": text, "provenance": PROVENANCE},
    {
        "iterations": whole(),
        "converged": flag,
        "seconds": number(0),
        **dict.fromkeys(("reason", "caution"), maybe(text)),
        **dict.fromkeys(("baseline", "debiases"), flag),
        "log_likelihood": maybe(number()),
        "components": whole(1, 2**31 - 1),
        **dict.fromkeys(("sessions", "ranks"), whole(1)),
        "posterior": maybe(record({"shape": number(0), "rate": number(0)})),
        "rung": choice("apart", "linked", "loose", "known"),
        "precision": maybe(_PRECISION),
        "bounds": _BOUNDS,
        "score": _SCORE,
        "warm": record(dict.fromkeys(("factors", "new"), whole())),
        "assumption": ASSUMPTION,
        "files": SEALS,
    },
)
"""Of `fit.json`."""

_CODE = (pa.int32(), pa.int64())
_COUNT = (pa.int64(), pa.int32(), pa.uint32(), pa.uint64())
_ERROR = Real(0, unknown=True, infinite=True)
_END = Real(unknown=True, infinite=True)


def factor_columns(components: int) -> dict[str, Column]:
    """What `propensities.parquet` must have."""
    return {"component": Integers(_CODE, most=components - 1), "propensity": Real(0), "log_se": _ERROR}


def item_columns(components: int) -> dict[str, Column]:
    """What `relevance.parquet` must have."""
    return {
        "component": Integers(_CODE, most=components - 1),
        "relevance": Real(unknown=True),
        "log_se": _ERROR,
        **AMOUNTS,
    }


AMOUNTS: dict[str, Column] = {"impressions": Integers(_COUNT), "clicks": Integers(_COUNT)}

MORE: dict[str, Column] = {
    **AMOUNTS,
    **dict.fromkeys(("shape", "rate", "evidence"), Real(0, unknown=True, infinite=True)),
    "log_se_clusters": _ERROR,
    "by_score": Real(0, unknown=True),
    **dict.fromkeys(("offset", "low", "high"), _END),
}
"""What these may have too."""

COMPONENT_COLUMNS: dict[str, Column] = {
    "component": Integers(_CODE),
    **dict.fromkeys(("low", "high"), Real(0, unknown=True, infinite=True)),
}
"""What `bounds.parquet` must have."""

EFFECT_COLUMNS: dict[str, Column] = {
    **dict.fromkeys(("term", "reference", "determined"), Ids()),
    "effect": _END,
    "log_se": _ERROR,
}
"""What `effects.parquet` must have, beside the bias columns."""
