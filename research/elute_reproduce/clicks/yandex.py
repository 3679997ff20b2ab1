"""Real clicks: every session click model on the Yandex Relevance Prediction log, by how it predicts held-out pages."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.auditing.perplexity import Perplexity, conditional_perplexity, perplexity
from elute.clicks import BY_GRADIENTS, MODELS, Sessions
from elute.clicks.base.model import ClickModel
from elute.io.sessions import read_sessions
from elute.log import read_log
from elute.reporting.charts import specs
from elute.sessions.fit import fit_log
from elute_reproduce.fit.yandex import find_folder
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

RATES = ("dctr", "rdctr")
"""The click rates that a model must beat."""


class HeldOutResult(NamedTuple):
    """Of one model: perplexity on held-out pages, given their clicks above and not; mean log-likelihood of such a
    page; and predicted over actual clicks at each rank of the pages it was fitted to."""

    given: Perplexity
    alone: Perplexity
    likelihood: float
    balance: NDArray[np.float64]


def run(study: Study) -> Reproduction:
    """Fit all to the pages of `train.parquet` as `elute fit` does, judge them on those of `test.parquet`."""
    folder = find_folder(study.data)
    path = str(folder / "train.parquet")
    found: dict[str, HeldOutResult] = {}
    again = 0.0
    with read_log(path, session="session_id") as log:
        for done, name in enumerate(MODELS):
            study.progress(name, done, len(MODELS))
            fit = fit_log(log, name)
            train, test = (
                read_sessions(folder / f"{part}.parquet", vocabulary=fit.vocabulary)[0] for part in ("train", "test")
            )
            found[name] = judge(fit.model, train, test)
            again = float((test.clicked.sum(axis=1) > 1).mean())
    return Reproduction(
        name="clicks-yandex",
        title="Session click models on real clicks: the Yandex log",
        source="Yandex Relevance Prediction Challenge (sample): 35,064 pages to train on, 21,413 held out",
        settings=(
            "Models as `elute fit --model NAME --session session_id` fits them: on counts or by EM with a Beta prior "
            "fitted to the documents; ncm and cacm by gradients, one run, a tenth of the pages held out to stop by.",
            "Perplexity (Eq. 2 and 3 of the CMIP paper): mean over ranks, on held-out pages, of P(click) whatever else "
            "is clicked, and of P(click | the page's clicks above).",
            "Ranks were not randomised, and one of the 20 queries has two thirds of the pages.",
        ),
        compared=[
            ComparedValue({"model": name, "figure": figure}, (value,))
            for name, one in found.items()
            for figure, value in (("given clicks above", one.given.mean), ("alone", one.alone.mean))
            if math.isfinite(value)
        ],
        claims=claims(found),
        figures=(_figure(found),),
        reading=(
            _table(found),
            f"The cascade model holds a second click for impossible, and {again:.0%} of the held-out pages have one: "
            "its perplexity given clicks above is infinite.",
            "Why browsing models gain nothing without the clicks above: pbm has no memory, so that the likelihood it "
            "maximises *is* that of each click alone; its predicted clicks at a rank add up to those of the log, up to "
            "the prior. UBM and DBN maximise the likelihood of each click after those above it, and where their story "
            "of browsing is not quite true, what they predict of a rank alone, averaged over the clicks they imagine "
            "above it, is off (last column of the table). They know more of how a page is read, and are the better "
            "models of whole pages by likelihood; for a click alone that is no help.",
        ),
    )


def judge(model: ClickModel[Any], train: Sessions, test: Sessions) -> HeldOutResult:
    """On pages it has not seen, and whether its clicks add up on those it has."""
    given, alone = model.predict_conditional_clicks(test), model.predict_clicks(test)
    predicted = model.predict_clicks(train).sum(axis=0)
    return HeldOutResult(
        conditional_perplexity(np.clip(given, 0.0, 1.0), test.clicked, mask=test.mask),
        perplexity(np.clip(alone, 0.0, 1.0), test.clicked, mask=test.mask),
        float(model.log_likelihood(test).mean()),
        predicted / train.clicked.sum(axis=0),
    )


def claims(found: dict[str, HeldOutResult]) -> tuple[Claim, ...]:
    given = {name: one.given.mean for name, one in found.items()}
    alone = {name: one.alone.mean for name, one in found.items()}

    def list_values(values: dict[str, float], *names: str) -> str:
        return ", ".join(f"{values[name]:.4f} ({name})" for name in names)

    best_rate = min(RATES, key=lambda name: given[name])
    off = {name: float(np.abs(np.log(found[name].balance)).max()) for name in ("pbm", "ubm", "dbn")}
    return (
        Claim(
            "Given the clicks above, UBM and DBN predict better than PBM, and PBM better than click rates.",
            max(given["ubm"], given["dbn"]) < given["pbm"] < given[best_rate],
            list_values(given, "ubm", "dbn", "pbm", *RATES),
        ),
        Claim(
            "Without them, PBM predicts better than click rates.",
            alone["pbm"] < min(alone[r] for r in RATES),
            list_values(alone, "pbm", *RATES),
        ),
        Claim(
            "Without them, UBM and DBN predict better than PBM.",
            max(alone["ubm"], alone["dbn"]) < alone["pbm"],
            list_values(alone, "ubm", "dbn", "pbm"),
        ),
        Claim(
            "PBM's clicks add up at every rank it was fitted to, those of UBM and DBN do not.",
            off["pbm"] < 0.5 * min(off["ubm"], off["dbn"]),
            ", ".join(f"{np.expm1(value):.1%} off at most ({name})" for name, value in off.items()),
        ),
    )


def _figure(found: dict[str, HeldOutResult]) -> StudyFigure:
    rows = [
        {"rank": rank + 1, "model": name, "perplexity": float(value)}
        for name, one in found.items()
        for rank, value in enumerate(one.given.at_rank)
        if math.isfinite(value)
    ]
    chart = specs.lines(rows, x="rank", y="perplexity", series="model", size=(520, 300))
    return StudyFigure(
        "perplexity", "Perplexity by rank given the clicks above, on held-out pages; lower is better", chart
    )


def _table(found: dict[str, HeldOutResult]) -> str:
    lines = [
        f"| {name} | {_format_number(one.given.mean)} | {_format_number(one.alone.mean)} | "
        f"{_format_number(one.likelihood)} | "
        f"{'gradients' if name in BY_GRADIENTS else 'exact'} | "
        f"{one.balance.min():.2f} to {one.balance.max():.2f} |"
        for name, one in sorted(found.items(), key=lambda entry: entry[1].given.mean)
    ]
    heads = (
        "model",
        "given clicks above",
        "alone",
        "log-likelihood of a page",
        "fit",
        "predicted / actual clicks by rank",
    )
    return "\n".join(
        ["Perplexity on held-out pages, best first:\n", f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *lines]
    )


def _format_number(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else ("∞" if value > 0 else "-∞")
