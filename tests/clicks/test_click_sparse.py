"""Session models where most documents have an impression or two: against a fine grid, a plain EM and the truth."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.special import betaln, expit, log_expit
from scipy.stats import beta as beta_distribution

from elute.clicks import Sessions, model_of
from elute.clicks.base.prior import pseudo_counts
from elute.clicks.base.ranked_prior import LOG_BOUNDS, RankedPrior, fit_ranked
from elute.clicks.exact.marginal import fit_marginally
from elute.clicks.exact.tally import PairCounts, mean_log_ranks
from elute.kernels.attraction import integrate_items
from elute.progress import silent
from elute_reproduce.clicks.plain_em import fit_em
from elute_reproduce.clicks.sparse_worlds import EXAMINATION, draw_world
from reference import plain_ubm_em

pytestmark = pytest.mark.usefixtures("quick_compiling")


def bits(p: np.ndarray, pages: Sessions) -> float:
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return float(np.exp2(-np.where(pages.clicked, np.log2(p), np.log2(1 - p)).mean(axis=0)).mean())


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.7), (1.0, 4.0), (30.0, 20.0)])
def test_integrals_over_attraction_are_those_of_a_fine_grid(a: float, b: float) -> None:
    """Evidence, posterior mean, and the odds that the gradient is made of; few impressions and many."""
    o = np.array([0.99, 0.4, 0.05])
    offsets, cell = np.array([0, 1, 3, 6]), np.array([0, 0, 2, 0, 1, 2])
    clicks, skips = np.array([1.0, 0, 0, 40, 9, 1]), np.array([0.0, 1, 3, 60, 51, 99])
    odds = np.empty(6)
    found = integrate_items(offsets, cell, skips, clicks, o, np.full(3, a), np.full(3, b), odds)
    u = np.linspace(-100.0, 100.0, 400_001)
    r, log_r, log_not = expit(u), log_expit(u), log_expit(-u)
    for item in range(3):
        at = slice(offsets[item], offsets[item + 1])
        p = r[:, None] * o[cell[at]]
        log = (clicks[at].sum() + a) * log_r + b * log_not + np.log1p(-p) @ skips[at]
        share = np.exp(log - log.max())
        evidence = log.max() + np.log(share.sum() * (u[1] - u[0]))
        share /= share.sum()
        expected = evidence, share @ r, share @ log_r, share @ log_not
        for one, other in zip(found, expected, strict=True):
            assert one[item] == pytest.approx(other, rel=1e-3, abs=1e-4)
        live = skips[at] > 0
        np.testing.assert_allclose(odds[at][live], (share @ (p / (1 - p)))[live], rtol=2e-3)


def test_a_single_cell_is_beta_binomial() -> None:
    """One rank: examination is a scale, and the prior's fit is that of clicks of impressions; z must not matter."""
    rng = np.random.default_rng(0)
    n = rng.integers(1, 8, 3000).astype(float)
    c = rng.binomial(n.astype(int), rng.beta(1.5, 3.0, 3000)).astype(float)
    fitted = fit_ranked(c, n, np.zeros(3000), RankedPrior(0.0, 0.0, 2.0), 200)
    a, b = pseudo_counts("fitted", c, n)
    # The ranked prior is fitted to a sample only where there are more documents than that.
    assert fitted.strength == pytest.approx(a + b, rel=0.01)
    assert expit(fitted.level) == pytest.approx(a / (a + b), rel=0.01)
    again = betaln(a + c, b + n - c).sum() - 3000 * betaln(a, b)
    x, y = fitted.counts(np.zeros(3000))
    assert betaln(x + c, y + n - c).sum() - betaln(x, y).sum() == pytest.approx(again, abs=0.1)


def test_the_gradient_is_that_of_the_objective() -> None:
    from elute.clicks.exact.marginal import _group_documents, _lose

    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 4, 60)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    cell = np.concatenate([np.sort(rng.choice(4, n, replace=False)) for n in lengths])
    n = rng.integers(1, 5, len(cell)).astype(float)
    cells = PairCounts(offsets, cell, n, np.minimum(rng.integers(0, 3, len(cell)), n).astype(float))
    some = _group_documents(cells, mean_log_ranks(cells, np.arange(4))[0])
    assert some.times.sum() == 60
    x = np.concatenate((np.log([0.9, 0.5, 0.3, 0.2]), [-0.5, 0.3, 0.8, 0.4]))
    value, slope = _lose(x, some, 4)
    for at in range(len(x)):
        step = np.eye(len(x))[at] * 1e-5
        up, down = _lose(x + step, some, 4)[0], _lose(x - step, some, 4)[0]
        assert slope[at] == pytest.approx((up - down) / 2e-5, rel=2e-3, abs=2e-2)
    assert np.isfinite(value)


