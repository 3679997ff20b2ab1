"""`elute.value`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from elute._util.urls import is_remote
from elute.cells.counts import Counts
from elute.checking.measured import CLUSTERED
from elute.engines.duckdb.files import find_files
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.log import ClickLog, LogOptions, LogSource, as_log
from elute.options.kinds import SHARE, OneOf
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.simulation.ranked import rank_by_policy
from elute.valuing.evaluate import DEFAULT, DEFAULT_AT, ValueInputs, ValueOptions, evaluate
from elute.valuing.inputs.rankings import (
    Missing,
    Names,
    RankingSource,
    name_rankings,
    read_ranking,
    require_documents,
)
from elute.valuing.inputs.traffic import read_traffic
from elute.valuing.value import Value
from elute.valuing.worth.clusters import ClickClusters
from elute.valuing.worth.estimators import OF_AFFINE, OF_ITEMS
from elute.verbs.source import as_paths


@takes(estimator=OneOf(words=(*OF_ITEMS,)), clip=SHARE, policy=None)
def value(
    log: LogSource,
    fit: Fit | str | Path,
    rankings: RankingSource | Sequence[RankingSource] = (),
    *,
    estimator: str = DEFAULT,
    clip: float | None = None,
    cluster: str | None = None,
    missing: Missing = "refuse",
    policy: str | Sequence[str] = (),
    data: str | Path | Sequence[str | Path] = (),
    scores: RankingSource | None = None,
    under: Fit | str | Path | Sequence[Fit | str | Path] = (),
    bootstrap: int | None = None,
    seed: int = 0,
    at: int = DEFAULT_AT,
    switch: bool = False,
    progress: Progress = silent,
    **columns: Unpack[LogOptions],
) -> Value:
    """What would other rankings earn? Expected clicks a page, beside what was shown, with intervals.

    `fit`: of `elute.fit` on this log, or its folder. `rankings`: one or several, each a file or a table of the query,
    the document and `score` (higher is better) or `rank` (lower is better). They fill the places of the log's pages.
    `estimator`: whose figures come first: snips, ips, ips-clipped, dr, model; all are in `estimators` of each ranking.
    `clip`: the least propensity that weights take (None: 1/√ of the item's impressions). `cluster`: the column within
    which clicks depend on each other, a session's or user's, by default the log's `session`; or the query's, where the
    answer is to hold for other queries. `missing`: "logged" lets queries that a ranking does not have keep what was
    shown. `policy`: policies of the simulator, which rank the documents of `data`, LETOR files. `scores`: of a ranker
    (`elute.rank`), for documents never shown (dm-features). `under`: fits of session models, by which rankings are
    valued too. `bootstrap`: draws of the log, with their `seed`, to compare intervals with. `at`: places that nDCG, DCG
    and success look at. `switch`: also say how large an A/B test would have to be. `columns`: as for `elute.read_log`.
    """
    began = time.perf_counter()
    opened = as_log(log, **columns)
    loaded = fit if isinstance(fit, Fit) else Fit.load(fit)
    sources: list[RankingSource] = list(rankings) if isinstance(rankings, list | tuple) else [rankings]
    labels = name_rankings(sources)
    for name in as_paths(policy):
        sources.append(rank_by_policy(name, list(as_paths(data)), seed))
        labels.append(name)
    _check(opened, loaded, sources, estimator)
    for path in (*sources, scores):
        if isinstance(path, str | Path) and not is_remote(str(path)):
            find_files(str(path))
    counts = opened.counts(progress, names=True)
    traffic = read_traffic(counts)
    progress("reading names", 0, 0)
    names = Names.read(counts.items, opened.roles, traffic)
    progress("reading rankings", 0, 0)
    found = [
        read_ranking(source, name, opened.roles, names, traffic, missing)
        for source, name in zip(sources, labels, strict=True)
    ]
    clusters, notes = _find_clusters(opened, counts, cluster, traffic.n_queries)
    fits = [under] if isinstance(under, Fit | str | Path) else list(under)
    of_sessions = tuple(one if isinstance(one, Fit) else Fit.load(one) for one in fits)
    wanted = ValueOptions(estimator, clip, clusters, scores, of_sessions, bootstrap, seed, at, switch)
    result = evaluate(ValueInputs(opened, counts, loaded, traffic, names, found), wanted, progress)
    fields = result.fields
    fields["notes"] += notes
    made = opened.provenance().with_options(
        ranking=_name_file(rankings),
        estimator=None if estimator == DEFAULT else estimator,
        clip=clip,
        cluster=cluster,
        missing=None if missing == "refuse" else missing,
        scores=scores if isinstance(scores, str | Path) else None,
        at=None if at == DEFAULT_AT else at,
        switch=switch,
    )
    fields["options"] = made.options
    fields |= {"next": _suggest(fields, opened), "seconds": time.perf_counter() - began}
    return Value(fields, result.by_query)


def _name_file(rankings: RankingSource | Sequence[RankingSource]) -> str | Path | None:
    """The file of a ranking, where there is one of them: what a command line can repeat."""
    sources = list(rankings) if isinstance(rankings, list | tuple) else [rankings]
    return sources[0] if len(sources) == 1 and isinstance(sources[0], str | Path) else None


def _check(log: ClickLog, fit: Fit, rankings: list[RankingSource], estimator: str) -> None:
    """Refuse what makes no sense before anything is counted."""
    require_documents(log.roles, log.engine.label)
    fit.require_columns(log.roles)
    if not rankings:
        raise EluteError("there is nothing to value: give `rankings=` or `policy=`")
    if fit.propensities is not None and "offset" in fit.propensities.column_names and estimator not in OF_AFFINE:
        raise EluteError(f"a fit of {fit.model} has no posteriors for '{estimator}'; take {', '.join(OF_AFFINE)}")


def _find_clusters(
    log: ClickLog, counts: Counts, column: str | None, queries: int
) -> tuple[ClickClusters | None, list[str]]:
    """What clicks depend within; and why that is left out, where it is."""
    wanted = column or log.roles.session
    if wanted is None:
        return None, []
    if wanted == log.roles.query:
        return ClickClusters(wanted, number=queries), []
    if log.is_counted:
        return None, [f"counts do not tell which clicks are of one {wanted}, so how these depend is left out"]
    if wanted not in log.engine.columns:
        known = ", ".join(log.engine.columns)
        raise EluteError(f"{log.engine.label} has no column '{wanted}' for `cluster=`; it has: {known}")
    if log.survey.usable > CLUSTERED and column is None:
        return None, [f"the log is too large to look at how clicks of one {wanted} depend; ask with `cluster=`"]
    return ClickClusters(wanted, partial(counts.read_clusters, wanted)), []


def _suggest(fields: dict[str, Any], log: ClickLog) -> str:
    """What would settle what is open."""
    rows, call = fields["rankings"][1:], log.invocation
    reasons = {reason for row in rows for reason in row["unvalued"]}
    if "other_component" in reasons:
        return call.command("repair", "--method", "swap", "--out", "plan.json")
    if "place_not_known" in reasons or "no_estimate" in reasons or fields["rung"] in ("loose", "linked"):
        return call.command("check", "--precision")
    if "never_shown" in reasons:
        return "show the documents that were never shown on a few pages, or give a ranker's scores (`scores=`)"
    if any(row["verdict"] != "cannot tell" for row in rows):
        return "switch some of the traffic to it, and see (`switch=True` says how much)"
    return "log more pages: the interval narrows with their root"
