"""Documents in the order of a policy, as a table that ranks them."""

from __future__ import annotations

import pyarrow as pa

from elute.errors import EluteError
from elute.io.ranking import read_ranking
from elute.simulation.policies.registry import POLICIES, build_policy, settings_of


def rank_by_policy(name: str, data: list[str], seed: int = 0) -> pa.Table:
    """`query_id, doc_id, score` of all documents of LETOR files, or an ULTRA folder; a higher score ranks higher."""
    if name not in POLICIES or name == "scores":
        raise EluteError(f"no policy '{name}'; there are: {', '.join(p for p in POLICIES if p != 'scores')}")
    if not data:
        raise EluteError(f"the policy '{name}' ranks documents by their features: give `data=`")
    ranking = read_ranking(data)
    settings = {"seed": seed} if "seed" in settings_of(name) else {}
    scores = build_policy(name, ranking, None, **settings).scores(ranking)
    return pa.table(
        {
            "query_id": pa.array(ranking.queries[ranking.query_of]),
            "doc_id": pa.array(ranking.documents),
            "score": pa.array(scores),
        }
    )
