"""The audit of some fits against a log, labels and the logging policy's scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.auditing.choice import RULE, Candidate, Selection, choose
from elute.auditing.cmip.calibrated import Excess, Power
from elute.auditing.cmip.metric import Cmip, Name
from elute.auditing.judged import JudgedItems, RankingQuality
from elute.auditing.labels import Labels, Scores
from elute.auditing.paired import Interval, mean_by_query
from elute.auditing.perplexity import Perplexity, finish
from elute.auditing.policy import orient, rate_by_log
from elute.auditing.predictions import (
    Predicted,
    Queries,
    Subject,
    compute_rank_losses,
    list_notes,
    predict_cells,
    ranks_of,
)
from elute.auditing.redrawn.recalibration import recalibrate
from elute.auditing.redrawn.refits import is_in_sample
from elute.auditing.verdict import Evidence, Verdict, reach_verdict
from elute.log import ClickLog
from elute.progress import Progress, silent

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ModelAudit:
    """What the audit says of one fit. `ranked`: None without labels or queries. `log_likelihood`: of an impression.
    `in_sample`: the log is the one it was fitted to. `less_policy`, `less_click_rate`: its nDCG less that of ranking as
    the policy did, or by the log's click rates, query by query."""

    name: str
    model: str
    in_sample: bool
    perplexity: Perplexity
    conditional: Perplexity
    log_likelihood: Interval
    ranked: RankingQuality | None
    cmip: Cmip | None
    monotone: Cmip | None
    evidence: Evidence
    verdict: Verdict
    shifted: Perplexity | None
    notes: tuple[str, ...]
    less_policy: Interval | None = None
    less_click_rate: Interval | None = None

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON; what is not known, and what JSON cannot write, is null."""
        return {
            "name": self.name,
            "model": self.model,
            "in_sample": self.in_sample,
            "perplexity": _finite_or_none(self.perplexity.mean),
            "perplexity_at": [_finite_or_none(v) for v in self.perplexity.at_rank.tolist()],
            "conditional_perplexity": _finite_or_none(self.conditional.mean),
            "log_likelihood": _interval_fields(self.log_likelihood),
            **_ranking_fields(self.ranked),
            "ndcg_less_policy": _interval_fields(self.less_policy),
            "ndcg_less_click_rate": _interval_fields(self.less_click_rate),
            "cmip": self._cmip_fields(),
            "ood_perplexity": None if self.shifted is None else _finite_or_none(self.shifted.mean),
            "ood_perplexity_at": None
            if self.shifted is None
            else [_finite_or_none(v) for v in self.shifted.at_rank.tolist()],
            "verdict": self.verdict.word,
            "sentence": self.verdict.sentence,
            "notes": list(self.notes),
        }

    def _cmip_fields(self) -> dict[str, Any] | None:
        if self.cmip is None or self.monotone is None:
            return None
        whole = self.cmip.to_dict()
        del whole["verdict"]
        excess, power = self.evidence.excess, self.evidence.power
        return {
            **whole,
            "monotone": {key: _finite_or_none(getattr(self.monotone, key)) for key in ("estimate", "low", "high")},
            "excess": None if excess is None else asdict(excess),
            "power": None if power is None else asdict(power),
        }


@dataclass(frozen=True)
class Comparison:
    """All models, the one to take, and figures to compare with: `by_rank` is the perplexity of the log's click rate at
    each rank, `policy` how well the logging policy's own scores rank, `click_rate` the log's click rates. `candidates`,
    with the `impressions` of each query: what the choice was made from."""

    models: tuple[ModelAudit, ...]
    candidates: tuple[Candidate, ...]
    impressions: Floats
    selection: Selection
    positions: list[Any] | None
    by_rank: float
    policy: RankingQuality | None
    judged: int
    click_rate: RankingQuality | None = None

    @property
    def selected(self) -> str | None:
        return None if self.selection.model is None else self.models[self.selection.model].name

    def add_note(self, note: str) -> Comparison:
        """The same, with a note on every model."""
        return replace(self, models=tuple(replace(model, notes=(note, *model.notes)) for model in self.models))

    def to_dict(self) -> dict[str, Any]:
        return {
            "models": [model.to_dict() for model in self.models],
            "selected": self.selected,
            "selection": {
                "strategy": self.selection.strategy,
                "sentence": self.selection.sentence,
                "tied": list(self.selection.tied),
                "rule": RULE,
            },
            "positions": self.positions,
            "judged_items": self.judged,
            "reference": {
                "perplexity_by_rank": self.by_rank,
                **{f"policy_{name}": value for name, value in _ranking_fields(self.policy).items()},
                **{f"click_rate_{name}": value for name, value in _ranking_fields(self.click_rate).items()},
            },
        }


def _warn_of_merging(subject: Subject) -> tuple[str, ...]:
    """Of a fit under a merge plan."""
    if not subject.fit.provenance.options.get("plan"):
        return ()
    return (
        "fitted under a merge plan: an excess is what is left of the bias where factors taken for equal are not; "
        "the plan's distortion says how much that may be",
    )


def compare(
    subjects: Sequence[Subject],
    log: ClickLog,
    shifted: ClickLog | None,
    labels: Labels | None,
    scores: Scores | None,
    estimator: Name | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Comparison:
    """Judge every fit on the same impressions and the same items: the labelled ones that all fits know."""
    counts = log.counts(progress, names=True)
    by_rank, queries = finish(compute_rank_losses(counts)).mean, Queries.of(counts, log.roles.query)
    judged, remarks = _judge(subjects, log, labels, scores)
    models, candidates = [], []
    for number, (subject, name) in enumerate(zip(subjects, _name_subjects(subjects), strict=True)):
        progress("auditing", number, len(subjects))
        predicted = _predict(subject, log, queries, progress)
        elsewhere = None
        if shifted is not None:
            there = Queries.of(shifted.counts(progress, names=True), shifted.roles.query)
            elsewhere = _predict(subject, shifted, there, progress)
        in_sample = is_in_sample(subject, log, progress)
        tested = _test(number, subject, log, judged, estimator, seed, progress)
        ranked = None if judged is None else judged.measure_ranking(judged.relevance[number])
        total = finish(predicted.losses)
        known = Evidence(total.mean, by_rank, tested.excess, tested.power, tested.missing, subject.fit.converged)
        found = ModelAudit(
            name,
            subject.fit.model,
            in_sample,
            total,
            finish(predicted.conditional),
            mean_by_query(predicted.by_query, queries.impressions),
            ranked,
            tested.whole,
            tested.monotone,
            known,
            reach_verdict(known),
            None if elsewhere is None else finish(elsewhere.losses),
            (*_warn_of_merging(subject), *list_notes(in_sample, predicted, elsewhere), *remarks, *tested.notes),
            None if judged is None else judged.compare_ranking(judged.relevance[number], judged.policy),
            None if judged is None else judged.compare_ranking(judged.relevance[number], judged.click_rate),
        )
        models.append(found)
        held_out = None if in_sample else predicted.by_query
        candidates.append(Candidate(name, found.verdict, held_out, None if ranked is None else ranked.by_query))
    policy, click_rate = (
        None if judged is None or values is None else judged.measure_ranking(values, np.isfinite(values))
        for values in ((None, None) if judged is None else (judged.policy, judged.click_rate))
    )
    return Comparison(
        tuple(models),
        tuple(candidates),
        queries.impressions,
        choose(candidates, queries.impressions),
        ranks_of(counts.factors)[1],
        by_rank,
        policy,
        0 if judged is None else len(judged.grade),
        click_rate,
    )


class _Tested(NamedTuple):
    """CMIP of a fit, and what it has beyond noise. `missing`: why there is none, in words."""

    whole: Cmip | None
    monotone: Cmip | None
    excess: Excess | None
    power: Power | None
    missing: str
    notes: tuple[str, ...] = ()


def _judge(
    subjects: Sequence[Subject], log: ClickLog, labels: Labels | None, scores: Scores | None
) -> tuple[JudgedItems | None, tuple[str, ...]]:
    """The items to judge by, and what a reader should know of them."""
    if labels is None:
        return None, ()
    found = JudgedItems.select(labels, subjects)
    clicked = rate_by_log(log.counts(), labels)[found.known]
    found = replace(found, click_rate=clicked if np.isfinite(clicked).any() else None)
    if scores is None:
        return found, labels.notes
    policy, is_rank = orient(scores, labels, log.counts())
    notes = (f"{scores.place}: they rise with the log's positions, so they are ranks",) if is_rank else ()
    return replace(found, policy=policy[found.known]), (*labels.notes, *notes)


def _test(
    number: int,
    subject: Subject,
    log: ClickLog,
    judged: JudgedItems | None,
    estimator: Name | None,
    seed: int,
    progress: Progress,
) -> _Tested:
    missing = "there are no labels (`labels=`)" if judged is None else judged.explain_missing()
    if judged is None or missing:
        return _Tested(None, None, None, None, missing)
    whole = judged.cmip(number, estimator, seed)
    monotone = whole if whole.estimator == "copula" else judged.cmip(number, "copula", seed)
    found = recalibrate(number, subject, log, judged, seed, progress)
    return _Tested(whole, monotone, found.excess, found.power, found.missing, whole.notes)


def _predict(subject: Subject, log: ClickLog, queries: Queries, progress: Progress) -> Predicted:
    if subject.fit.propensities is None:
        from elute.auditing.session_predictions import predict_sessions

        return predict_sessions(subject.fit, log, queries)
    return predict_cells(subject, log.counts(progress), queries)


def _name_subjects(subjects: Sequence[Subject]) -> list[str]:
    """The fits' own names, or their paths where two share a name."""
    short = [subject.fit.name for subject in subjects]
    if len(set(short)) == len(short):
        return short
    return [str(subject.fit.folder or f"{subject.fit.name} {n}") for n, subject in enumerate(subjects, start=1)]


def _ranking_fields(found: RankingQuality | None) -> dict[str, float | None]:
    """Fields of the JSON."""
    if found is None:
        return dict.fromkeys(("ndcg", "ndcg_low", "ndcg_high", "err", "mrr"))
    ends = {"ndcg": found.ndcg.mean, "ndcg_low": found.ndcg.low, "ndcg_high": found.ndcg.high}
    return {name: _finite_or_none(value) for name, value in {**ends, "err": found.err, "mrr": found.mrr}.items()}


def _interval_fields(found: Interval | None) -> dict[str, float | None] | None:
    return None if found is None else {name: _finite_or_none(value) for name, value in found._asdict().items()}


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
