"""Models fitted together are those fitted one by one, and rows hold what they say."""

from __future__ import annotations

import numpy as np
import pytest

from elute.auditing.perplexity import perplexity
from elute.clicks import UBM, Training
from elute.progress import silent
from elute.ranking.data import RankingData
from elute_reproduce.cmip.fits import (
    TEMPERATURES,
    LogKey,
    Logs,
    Sizes,
    fit_counted,
    measure_counted_models,
    simulate,
    to_sessions,
)
from elute_reproduce.cmip.together import fit_together, predict_together
from elute_reproduce.cmip.world import POLICIES, Documents

SIZES = Sizes(train=60, validation=20, test=20, pages=5, epochs=3, batch=64, rate=0.05)

pytestmark = pytest.mark.usefixtures("quick_compiling")


@pytest.fixture(scope="module")
def logs() -> list[Logs]:
    rng = np.random.default_rng(0)
    grades, ids = rng.integers(0, 3, 100).astype(np.int32), np.arange(100).astype(str)
    data = RankingData(np.zeros((100, 0), np.float32), grades, np.arange(0, 101, 4), ids[:25], ids)
    documents = Documents(data, rng.normal(size=100), 2)
    return [simulate(documents, LogKey("text", "DBN", "LambdaMART", seed), SIZES) for seed in (3, 8)]


def test_together_is_one_by_one(logs: list[Logs]) -> None:
    """The same parameters, so the same predictions, as the package's own training loop, early stopping included.

    With UBM, which compiles faster than the recurrent models; the loop knows nothing of the model.
    """
    train, validation = ([to_sessions(getattr(own, part)) for own in logs] for part in ("train", "validation"))
    model = UBM(100, 4)
    fits = fit_together(
        model.structure, train, validation, [3, 8], Training(epochs=6, batch=64, learning_rate=0.2, patience=1), silent
    )
    test = [to_sessions(own.tests["Uniform", 0.1]) for own in logs]
    found = {m: predict_together(model.structure, fits.params, test, marginal=m) for m in (True, False)}
    for i, seed in enumerate((3, 8)):
        alone = UBM(100, 4).fit(
            train[i], validation[i], training=Training(epochs=6, batch=64, learning_rate=0.2, patience=1, seed=seed)
        )
        assert fits.best[i] == alone.best_epoch_ < 6
        assert np.allclose(found[False][i], alone.predict_conditional_clicks(test[i]), atol=2e-5)
        assert np.allclose(found[True][i], alone.predict_clicks(test[i]), atol=2e-5)
    assert not np.allclose(found[True], found[False], atol=1e-2)


def test_rows_of_a_counted_model(logs: list[Logs]) -> None:
    job = LogKey("text", "DBN", "LambdaMART", 3)
    rows = list(measure_counted_models(job, logs[0], SIZES, ["PBM"]))
    assert {(row["test"], row["temperature"]) for row in rows} == {(p, t) for p in POLICIES for t in TEMPERATURES}
    assert {(row["user"], row["seed"], row["model"]) for row in rows} == {("DBN", 3, "PBM")}
    log = logs[0].tests["Uniform", 0.1]
    predicted = fit_counted("PBM", logs[0]).predict_clicks(to_sessions(log))[:125]
    row = next(row for row in rows if (row["test"], row["temperature"]) == ("Uniform", 0.1))
    assert row["perplexity"] == pytest.approx(perplexity(predicted, log.chance[:125]).mean)
    # The truth does best in expectation, on every log.
    for row in rows:
        chance = logs[0].tests[row["test"], row["temperature"]].chance[:125]
        assert row["perplexity"] > perplexity(chance, chance).mean


def test_logs_of_other_jobs_are_other_logs(logs: list[Logs]) -> None:
    assert logs[0].train.rows.shape == (1500, 4)
    assert not np.array_equal(logs[0].train.rows, logs[1].train.rows)
    again = simulate(logs[0].world.documents, LogKey("text", "DBN", "LambdaMART", 3), SIZES)
    assert np.array_equal(again.train.click, logs[0].train.click)
    other = simulate(logs[0].world.documents, LogKey("text", "DBN", "NoisyOracle", 3), SIZES)
    assert not np.array_equal(other.validation.query, logs[0].validation.query)
