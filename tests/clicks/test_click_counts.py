"""What fits are made of: counts, expected readings, and the prior."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from click_worlds import every_pattern, plain_params, random_model, random_pages, simulated, together
from scipy.special import digamma, polygamma

from elute.clicks import DBN, MODELS, Embedding, Sessions, model_of
from elute.clicks.base.beta import fit_beta, polygammas
from elute.clicks.exact.expectation import Weights, infer_readings
from elute.clicks.exact.tally import browsing_cells, tally
from elute.clicks.page import to_device_pages
from elute.estimate.models.ctr import fit_prior
from elute.simulation.shown import ShownPages
from elute.simulation.users import build_user
from reference import click_stories
from reference import plain_users as plain

DOCUMENTS, RANKS = 12, 4
COUNTED = [name for name in MODELS if name not in ("ncm", "cacm")]
pytestmark = pytest.mark.usefixtures("quick_compiling")
USER = {"pbm": "pbm", "ubm": "ubm", "cascade": "cascade", "dcm": "dcm", "dbn": "dbn"}


def world(name: str, sessions: int = 4000, shortest: int = 2, seed: int = 1):
    return simulated(build_user(USER.get(name, "dbn")), sessions, DOCUMENTS, RANKS, seed, shortest)


@pytest.mark.parametrize("name", ["dctr", "pbm", "sdbn"])
def test_a_fitted_prior_helps_where_documents_are_rare(name: str) -> None:
    """Held-out likelihood with the prior against maximum likelihood, with three impressions a document and rank."""
    user, rng = build_user(USER.get(name, "dbn")), np.random.default_rng(4)
    documents, ranks = 2000, 5
    relevance = rng.beta(1.0, 4.0, documents)

    def drawn(sessions: int) -> Sessions:
        doc = rng.integers(0, documents, (sessions, ranks)).astype(np.int32)
        clicks = user.draw_clicks(ShownPages(relevance[doc], np.full(sessions, ranks)), rng)
        return Sessions.from_arrays(doc, clicks)

    train, test = drawn(6000), drawn(4000)
    smoothed = model_of(name)(documents, ranks).fit(train)
    plain = model_of(name)(documents, ranks, prior=None).fit(train)
    weak = model_of(name)(documents, ranks, prior=(1.0, 1.0)).fit(train)
    reached = smoothed.log_likelihood(test).mean()
    assert reached > weak.log_likelihood(test).mean() + 0.01
    assert reached > plain.log_likelihood(test).mean() + 0.1


def test_a_document_never_seen_is_typical() -> None:
    sessions, _, _ = world("pbm")
    for name in COUNTED:
        model = model_of(name)(DOCUMENTS + 1, RANKS).fit(sessions)
        known = model.relevance_values_[:DOCUMENTS]
        assert known.min() < model.relevance_values_[DOCUMENTS] < known.max(), name


def test_the_beta_prior_is_that_of_scipy() -> None:
    rng = np.random.default_rng(5)
    for a, b, size in ((1.0, 4.0, 20), (0.3, 0.5, 200), (20.0, 60.0, 5)):
        n = rng.integers(1, size, 3000).astype(float)
        c = rng.binomial(n.astype(int), rng.beta(a, b, 3000)).astype(float)
        theirs = fit_prior(n, c, 1e-10, 500)
        assert theirs[3] == ""
        np.testing.assert_allclose(fit_beta(c, n), theirs[:2], rtol=2e-3)


def test_polygammas_are_those_of_scipy() -> None:
    x = np.concatenate((np.geomspace(1e-6, 1e8, 300), np.linspace(0.1, 20, 300)))
    one, two = polygammas(x)
    np.testing.assert_allclose(one, digamma(x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(two, polygamma(1, x), rtol=1e-9)


def rates_of(model, pages):
    """Parameters as probabilities, those of documents by place."""
    found = {}
    for name, values in model.params_.items():
        if name != "ranked":
            of_documents = isinstance(values, dict)
            logits = Embedding().logits(values, model._features, pages.doc) if of_documents else values
            found[name] = jax.nn.sigmoid(logits)
    return found


@pytest.mark.parametrize("name", ["cascade", "dcm", "ccm", "sdbn", "dbn"])
def test_expected_readings_are_those_of_the_story(name: str) -> None:
    """EM's P(read | clicks) by following every branch of a plain story that also tells what was read."""
    model = random_model(name, 11)
    pages = random_pages(12, [5, 4, 1, 3])
    each = together([every_pattern(pages.take(slice(row, row + 1))) for row in range(len(pages))])
    on_device = to_device_pages(each)
    logs = model.structure.log_chances(model.params_, model._features, on_device)
    chances = model.structure.chances(rates_of(model, on_device))
    np.testing.assert_allclose(chances.click, np.exp(logs.click), rtol=1e-5)
    np.testing.assert_allclose(chances.on_click, np.exp(logs.on_click), rtol=1e-5)
    np.testing.assert_allclose(np.broadcast_to(chances.on_skip, logs.on_skip.shape), np.exp(logs.on_skip), rtol=1e-5)
    read, log_p, _ = map(np.asarray, jax.jit(infer_readings)(chances, on_device.clicked, on_device.mask))
    possible = 0
    for i, row in enumerate(each.click):
        docs = each.doc[i, : each.length[i]].tolist()
        truth = plain.endings(click_stories.reading(name, plain_params(model), docs))
        clicked = {("click", k) for k in np.flatnonzero(row).tolist()}
        endings = {story: p for story, p in truth.items() if {x for x in story if x[0] == "click"} == clicked}
        total = sum(endings.values())
        if total == 0:
            continue
        possible += 1
        assert log_p[i] == pytest.approx(np.log(total), abs=2e-5)
        expected = [sum(p for story, p in endings.items() if ("read", k) in story) / total for k in range(len(docs))]
        np.testing.assert_allclose(read[i, : len(docs)], expected, atol=2e-6)
    assert possible >= 17  # even the cascade can do that many


