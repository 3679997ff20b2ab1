"""Small logs for the report's tests, and the report as a page in a browser."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa

import elute
from elute.estimate.models.pbm import PBM
from elute.fits.fit import Fit
from elute.reporting.page import Report
from elute.simulation import toy

EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
"""A query that would like to be a program."""

EVIL_DOC = "</script><script>document.title='owned'</script>`${1}` {{datum}} \u2028\" ' \\"


def toy_log(broken: bool, sessions: int = 4000, queries: int = 30) -> pa.Table:
    return toy.simulate(sessions, queries, broken=broken, seed=3)


def evil_log() -> pa.Table:
    """The broken log, with ids that attack the page in every place where ids are shown."""
    table = toy_log(broken=True)
    queries = [EVIL + query for query in table["query_id"].to_pylist()]
    docs = [EVIL_DOC + doc for doc in table["doc_id"].to_pylist()]
    context = np.where(table["session_id"].to_numpy() % 2 == 0, "<b>phone</b>", "</script>desk")
    return pa.table(
        {
            "query_id": queries,
            "doc_id": docs,
            "position": table["position"],
            "dev<i>ce.x[0]": context,
            "click": table["click"],
        }
    )


def whole_report(log: elute.ClickLog) -> Report:
    """A report with every section: plan, fit, audit."""
    check = elute.check(log, explore=True)
    plan = elute.merge(check)
    fit = PBM(relevance_prior="none").fit(log, plan)
    fits = (Fit.from_estimator("pbm", fit, log, name="p<b>m"),)
    return Report(check, elute.certify(check.counts), plan, fits, AUDIT, [("elute check <log>", "it & all")])


AUDIT: dict[str, Any] = {
    "models": [
        {
            "name": "p<b>m",
            "model": "pbm",
            "perplexity": 1.45,
            "perplexity_at": [1.8, None, 1.2],
            "ndcg": 0.97,
            "cmip": {"estimate": 0.02, "low": -0.01, "high": 0.05, "p_value": 0.2},
            "ood_perplexity": None,
            "verdict": "pass",
            "sentence": "No sign of the <u>policy</u>.",
            "notes": ["one note"],
        },
        {
            "name": "naive",
            "model": "naive",
            "perplexity": 1.5,
            "perplexity_at": [1.9, 1.5, 1.3],
            "ndcg": 0.8,
            "cmip": {"estimate": 0.9, "low": 0.8, "high": 1.0, "p_value": 0.0001},
            "ood_perplexity": 1.7,
            "verdict": "fail",
            "sentence": "Not debiased.",
            "notes": ["one note"],
        },
    ],
    "selected": "p<b>m",
    "selection": {"strategy": "PPL", "sentence": "It is the only one that does not fail."},
    "positions": [1, 2, 3],
    "judged_items": 400,
    "reference": {"perplexity_by_rank": 1.5, "policy_ndcg": 0.7},
    "assumptions": [
        {
            "name": "linear",
            "verdict": "holds",
            "p_value": 0.4,
            "effect": 0.1,
            "sentence": "Fine.",
            "next": "Go on.",
            "evidence": [],
            "factors": [
                {"factor": "position <2>", "against": "position 1", "standard_errors": 0.7, "p_value": 0.9},
                {"factor": "position 3", "against": "position 1", "standard_errors": -3.1, "p_value": 0.01},
            ],
        },
        {
            "name": "affine",
            "verdict": "rejected",
            "p_value": 1e-9,
            "effect": None,
            "sentence": "No.",
            "next": "Stop.",
            "evidence": [{"factor": "position 3", "squares": 9.0, "expected": 3.0, "p_value": 1e-9}],
        },
        {
            "name": "groups",
            "verdict": "untestable",
            "p_value": None,
            "effect": None,
            "sentence": "?",
            "next": "More.",
            "evidence": [],
        },
    ],
}


def charts_of(page: str) -> dict[str, Any]:
    """The data block of a page, as a browser would read it."""
    block = re.search(r'<script id="charts" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert block is not None
    found: dict[str, Any] = json.loads(block.group(1))
    return found
