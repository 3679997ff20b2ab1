"""Session click models from 2 to 200 impressions a document, against the truth and a plain EM; and on real clicks."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute.clicks import Sessions, model_of
from elute.io.sessions import read_sessions
from elute.log import read_log
from elute.reporting.charts import specs
from elute.sessions.fit import fit_log
from elute.sessions.scores import HeldOutFigure, compare, lose_bits, measure_mean, measure_perplexity
from elute_reproduce.clicks.peer import BATCH, RATE, has_clax, predict_by_clax
from elute_reproduce.clicks.plain_em import fit_em, last_clicks
from elute_reproduce.clicks.sparse_worlds import ALPHA, EXAMINATION, GAMMA, SparseWorld, draw_world
from elute_reproduce.fit.yandex import find_folder
from elute_reproduce.result import Claim, ComparedValue, Reproduction, StudyFigure
from elute_reproduce.study import Study

IMPRESSIONS = (2, 5, 20, 200)
PAGES, RUNS = 3_000, 2
OF_UBM = ("ubm", "pbm", "dbn", "sdbn", "ccm", "dcm", "rdctr", "dctr")
OWN = ("pbm", "dbn", "ccm")
ON_YANDEX = ("dctr", "rdctr", "pbm", "dcm", "ccm", "ubm", "sdbn", "dbn")
MARGIN = 0.002
Floats = NDArray[np.float64]
Found = dict[tuple[str, str, int], list[float]]
"""By (what, world or model, impressions): a value a run."""


def run(study: Study) -> Reproduction:
    found: Found = defaultdict(list)
    for one in study.map("worlds", judge_world, [(n, run) for n in IMPRESSIONS for run in range(RUNS)]):
        for key, values in one.items():
            found[key] += values
    table, real = _judge_yandex(study)
    return Reproduction(
        name="clicks-sparse",
        title="Session click models on sparse logs",
        source="Our own claim: examinations are right and held-out pages predicted from 2 impressions a document on",
        settings=(
            f"{PAGES:,} pages of 10 to fit, as many to judge on, {RUNS} draws a cell; a ranker that knows something of "
            "relevance chooses 10 of a query's 14 documents, with noise, so that low ranks hold worse documents.",
            "Users: a UBM for the table of perplexities; PBM, DBN and CCM for the model of the same name. Perplexity "
            "is that of each click given the page's clicks above; 'truth' is that of the user's own probabilities.",
            "EM: a plain EM for UBM with one pseudo-click and one pseudo-skip on everything, 50 rounds. 'Click rate by "
            "rank' is that of the pages that were fitted.",
            f"CLAX: its UBM by its own trainer, AdamW at {RATE}, batches of {BATCH} pages, a tenth held out to stop by."
            if has_clax()
            else "CLAX is not run: it was not installed where this page was made.",
        ),
        compared=[
            ComparedValue({"what": what, "model": name, "impressions a document": str(n)}, tuple(values))
            for (what, name, n), values in found.items()
        ],
        claims=(*_claim(found), *real),
        figures=(_draw(found),),
        reading=(
            _tabulate(found),
            "Maximum likelihood with free attractions, which elute used before, has examination 1 nearly everywhere at "
            "2 impressions a document. What replaces it integrates attraction out under a Beta prior whose mean and "
            "strength may depend on the ranks that a document was shown at (`elute.clicks.base.ranked_prior`).",
            table,
        ),
    )


def judge_world(n: int, run: int) -> Found:
    """All models in worlds of `n` impressions a document."""
    found: Found = defaultdict(list)
    rng = np.random.default_rng([run, n])
    world = draw_world("ubm", n, PAGES, rng)
    doc, clicked, mask = world.test.doc, world.test.clicked, world.test.mask
    rates = np.broadcast_to(world.train.clicked.mean(axis=0), mask.shape)
    attraction, examination = fit_em(world.train.doc, world.train.clicked, world.documents)
    plain = attraction[doc] * examination[np.arange(doc.shape[1]), last_clicks(clicked)]
    for name, p in (("truth", world.truth), ("EM", plain), ("click rate by rank", rates)):
        found["perplexity", name, n].append(_measure(p, world.test).estimate)
    found["error of examination", "EM", n].append(_miss(np.array([examination[k, 0] for k in range(10)])))
    for name in OF_UBM:
        model = model_of(name)(world.documents, 10).fit(world.train)
        found["perplexity", name, n].append(_measure(model.predict_conditional_clicks(world.test), world.test).estimate)
        if name == "ubm":
            found["error of examination", name, n].append(_miss(np.diag(model.examination_)))
    if has_clax():
        p = predict_by_clax(world.train, world.test, world.documents, run)
        found["perplexity", "CLAX", n].append(_measure(p, world.test).estimate)
    for name in OWN:
        _judge_own(found, name, n, draw_world(name, n, PAGES, rng))
    return dict(found)


def _judge_own(found: Found, name: str, n: int, world: SparseWorld) -> None:
    """A model in the world of its own user."""
    model: Any = model_of(name)(world.documents, 10).fit(world.train)
    p = model.predict_conditional_clicks(world.test)
    over = _measure(p, world.test).estimate - _measure(world.truth, world.test).estimate
    found["perplexity over the truth, own world", name, n].append(over)
    if name == "pbm":
        found["error of examination", name, n].append(_miss(model.examination_))
        return
    truth = {"dbn": {"γ": GAMMA}, "ccm": dict(zip(("α₁", "α₂", "α₃"), ALPHA, strict=True))}[name]
    for label, value in zip(truth, np.ravel(model.continuation_), strict=True):
        found[f"{label} ({truth[label]:g})", name, n].append(float(value))


def _miss(examination: Floats) -> float:
    """Mean of |log ratio| to the truth where nothing is clicked above, at ranks 2 to 10."""
    ratio = (examination / examination[0]) / (EXAMINATION / EXAMINATION[0])
    return float(np.abs(np.log(np.maximum(ratio[1:], 1e-3))).mean())


def _measure(p: Floats, pages: Sessions) -> HeldOutFigure:
    mask = pages.mask
    queries, query = np.unique(pages.query, return_inverse=True)
    place = np.broadcast_to(np.arange(pages.width), mask.shape)[mask]
    of_query = np.repeat(query, pages.length)
    bits = lose_bits(p[mask], pages.clicked[mask])
    return measure_perplexity(bits, np.ones(len(bits)), place, of_query, len(queries))


def _claim(found: Found) -> tuple[Claim, ...]:
    def gaps(one: str, other: str) -> dict[int, float]:
        both = {n: zip(found["perplexity", one, n], found["perplexity", other, n], strict=True) for n in IMPRESSIONS}
        return {n: max(a - b for a, b in pairs) for n, pairs in both.items()}

    over_em, missed = gaps("ubm", "EM"), [np.mean(found["error of examination", "ubm", n]) for n in IMPRESSIONS]
    of_em = [np.mean(found["error of examination", "EM", n]) for n in IMPRESSIONS]
    over_rank = {name: max(gaps(name, "click rate by rank").values()) for name in OF_UBM[:6]}
    list_gaps = ", ".join(f"{gap:+.4f} ({n})" for n, gap in over_em.items())
    return (
        Claim(
            f"UBM's held-out perplexity is never above that of the plain EM by more than {MARGIN}.",
            max(over_em.values()) <= MARGIN,
            f"largest difference by impressions a document: {list_gaps}",
        ),
        Claim(
            "No browsing model predicts held-out pages worse than the click rate of each rank.",
            max(over_rank.values()) <= 0,
            "largest difference: " + ", ".join(f"{gap:+.4f} ({name})" for name, gap in over_rank.items()),
        ),
        Claim(
            "UBM's examinations are nearer to the truth than the plain EM's, at every density.",
            bool(all(a < b for a, b in zip(missed, of_em, strict=True))),
            "mean |log ratio|: "
            + ", ".join(f"{a:.2f} against {b:.2f} ({n})" for a, b, n in zip(missed, of_em, IMPRESSIONS, strict=True)),
        ),
    )


def _draw(found: Found) -> StudyFigure:
    rows = [
        {"impressions": n, "model": name, "perplexity": float(np.mean(values))}
        for (what, name, n), values in found.items()
        if what == "perplexity" and name in ("truth", "EM", "click rate by rank", "ubm", "pbm", "dbn", "ccm")
    ]
    chart = specs.lines(rows, x="impressions", y="perplexity", series="model", size=(520, 300))
    caption = "Held-out perplexity given the clicks above, by impressions a document; lower is better"
    return StudyFigure("perplexity", caption, chart)


def _tabulate(found: Found) -> str:
    peer = ("CLAX",) if ("perplexity", "CLAX", IMPRESSIONS[0]) in found else ()
    names = ("truth", *OF_UBM[:1], "EM", *peer, *OF_UBM[1:], "click rate by rank")
    lines = [
        f"| {name} | " + " | ".join(f"{np.mean(found['perplexity', name, n]):.4f}" for n in IMPRESSIONS) + " |"
        for name in names
    ]
    head = "| model | " + " | ".join(map(str, IMPRESSIONS)) + " |"
    title = "Held-out perplexity in the UBM world, by impressions a document:\n"
    return "\n".join([title, head, "|" + "---|" * (len(IMPRESSIONS) + 1), *lines])


def _judge_yandex(study: Study) -> tuple[str, tuple[Claim, ...]]:
    """The table of the Yandex log, and which differences from the best are real."""
    folder = find_folder(study.data)
    given: dict[str, HeldOutFigure] = {}
    likelihood: dict[str, HeldOutFigure] = {}
    with read_log(str(folder / "train.parquet"), session="session_id") as log:
        for name in ON_YANDEX:
            study.progress(name, 0, 0)
            fit = fit_log(log, name)
            test = read_sessions(folder / "test.parquet", vocabulary=fit.vocabulary)[0]
            codes = np.unique(test.query, return_inverse=True)
            given[name] = _measure(fit.model.predict_conditional_clicks(test), test)
            likelihood[name] = measure_mean(fit.model.log_likelihood(test), codes[1], len(codes[0]))
    best = min(given, key=lambda name: given[name].estimate)
    lines, real = [], []
    for name in sorted(given, key=lambda name: given[name].estimate):
        to_best, half = compare(given[name], given[best]), given[name].half_width
        told = "–" if name == best else ("real" if to_best.p_value < 0.05 else "cannot tell them apart")
        real += [name] if told == "real" else []
        lines.append(
            f"| {name} | {given[name].estimate:.4f} ± {half:.4f} | {likelihood[name].estimate:.3f} ± "
            f"{likelihood[name].half_width:.3f} | {to_best.difference:+.4f} ({to_best.low:+.4f} to {to_best.high:+.4f})"
            f" | {to_best.p_value:.2g} | {told} |"
        )
    head = (
        f"| model | perplexity given clicks above | log-likelihood of a page | less that of {best} | p | difference |"
    )
    title = (
        "The Yandex log, fitted to `train.parquet`, judged on `test.parquet`. Intervals are clustered by query, and "
        "differences paired by query; there are 20 queries, and one has two thirds of the pages:\n"
    )
    claim = Claim(
        "On the Yandex log UBM or DBN predicts best, and click rates are really worse.",
        best in ("ubm", "dbn") and "dctr" in real,
        f"best: {best}; really worse at 5%: {', '.join(real) or 'none'}",
    )
    return "\n".join([title, head, "|---|---|---|---|---|---|", *lines]), (claim,)
