"""What `elute audit` takes, beside the nine strategies of the CMIP paper's Table 2, on the same logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import elute
from elute._util.files import write_parquet
from elute.auditing.choice import RULE, Candidate, choose
from elute.auditing.selection import STRATEGIES, regret, select
from elute.errors import EluteError
from elute_reproduce.cmip.documents import load
from elute_reproduce.cmip.fits import COUNTED, LogKey, Logs, Row, Sizes, measure_counted_models, simulate
from elute_reproduce.cmip.grid import PAPER, SMALL
from elute_reproduce.cmip.page import SOURCE, format_table
from elute_reproduce.cmip.world import LOGGING, TEMPERATURE, USERS, Documents, PolicyName, SessionLog, list_length
from elute_reproduce.result import Claim, ComparedValue, Reproduction
from elute_reproduce.study import Study

Floats = NDArray[np.float64]
ELUTE = "elute audit"
WORDS = ("pass", "unknown", "fail")
MOST_RUNS = 2
"""Of each world: a log takes four minutes of a core."""


class AuditedLog(NamedTuple):
    """Of one log: regret × 1000 under each other policy by strategy, the models that the audit takes (several: it
    cannot tell them apart; none: all fail), and the verdict on each of the five."""

    key: LogKey
    regrets: dict[str, list[float]]
    taken: tuple[str, ...]
    verdicts: tuple[str, ...]


def run(study: Study, sizes: Sizes | None = None) -> Reproduction:
    """All users and logging policies after the text, a log for every seed."""
    graded, seeds = load(study.data), min(study.seeds, MOST_RUNS)
    sizes = sizes or (PAPER if graded.is_papers else SMALL)
    keys = [LogKey("text", user, logging, seed) for user in USERS for logging in LOGGING for seed in range(seeds)]
    jobs = [(graded.documents[list_length(key.reading, key.user)], key, sizes) for key in keys]
    found = study.map("audited logs", audit_log, jobs)
    names = (*STRATEGIES, ELUTE)
    by_seed = {
        name: tuple(
            float(np.mean([value for log in found if log.key.seed == seed for value in log.regrets[name]]))
            for seed in range(seeds)
        )
        for name in names
    }
    return Reproduction(
        name="cmip-selection",
        title="Table 2 once more: the models that elute audit takes",
        source=SOURCE,
        settings=(
            f"Data: {graded.name}; users, policies and sessions as on the page of Table 2, after the text "
            f"({sizes.train} sessions a query to fit to); {seeds} runs of each of the 8 logs, each under 2 other "
            "policies.",
            "Candidates: DCTR, RDCTR, PBM, UBM and DBN, fitted by `elute.fit`. NCM and CACM are left out, for the nine "
            "too: fitted again to every redrawn log they would take days.",
            f"{ELUTE} is given the five fits, {sizes.test} sessions a query of the same policy that nothing was fitted "
            f"to, and the grades. Its rule: {RULE}",
            "Regret: perplexity of the model taken less that of the best of the five, under the other policy, × 1000. "
            f"Where {ELUTE} cannot tell models apart, the mean over these; where all fail and it takes none, over all "
            "five.",
        ),
        compared=[
            ComparedValue({"strategy": name, "regret × 1000": "mean over runs"}, values)
            for name, values in by_seed.items()
        ],
        claims=_claim(by_seed, found),
        reading=(
            "By user:",
            format_table(
                ("strategy", *USERS), [(name, *(f"{_mean(found, name, user):.2f}" for user in USERS)) for name in names]
            ),
            "Verdicts on each model, pass / unknown / fail, over both logging policies and all runs:",
            format_table(
                ("user", *COUNTED),
                [(user, *(_count_verdicts(found, user, at) for at in range(len(COUNTED)))) for user in USERS],
            ),
            "What it takes, by user:",
            format_table(("user", "taken"), [(user, _count_taken(found, user)) for user in USERS]),
            "Held-out perplexity alone is the best guide here: with 850 sessions a query none of the five learns pages "
            "by heart. The rule pays for asking first whether relevance is debiased: a DBN, whose verdict is unknown, "
            "is not taken where others pass, in its own world neither.",
            "To redraw clicks, a model of sessions reads and clicks its pages itself, and is fitted to them again. For "
            "the DBN that would take an hour a log, so it is not judged. What a pass means is that the order of the "
            "policy is not in relevance, and not that the model is right about clicks: PBM and UBM pass under DBN "
            "users too.",
        ),
    )


def audit_log(documents: Documents, key: LogKey, sizes: Sizes) -> AuditedLog:
    """Fit the five to one log, audit them, and measure what each choice loses under the other policies."""
    logs = simulate(documents, key, sizes)
    rows = list(measure_counted_models(key, logs, sizes))
    own = _read(rows, key.logging)
    candidates, impressions = _audit(logs, key)
    chosen = choose(candidates, impressions)
    taken = chosen.tied if chosen.model is None else (candidates[chosen.model].name,)
    regrets: dict[str, list[float]] = {name: [] for name in (*STRATEGIES, ELUTE)}
    for policy in (*(p for p in LOGGING if p != key.logging), "Uniform"):
        outside = [row["perplexity"] for row in _read(rows, policy)]
        figures = ([row[name] for row in own] for name in ("perplexity", "ndcg", "cmip"))
        for name, model in select(*figures).items():
            regrets[name].append(1000 * regret(outside, model))
        among = [COUNTED.index(name) for name in taken] or range(len(COUNTED))
        regrets[ELUTE].append(float(np.mean([1000 * regret(outside, model) for model in among])))
    return AuditedLog(key, regrets, taken, tuple(candidate.verdict.word for candidate in candidates))


def _audit(logs: Logs, key: LogKey) -> tuple[list[Candidate], Floats]:
    """What `elute audit` knows of the five, by their names here."""
    data = logs.world.documents.data
    labels = pa.table({"query_id": data.query_of, "doc_id": np.arange(data.n_documents), "grade": data.grades})
    held_out = _tabulate(logs.tests[key.logging, TEMPERATURE])
    with TemporaryDirectory() as folder:
        train = Path(folder) / "train.parquet"  # a file: an audit reads again what a model was fitted to
        write_parquet(train, _tabulate(logs.train))
        fits = [elute.fit(train, name.lower(), session="session") for name in COUNTED]
        found = elute.audit(fits, held_out, labels=labels, seed=key.seed, session="session").fits
    if found is None:
        raise EluteError("the fits were not compared")
    return [own._replace(name=name) for own, name in zip(found.candidates, COUNTED, strict=True)], found.impressions


def _tabulate(log: SessionLog) -> pa.Table:
    pages, width = log.rows.shape
    return pa.table(
        {
            "session": np.repeat(np.arange(pages), width),
            "query_id": np.repeat(log.query, width),
            "doc_id": log.rows.ravel(),
            "position": np.tile(np.arange(1, width + 1), pages),
            "click": log.click.ravel(),
        }
    )


def _read(rows: Sequence[Row], policy: PolicyName) -> list[Row]:
    """Those of a test policy, in the order of the models."""
    return [row for row in rows if (row["test"], row["temperature"]) == (policy, TEMPERATURE)]


def _mean(found: Sequence[AuditedLog], name: str, user: str) -> float:
    return float(np.mean([value for log in found if log.key.user == user for value in log.regrets[name]]))


def _count_verdicts(found: Sequence[AuditedLog], user: str, model: int) -> str:
    words = [log.verdicts[model] for log in found if log.key.user == user]
    return " / ".join(str(words.count(word)) for word in WORDS)


def _count_taken(found: Sequence[AuditedLog], user: str) -> str:
    taken = [" or ".join(log.taken) or "none" for log in found if log.key.user == user]
    return ", ".join(f"{name} {taken.count(name)}" for name in sorted(set(taken), key=taken.count, reverse=True))


def _claim(by_seed: dict[str, tuple[float, ...]], found: Sequence[AuditedLog]) -> tuple[Claim, ...]:
    mean = {name: float(np.mean(values)) for name, values in by_seed.items()}
    best = min(STRATEGIES, key=lambda name: mean[name])
    at_home = {
        name: [log.verdicts[COUNTED.index(name)] == "fail" for log in found if log.key.user == name]
        for name in ("PBM", "DBN")
    }
    return (
        Claim(
            "What elute audit takes loses no more than the best of the nine",
            mean[ELUTE] <= mean[best],
            f"{mean[ELUTE]:.2f}; '{best}' {mean[best]:.2f}, worst '{max(STRATEGIES, key=lambda n: mean[n])}' "
            f"{max(mean[n] for n in STRATEGIES):.2f}",
        ),
        *(
            Claim(
                f"In its own world {name} fails in at most 5% of logs", sum(f) <= 0.05 * len(f), f"{sum(f)} of {len(f)}"
            )
            for name, f in at_home.items()
        ),
    )