def test_both_plain_ems_are_one() -> None:
    world = draw_world("ubm", 5, 60, np.random.default_rng(2))
    pages = world.train
    attraction, examination = fit_em(pages.doc, pages.clicked, world.documents, rounds=7)
    listed = [list(zip(d.tolist(), c.tolist(), strict=True)) for d, c in zip(pages.doc, pages.click, strict=True)]
    theirs = plain_ubm_em.fit(listed, rounds=7)
    for document, value in theirs[0].items():
        assert attraction[document] == pytest.approx(value, rel=1e-9)
    for (rank, last), value in theirs[1].items():
        assert examination[rank - 1, last] == pytest.approx(value, rel=1e-9)


def test_examinations_do_not_collapse_and_pages_are_predicted() -> None:
    """Two impressions a document, ranks chosen by a ranker: UBM against EM, click rates and the truth."""
    world = draw_world("ubm", 2, 3_000, np.random.default_rng(3))
    model = model_of("ubm")(world.documents, 10).fit(world.train)
    found = np.diag(model.examination_) / model.examination_[0, 0]
    assert model.converged_
    assert model.boundary_ == []
    assert np.abs(np.log(found[1:] / EXAMINATION[1:])).mean() < 0.25
    attraction, examination = fit_em(world.train.doc, world.train.clicked, world.documents)
    last = np.maximum.accumulate(np.where(world.test.clicked, np.arange(1, 11), 0), axis=1)
    last = np.concatenate((np.zeros((len(last), 1), int), last[:, :-1]), axis=1)
    plain = bits(attraction[world.test.doc] * examination[np.arange(10), last], world.test)
    reached = bits(model.predict_conditional_clicks(world.test), world.test)
    assert reached < plain + 0.002
    assert reached < bits(np.broadcast_to(world.train.clicked.mean(axis=0), world.test.doc.shape), world.test)


def test_a_page_of_unknown_documents_is_the_prior_by_rank() -> None:
    world = draw_world("pbm", 2, 2_000, np.random.default_rng(4))
    model = model_of("pbm")(world.documents + 1, 10).fit(world.train)
    unknown = Sessions.from_arrays(np.full((1, 10), world.documents), np.zeros((1, 10)))
    p = model.predict_clicks(unknown)[0] / np.asarray(model.examination_)
    assert (np.diff(p) < 0).all()  # a ranker that knows something shows worse documents below
    assert model.priors_["attraction"]["slope"] < -0.2


def test_a_fit_at_the_boundary_says_so() -> None:
    """All clicked, everywhere: examination is 1 at every rank, and nothing says by how much less it might be."""
    doc = np.random.default_rng(0).integers(0, 30, (400, 3))
    model = model_of("pbm")(30, 3, prior=None).fit(Sessions.from_arrays(doc, np.ones_like(doc)))
    assert len(model.boundary_) == 3
    assert "rank 1" in model.boundary_[0]


def test_rates_of_going_on_are_recovered_where_documents_are_rare() -> None:
    world = draw_world("dbn", 4, 2_000, np.random.default_rng(5))
    model = model_of("dbn")(world.documents, 10).fit(world.train)
    assert model.continuation_ == pytest.approx(0.85, abs=0.06)
    prior = model.priors_["attraction"]
    assert prior["slope"] < 0
    shown = np.bincount(world.train.doc.ravel(), minlength=world.documents) > 0
    assert beta_distribution(0.8, 2.4).mean() == pytest.approx(float(np.mean(model.attraction_[shown])), abs=0.08)


def test_a_given_prior_is_kept() -> None:
    world = draw_world("pbm", 3, 300, np.random.default_rng(6))
    model = model_of("pbm")(world.documents, 10, prior=(1.0, 3.0)).fit(world.train)
    assert model.priors_["attraction"] == pytest.approx({"mean": 0.25, "slope": 0.0, "strength": 4.0})


