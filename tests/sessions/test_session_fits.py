"""Session models fitted to a log: in parts as at once, and read again from the folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elute.auditing.predictions import Queries
from elute.auditing.session_predictions import predict_sessions
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.io.sessions import ROWS, SessionParts
from elute.log import read_log
from elute.sessions.fit import SessionFit, fit_log
from elute.sessions.folder import split_items
from elute.sessions.log import read_pages
from elute.simulation.shown import ShownPages
from elute.simulation.users import build_user

pytestmark = pytest.mark.usefixtures("quick_compiling")
DOCUMENTS, RANKS, SESSIONS = 12, 4, 900


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of one to four of a query's six documents, clicked by a DBN user."""
    rng = np.random.default_rng(0)
    relevance = rng.uniform(0.1, 0.8, DOCUMENTS)
    query = rng.integers(0, 2, SESSIONS)
    doc = query[:, None] * 6 + rng.random((SESSIONS, 6)).argsort(axis=1)[:, :RANKS]
    length = rng.integers(1, RANKS + 1, SESSIONS)
    clicks = build_user("dbn").draw_clicks(ShownPages(relevance[doc], length), rng)
    page, rank = np.nonzero(np.arange(RANKS) < length[:, None])
    rows = {
        "session_id": page,
        "query_id": [f"q{q}" for q in query[page]],
        "doc_id": [f"d{d}" for d in doc[page, rank]],
        "position": rank + 1,
        "click": clicks[page, rank].astype(np.int64),
    }
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pd.DataFrame(rows).to_parquet(path, index=False)
    return path


def fitted(path: Path, name: str, **settings) -> SessionFit:
    with read_log(str(path), session="session_id") as log:
        return fit_log(log, name, **settings)


def in_parts(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """As with a log that does not fit in memory."""
    monkeypatch.setattr("elute.sessions.log._AT_ONCE", 10)
    monkeypatch.setattr("elute.io.sessions._ROWS", rows)


def by_item(fit: SessionFit) -> pd.DataFrame:
    n = len(fit.vocabulary.documents)
    columns = {"relevance": fit.model.relevance_values_[:n], "shown": fit.shown[:n], "clicks": fit.clicks[:n]}
    return pd.DataFrame(columns, index=fit.vocabulary.documents.to_pylist()).sort_index()


@pytest.mark.parametrize("name", ["rdctr", "ubm", "dbn"])
def test_a_log_read_in_parts_gives_the_same_fit(log_file: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """By counts and by EM: within EM's tolerance and single precision."""
    whole = fitted(log_file, name)
    in_parts(monkeypatch, 500)
    parts = fitted(log_file, name)
    one, other = by_item(whole), by_item(parts)
    pd.testing.assert_frame_equal(one, other, rtol=2e-3)
    assert parts.summary["log_likelihood"] == pytest.approx(whole.summary["log_likelihood"], rel=1e-5)
    for key in ("model", "sessions", "ranks", "converged"):
        assert parts.summary[key] == whole.summary[key]


def test_predictions_of_parts_add_up_to_those_of_the_whole(
    log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with read_log(str(log_file), session="session_id") as log:
        Fit.from_sessions(fitted(log_file, "ubm"), log).save(tmp_path)
        fit = Fit.load(tmp_path)
        queries = Queries.of(log.counts(), "query_id")
        whole = predict_sessions(fit, log, queries)
        in_parts(monkeypatch, 300)
        parts = predict_sessions(fit, log, queries)
    np.testing.assert_allclose(parts.by_query, whole.by_query, rtol=1e-6)
    assert -whole.by_query.sum() / np.log(2) == pytest.approx(whole.conditional.bits.sum())
    np.testing.assert_allclose(parts.losses.bits, whole.losses.bits, rtol=1e-6)
    np.testing.assert_array_equal(parts.losses.impressions, whole.losses.impressions)
    assert whole.losses.impressions.sum() == pq.read_metadata(log_file).num_rows
    assert parts.unseen_items == whole.unseen_items == 0


def test_training_in_parts_is_stopped_by_the_first(log_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts(monkeypatch, 800)
    source, _ = read_pages(log_file, ROWS)
    assert isinstance(source, SessionParts)
    first = next(iter(source))
    fit = fitted(log_file, "cacm", max_iter=2, seed=3)
    assert 0 < len(first) < SESSIONS
    held_out = fit.model.history_[fit.model.best_epoch_ - 1].validation
    assert fit.model.log_likelihood(first).mean() == pytest.approx(held_out, abs=1e-5)
    assert fit.summary["sessions"] == SESSIONS


def test_a_limit_of_iterations_is_refused_where_there_is_none(log_file: Path) -> None:
    with pytest.raises(EluteError, match="no `max_iter=`"):
        fitted(log_file, "ubm", max_iter=3)


def test_an_id_with_a_tab_is_refused() -> None:
    assert [part.to_pylist() for part in split_items(pa.array(["q\td"]))] == [["q"], ["d"]]
    with pytest.raises(EluteError, match="tab"):
        split_items(pa.array(["q\td", "q\td\te"]))
