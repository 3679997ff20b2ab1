"""Simulated logs of the CMIP paper's experiment, the seven click models fitted to them, and what each scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from elute.auditing.cmip import cmip
from elute.auditing.perplexity import conditional_perplexity, perplexity
from elute.auditing.ranking_metrics import ndcg
from elute.clicks import CACM, NCM, Sessions, Training, model_of
from elute.clicks.base.model import ClickModel
from elute.progress import Progress, silent
from elute_reproduce.cmip import world as worlds
from elute_reproduce.cmip.together import fit_together, predict_together
from elute_reproduce.cmip.world import CmipWorld, Documents, Floats, PolicyName, Reading, SessionLog, UserName

COUNTED = ("DCTR", "RDCTR", "PBM", "UBM", "DBN")
"""Fitted on counts or by EM, at their maximum; the paper takes the same steps of Adam for all."""
RECURRENT = ("NCM", "CACM")
MODELS = (*COUNTED, *RECURRENT)
"""The paper's seven (section 5.2)."""
TEMPERATURES = (worlds.TEMPERATURE, 0.0)
"""Of the test rankings: the text's, and the public code's."""

Row = dict[str, Any]
"""One fitted model under one test policy at one temperature: the job's fields and the figures."""


@dataclass(frozen=True)
class Sizes:
    """Sessions for each query, and how the recurrent models are trained.

    The sessions are those of the paper: 5, 1 and 1 million over 5,888 queries. `pages`: how many of the test sessions
    marginal probabilities are computed on. Clicks are not drawn there but taken at their exact probability, which is
    what ever more clicks on these pages come to.
    """

    train: int = 850
    validation: int = 170
    test: int = 170
    pages: int = 20
    epochs: int = 10
    batch: int = 256
    rate: float = 0.001
    patience: int = 1


class LogKey(NamedTuple):
    """Which log."""

    reading: Reading
    user: UserName
    logging: PolicyName
    seed: int


class Logs(NamedTuple):
    """What one job draws; tests by policy and temperature."""

    world: CmipWorld
    train: SessionLog
    validation: SessionLog
    tests: dict[tuple[PolicyName, float], SessionLog]


def simulate(documents: Documents, job: LogKey, sizes: Sizes) -> Logs:
    """All sessions of a job."""
    world = worlds.build(documents, job.reading, job.user, job.seed)
    names = (worlds.READINGS.index(job.reading), worlds.USERS.index(job.user), worlds.LOGGING.index(job.logging))
    queries, stream = documents.data.n_queries, (job.seed, *names)
    logged = world.policy(job.logging)
    tests = {
        (policy, temperature): worlds.draw(
            world, world.policy(policy, temperature), sizes.test * queries, (*stream, 2, i, j)
        )
        for i, policy in enumerate(worlds.POLICIES)
        for j, temperature in enumerate(TEMPERATURES)
    }
    train = worlds.draw(world, logged, sizes.train * queries, (*stream, 0))
    return Logs(world, train, worlds.draw(world, logged, sizes.validation * queries, (*stream, 1)), tests)


def measure_counted_models(job: LogKey, logs: Logs, sizes: Sizes, models: Sequence[str] = COUNTED) -> Iterator[Row]:
    """Fit to one log the models that counts suffice for, and measure each."""
    documents = logs.world.documents
    for name in models:
        model = fit_counted(name, logs)
        figures = score_relevance(model.relevance_values_, logs.world, job)
        for test, log in logs.tests.items():
            shown, back = _find_distinct_pages(log, sizes.pages * documents.data.n_queries)
            marginal = model.predict_clicks(shown)[back]
            yield _make_row(job, name, figures, test, log, marginal, model.predict_conditional_clicks(to_sessions(log)))


def fit_counted(name: str, logs: Logs) -> ClickModel[Any]:
    """A model of `COUNTED`, fitted to the training log."""
    documents = logs.world.documents
    build: Callable[[int, int], ClickModel[Any]] = model_of(name.lower())
    return build(documents.data.n_documents, documents.width).fit(to_sessions(logs.train))


def measure_recurrent_models(
    jobs: Sequence[LogKey], logs: Sequence[Logs], sizes: Sizes, progress: Progress = silent
) -> Iterator[Row]:
    """Fit the recurrent models to several logs of one kind at once, and measure each."""
    documents = logs[0].world.documents
    n, width, queries = documents.data.n_documents, documents.width, documents.data.n_queries
    training = Training(epochs=sizes.epochs, batch=sizes.batch, learning_rate=sizes.rate, patience=sizes.patience)
    train, validation = ([to_sessions(getattr(own, part)) for own in logs] for part in ("train", "validation"))
    for name in RECURRENT:
        model = NCM(n, width, queries=queries) if name == "NCM" else CACM(n, width)
        seeds = [job.seed for job in jobs]
        fits = fit_together(model.structure, train, validation, seeds, training, progress)
        figures = []
        for i, (job, own) in enumerate(zip(jobs, logs, strict=True)):
            model.params_ = jax.tree.map(lambda values, i=i: values[i], fits.params)
            relevance = (
                model.estimate_relevance(documents.data.query_of) if isinstance(model, NCM) else model.relevance_values_
            )
            figures.append(score_relevance(relevance, own.world, job))
        for test in logs[0].tests:
            tests = [own.tests[test] for own in logs]
            alike = [_find_distinct_pages(log, sizes.pages * queries) for log in tests]
            # Filled up by repetition to one shape for all: at temperature 0, where a query has one page, a small one.
            places = np.arange(queries * (1 if test[1] == 0 else sizes.pages))
            filled = [shown.take(places % len(shown)) for shown, _ in alike]
            marginal = predict_together(model.structure, fits.params, filled, marginal=True)
            given = predict_together(model.structure, fits.params, [to_sessions(log) for log in tests], marginal=False)
            for i, job in enumerate(jobs):
                yield _make_row(job, name, figures[i], test, tests[i], marginal[i][alike[i][1]], given[i])


def to_sessions(log: SessionLog, chosen: NDArray[np.intp] | slice = slice(None)) -> Sessions:
    """As the click models take them."""
    return Sessions.from_arrays(log.rows[chosen], log.click[chosen], query=log.query[chosen])


def score_relevance(relevance: Floats, world: CmipWorld, job: LogKey) -> Row:
    """nDCG, and CMIP against the policy's expected rank (the text) and against its raw score (the code)."""
    data = world.documents.data
    against = {"cmip": world.policy(job.logging).expected_ranks(data), "cmip_score": world.scores[job.logging]}
    found = {name: cmip(relevance, values, data.grades, permutations=1).estimate for name, values in against.items()}
    return {"ndcg": ndcg(data.grades, relevance, data.offsets).mean, **found}


def _find_distinct_pages(log: SessionLog, pages: int) -> tuple[Sessions, NDArray[np.intp]]:
    """The different pages among the first ones of a log, and which of them each is."""
    first, back = np.unique(log.rows[:pages], axis=0, return_index=True, return_inverse=True)[1:]
    return to_sessions(log, first), back.ravel()


def _make_row(
    job: LogKey,
    model: str,
    figures: Row,
    test: tuple[PolicyName, float],
    log: SessionLog,
    marginal: Floats,
    given: Floats,
) -> Row:
    """Perplexity as Eq. 2 and 3 have it, and conditional on the clicks above, as the public code does for most."""
    return {
        **job._asdict(),
        "model": model,
        **figures,
        "test": test[0],
        "temperature": test[1],
        "perplexity": perplexity(marginal, log.chance[: len(marginal)]).mean,
        "conditional": conditional_perplexity(given, log.click).mean,
    }