def test_no_clicks_at_all_is_no_error() -> None:
    doc = np.arange(40).reshape(10, 4)
    pages = Sessions.from_arrays(doc, np.zeros_like(doc))
    for name in ("pbm", "ubm", "dbn", "ccm", "dcm", "sdbn", "cascade"):
        p = model_of(name)(40, 4).fit(pages).predict_clicks(pages)
        assert np.isfinite(p).all(), name
        assert p.max() < 0.3, name


def test_documents_with_one_impression_each_are_fitted_as_click_rates() -> None:
    """Nothing tells examination from relevance: the slope stays at 0, and the product is the click rate of the rank."""
    rng = np.random.default_rng(7)
    rates = np.array([0.4, 0.2, 0.1, 0.05])
    doc = np.arange(12_000).reshape(3_000, 4)
    pages = Sessions.from_arrays(doc, rng.random(doc.shape) < rates)
    cells = PairCounts(
        np.arange(12_001), np.tile(np.arange(4), 3_000), np.ones(12_000), pages.click.ravel().astype(np.float64)
    )
    found = fit_marginally(cells, 4, mean_log_ranks(cells, np.arange(4))[0], None, silent)
    z = np.log1p(np.arange(4)) - mean_log_ranks(cells, np.arange(4))[1]
    p = found.examination * expit(found.prior.level + found.prior.slope * z)
    np.testing.assert_allclose(p, pages.clicked.mean(axis=0), rtol=0.05)


NO_JAX = """
import sys
for name in ("jax", "optax"): sys.modules[name] = None
import numpy as np
from elute.clicks import MODELS, BY_GRADIENTS, Sessions, model_of
from elute.errors import EluteError
rng = np.random.default_rng(0)
pages = Sessions.from_arrays(rng.integers(0, 9, (300, 4)), rng.random((300, 4)) < .3, length=rng.integers(1, 5, 300))
for name in MODELS:
    if name in BY_GRADIENTS:
        try: model_of(name)(9, 4)
        except EluteError as refused: print(name, str(refused).count("elute[neural]"))
        continue
    model = model_of(name)(9, 4).fit(pages)
    model.save(sys.argv[1])
    model = model_of(name)(9, 4).load(sys.argv[1])
    print(name, *np.round([model.predict_clicks(pages).sum(), model.predict_conditional_clicks(pages).sum()], 3))
"""


def test_exact_fits_need_no_jax(tmp_path) -> None:
    """And give what they give with it, in single precision."""
    run = [sys.executable, "-c", NO_JAX, str(tmp_path / "model.npz")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert lines["ncm"] == lines["cacm"] == "1"
    rng = np.random.default_rng(0)
    pages = Sessions.from_arrays(
        rng.integers(0, 9, (300, 4)), rng.random((300, 4)) < 0.3, length=rng.integers(1, 5, 300)
    )
    for name in ("dctr", "rdctr", "pbm", "ubm", "dbn", "ccm"):
        model = model_of(name)(9, 4).fit(pages)
        sums = model.predict_clicks(pages).sum(), model.predict_conditional_clicks(pages).sum()
        np.testing.assert_allclose([float(x) for x in lines[name].split()], sums, rtol=5e-3, err_msg=name)


def test_a_strong_ranker_bends_examinations_less_where_documents_below_may_be_more_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Few good documents, nearly always on top, and 60 impressions a document: against the truth, with `growth` of the
    prior and without."""
    from elute.clicks.exact import marginal

    grades, truth = np.array([0.02, 0.05, 0.15, 0.5, 0.9]), 1 / np.arange(1, 11)

    def miss(seed: int) -> float:
        rng = np.random.default_rng(seed)
        r = rng.choice(grades, (60, 10), p=[0.4, 0.25, 0.2, 0.1, 0.05])
        score = (np.log(r) + rng.normal(0.0, 0.5, r.shape)).repeat(60, axis=0)
        order = np.argsort(-(score + rng.gumbel(0.0, 0.5, score.shape)), axis=1)
        query = np.repeat(np.arange(60), 60)[:, None]
        pages = Sessions.from_arrays(query * 10 + order, rng.random(order.shape) < r[query, order] * truth)
        model: Any = model_of("pbm")(600, 10).fit(pages)
        o = model.examination_
        return float(np.mean(np.log(o / o[0] / truth)[1:] ** 2))

    free = np.mean([miss(seed) for seed in range(8)])
    monkeypatch.setattr(marginal, "LOG_BOUNDS", (*LOG_BOUNDS[:3], (0.0, 0.0)))
    held = np.mean([miss(seed) for seed in range(8)])
    assert free < 0.8 * held, (free, held)
