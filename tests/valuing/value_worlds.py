"""Small logs for tests of values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

import elute
from elute.estimate.solve.problem import total_by_factor
from elute.fits.fit import Fit
from elute.valuing.evaluate import settle
from elute.valuing.inputs.examination import read_examination
from elute.valuing.inputs.rankings import Names, read_ranking
from elute.valuing.inputs.traffic import read_traffic
from elute.valuing.worth.find import Setting
from reference.plain_value import Look, Row

LOOK = {(k, c): o * f for k, o in ((1, 1.0), (2, 0.6), (3, 0.3)) for c, f in (("phone", 1.0), ("desk", 0.5))}
DOCS = ("a", "b", "c", "d")


def draw_rows(pages: int, seed: int, relevance: dict[tuple[str, str], float] | None = None) -> list[Row]:
    """Pages of two queries in two contexts, of two or three results in random order."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(pages):
        query, context = rng.choice(["x", "y"]), rng.choice(["phone", "desk"])
        order = rng.permutation(4)[: rng.integers(2, 4)]
        for position, doc in enumerate(order, 1):
            r = 0.2 + 0.2 * doc if relevance is None else relevance[query, DOCS[doc]]
            rows.append(
                (str(query), DOCS[doc], position, str(context), int(rng.random() < r * LOOK[position, context]))
            )
    return rows


def as_table(rows: list[Row]) -> pa.Table:
    query, doc, position, context, click = zip(*rows, strict=True)
    return pa.table({"query_id": query, "doc_id": doc, "position": position, "context": context, "click": click})


def rank(orders: dict[str, list[str]]) -> pa.Table:
    listed = [(query, doc, at) for query, docs in orders.items() for at, doc in enumerate(docs, 1)]
    query, doc, at = zip(*listed, strict=True)
    return pa.table({"query_id": query, "doc_id": doc, "rank": at})


def known_look(log: pa.Table, look: Look = LOOK) -> Fit:
    """A fit with these propensities, as known from elsewhere."""
    position, context = zip(*look, strict=True)
    table = pa.table({"position": position, "context": context, "propensity": list(look.values())})
    return elute.fit(log, "ipw", propensities=table, bias="position,context")


class Posed(NamedTuple):
    """What estimators work on."""

    setting: Setting
    names: Names


def pose_value(
    log: pa.Table, fit: Fit, *orders: pa.Table, clip: float | None = None, bias: str = "position,context"
) -> Posed:
    opened = elute.read_log(log, bias=bias)
    counts = opened.counts()
    traffic = read_traffic(counts)
    names = Names.read(counts.items, opened.roles, traffic)
    rankings = [read_ranking(one, f"r{at}", opened.roles, names, traffic, "refuse") for at, one in enumerate(orders)]
    totals = counts.impressions, counts.clicks
    shown, clicks = (total_by_factor(counts.factor, part, counts.n_factors) for part in totals)
    return Posed(settle(traffic, read_examination(fit, counts.factors, shown, clicks), rankings, clip), names)