def test_parts_of_a_log_are_counted_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Densely or not, at once or in parts: the same cells, those counted one by one."""
    sessions, _, _ = world("ubm", 500)
    parts = [sessions.take(slice(0, 200)), sessions.take(slice(200, 500))]
    whole = tally(sessions, DOCUMENTS, 10, browsing_cells)
    np.testing.assert_array_equal(np.concatenate(tally(parts, DOCUMENTS, 10, browsing_cells)), np.concatenate(whole))
    monkeypatch.setattr("elute.clicks.exact.tally._DENSE", 1)
    np.testing.assert_array_equal(np.concatenate(tally(parts, DOCUMENTS, 10, browsing_cells)), np.concatenate(whole))
    brute: dict[tuple[int, int, int], tuple[int, int]] = {}
    for row in range(len(sessions)):
        last = 0
        for k in range(1, sessions.length[row] + 1):
            key = (int(sessions.doc[row, k - 1]), k, k - last)
            n, c = brute.get(key, (0, 0))
            brute[key] = (n + 1, c + int(sessions.click[row, k - 1]))
            if sessions.click[row, k - 1]:
                last = k
    doc = np.repeat(np.arange(DOCUMENTS), np.diff(whole.offsets))
    triangle = [(k, d) for k in range(1, RANKS + 1) for d in range(1, k + 1)]
    found = {(int(d), *triangle[int(cell)]): (n, c) for d, cell, n, c in zip(doc, *whole[1:], strict=True)}
    assert found == brute


def test_expectations_of_parts_add_up_to_those_of_the_whole() -> None:
    sessions, _, _ = world("dbn", 500)
    parts = [sessions.take(slice(0, 200)), sessions.take(slice(200, 500))]
    model = DBN(DOCUMENTS, RANKS)
    weights = {
        "attraction": Weights(np.full(DOCUMENTS, 3.0), np.full(DOCUMENTS, 7.0)),
        "satisfaction": Weights(np.full(DOCUMENTS, 4.0), np.full(DOCUMENTS, 6.0)),
    }
    one, two = (model._expect(weights, {"continuation": np.array(0.7)}, None, source) for source in (sessions, parts))
    for name in one.tallies:
        np.testing.assert_allclose(one.tallies[name], two.tallies[name], rtol=2e-6, err_msg=name)
    reached = [DBN(DOCUMENTS, RANKS).fit(x).log_likelihood(sessions).mean() for x in (sessions, parts)]
    assert reached[0] == pytest.approx(reached[1], abs=1e-4)
