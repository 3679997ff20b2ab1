"""The audit of some fits against a log, labels and the logging policy's scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.matching import describe_row, match
from elute.auditing.cmip.metric import Cmip, Name, cmip
from elute.auditing.cmip.strata import MOST_GRADES, SMALLEST
from elute.auditing.labels import Labels, Scores
from elute.auditing.perplexity import Perplexity, finish
from elute.auditing.predictions import Predicted, Subject, compute_rank_losses, predict_cells, ranks_of
from elute.auditing.ranking_metrics import err, mrr, ndcg
from elute.auditing.verdict import Evidence, Selection, Verdict, choose, reach_verdict
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.log import ClickLog
from elute.progress import Progress, silent

Floats = NDArray[np.float64]


class RankingQuality(NamedTuple):
    """How well relevance ranks the judged items: means over the queries that have a relevant one, each its own list."""

    ndcg: float
    err: float
    mrr: float


@dataclass(frozen=True)
class ModelAudit:
    """What the audit says of one fit. `ranked`: None without labels or queries."""

    name: str
    model: str
    perplexity: Perplexity
    ranked: RankingQuality | None
    evidence: Evidence
    verdict: Verdict
    shifted: Perplexity | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON; what is not known, and what JSON cannot write, is null."""
        e = self.evidence
        return {
            "name": self.name,
            "model": self.model,
            "perplexity": _finite_or_none(self.perplexity.mean),
            "perplexity_at": [_finite_or_none(v) for v in self.perplexity.at_rank.tolist()],
            **_ranking_fields(self.ranked),
            "cmip": None if e.cmip is None or e.monotone is None else _cmip_fields(e.cmip, e.monotone),
            "ood_perplexity": None if self.shifted is None else _finite_or_none(self.shifted.mean),
            "ood_perplexity_at": None
            if self.shifted is None
            else [_finite_or_none(v) for v in self.shifted.at_rank.tolist()],
            "verdict": self.verdict.word,
            "sentence": self.verdict.sentence,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Comparison:
    """All models, the one to take, and figures to compare with: `by_rank` is the perplexity of the log's click rate at
    each rank, `policy` how well the logging policy's own scores rank."""

    models: tuple[ModelAudit, ...]
    selection: Selection
    positions: list[Any] | None
    by_rank: float
    policy: RankingQuality | None
    judged: int

    @property
    def selected(self) -> str:
        return self.models[self.selection.model].name

    def to_dict(self) -> dict[str, Any]:
        return {
            "models": [model.to_dict() for model in self.models],
            "selected": self.selected,
            "selection": {"strategy": self.selection.strategy, "sentence": self.selection.sentence},
            "positions": self.positions,
            "judged_items": self.judged,
            "reference": {
                "perplexity_by_rank": self.by_rank,
                **{f"policy_{name}": value for name, value in _ranking_fields(self.policy).items()},
            },
        }


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
    counts = log.counts(progress)
    by_rank = finish(compute_rank_losses(counts)).mean
    judged = None if labels is None else _Judged.select(labels, scores, subjects)
    missing = _explain_missing(labels, judged)
    models, evidence = [], []
    for number, (subject, name) in enumerate(zip(subjects, _name_subjects(subjects), strict=True)):
        progress("auditing", number, len(subjects))
        fit = subject.fit
        predicted = _predict(subject, log, progress)
        elsewhere = None if shifted is None else _predict(subject, shifted, progress)
        total, notes = finish(predicted.losses), _list_notes(fit, log, predicted, elsewhere)
        ranked = None if judged is None else judged.measure_ranking(judged.relevance[number])
        whole = monotone = None
        if judged is not None and not missing:
            whole = judged.cmip(number, estimator, seed)
            monotone = whole if whole.estimator == "copula" else judged.cmip(number, "copula", seed)
            notes += whole.notes
        known = Evidence(
            total.mean,
            by_rank,
            None if ranked is None else ranked.ndcg,
            whole,
            monotone,
            missing,
            fit.converged,
        )
        evidence.append(known)
        after = None if elsewhere is None else finish(elsewhere.losses)
        models.append(ModelAudit(name, fit.model, total, ranked, known, reach_verdict(known), after, notes))
    return Comparison(
        tuple(models),
        choose(evidence, [model.verdict for model in models]),
        ranks_of(counts.factors)[1],
        by_rank,
        None if judged is None or judged.policy is None else judged.measure_ranking(judged.policy, judged.scored),
        0 if judged is None else len(judged.grade),
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """The labelled items that all fits know. `relevance`: by fit and item. `policy`: NaN where an item has no score."""

    relevance: Floats
    grade: Floats
    query: NDArray[np.int64] | None
    policy: Floats | None

    @classmethod
    def select(cls, labels: Labels, scores: Scores | None, fits: Sequence[Subject]) -> _Judged:
        relevance = np.full((len(fits), len(labels.grade)), np.nan)
        for number, fit in enumerate(fits):
            at = match(labels.items, fit.items)
            relevance[number] = np.where(at >= 0, fit.relevance[at], np.nan)
            if (at < 0).all():
                raise EluteError(
                    f"{fit.fit.label} knows no item of {labels.place}: labels name {describe_row(labels.items, 0)}, "
                    f"the fit {describe_row(fit.items, 0)}; check the ids"
                )
        known = np.isfinite(relevance).all(axis=0)
        if not known.any():
            raise EluteError(f"no item of {labels.place} has a relevance in every fit; audit the fits one by one")
        return cls(
            relevance[:, known],
            labels.grade[known],
            None if labels.query is None else labels.query[known],
            None if scores is None else scores.look_up(labels)[known],
        )

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Where the policy's score is known."""
        return np.zeros(len(self.grade), np.bool_) if self.policy is None else np.isfinite(self.policy)

    def measure_ranking(self, values: Floats, rows: NDArray[np.bool_] | None = None) -> RankingQuality | None:
        """These values as scores of some items. The highest grade of all satisfies with 1 - 1/2^grade (ERR); a grade of
        1 is relevant (MRR)."""
        if self.query is None:
            return None
        used = np.arange(len(self.grade)) if rows is None else np.flatnonzero(rows)
        order = used[np.argsort(self.query[used], kind="stable")]
        offsets = np.append(np.flatnonzero(np.diff(self.query[order], prepend=-1)), len(order))
        lists = self.grade[order], values[order], offsets
        by_query = ndcg(*lists, without="skip"), err(*lists, highest=float(self.grade.max())), mrr(*lists)
        counted = ~np.isnan(by_query[0].by_query)
        return RankingQuality(
            *(float(found.by_query[counted].mean()) if counted.any() else math.nan for found in by_query)
        )

    def cmip(self, fit: int, estimator: Name | None, seed: int) -> Cmip:
        if self.policy is None:
            raise EluteError("CMIP needs the policy's scores")
        rows = self.scored
        return cmip(self.relevance[fit][rows], self.policy[rows], self.grade[rows], estimator, seed)


def _explain_missing(labels: Labels | None, judged: _Judged | None) -> str:
    """Why there is no CMIP, in words; empty where there is."""
    if labels is None or judged is None:
        return "there are no labels (`labels=`)"
    if judged.policy is None:
        return "there are no scores of the logging policy (`policy_scores=`, or a column 'score' in the log)"
    by_grade = np.unique(judged.grade[judged.scored], return_counts=True)[1]
    if by_grade.sum() < SMALLEST or (len(by_grade) <= MOST_GRADES and by_grade.max() < SMALLEST):
        return f"no grade has {SMALLEST} items with a label, a relevance and a score of the policy"
    return ""


def _predict(subject: Subject, log: ClickLog, progress: Progress) -> Predicted:
    if subject.fit.propensities is None:
        from elute.auditing.session_predictions import predict_sessions

        return predict_sessions(subject.fit, log)
    return predict_cells(subject, log.counts(progress))


def _list_notes(fit: Fit, log: ClickLog, predicted: Predicted, elsewhere: Predicted | None) -> tuple[str, ...]:
    """What a reader of the figures should know."""
    notes = []
    learnt_from = (fit.provenance.filters or {}).get("where")
    apart = None not in (learnt_from, log.filters.where) and learnt_from != log.filters.where
    if fit.provenance.log == log.engine.label and not apart:
        notes.append("perplexity is on the log that the model was fitted to; a later log would tell more")
    for of, part in (("the log", predicted), ("the shifted log", elsewhere)):
        if part is None:
            continue
        for share, what in (
            (part.unseen_items, "are of items that the fit does not know: predicted as typical ones"),
            (part.unseen_factors, "are of factors that the fit does not know: predicted as typical ones"),
            (part.certain, "had a prediction of 0 or 1, or beyond: moved half a click away"),
        ):
            if share > 0:
                notes.append(f"{share:.2%} of the impressions of {of} {what}")
    return tuple(notes)


def _name_subjects(subjects: Sequence[Subject]) -> list[str]:
    """The fits' own names, or their paths where two share a name."""
    short = [subject.fit.name for subject in subjects]
    if len(set(short)) == len(short):
        return short
    return [str(subject.fit.folder or f"{subject.fit.name} {n}") for n, subject in enumerate(subjects, start=1)]


def _cmip_fields(whole: Cmip, monotone: Cmip) -> dict[str, Any]:
    part = {key: getattr(monotone, key) for key in ("estimate", "low", "high")}
    return {**asdict(whole), "notes": list(whole.notes), "monotone": part}


def _ranking_fields(found: RankingQuality | None) -> dict[str, float | None]:
    """Fields of the JSON."""
    return {name: None if found is None else _finite_or_none(getattr(found, name)) for name in RankingQuality._fields}


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
