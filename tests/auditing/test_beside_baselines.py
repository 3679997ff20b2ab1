"""What a fit's nDCG is compared with: the logging policy and click rates, query by query, with intervals."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rich.console import Console
from scipy import stats

import elute
from elute.auditing.ranking_metrics import ndcg
from elute.cli.pages.audit import show
from elute.simulation import toy

KEY = ["query_id", "doc_id"]


@pytest.fixture(scope="module")
def log() -> pd.DataFrame:
    frame = toy.simulate(3_000, 40, broken=False, seed=7).to_pandas()
    return frame[frame["query_id"] != frame["query_id"].iloc[0]]


@pytest.fixture(scope="module")
def labels(log: pd.DataFrame) -> pd.DataFrame:
    """Of all items, one query of which was never shown."""
    truth = toy.draw_truth(40, 7).to_pandas()
    return truth[KEY].assign(grade=np.digitize(truth["relevance"], [0.2, 0.4, 0.6]))


@pytest.fixture(scope="module")
def audited(log: pd.DataFrame, labels: pd.DataFrame) -> Any:
    fits = [elute.fit(pa.Table.from_pandas(log, preserve_index=False), model) for model in ("pbm", "ctr")]
    return elute.audit(fits, pa.Table.from_pandas(log, preserve_index=False), labels=labels)


def measure(frame: pd.DataFrame, column: str) -> pd.Series[float]:
    """By query, of those with a relevant item."""
    values = {
        query: ndcg(part["grade"].to_numpy(), part[column].to_numpy(), np.array([0, len(part)]), without="skip").mean
        for query, part in frame.groupby("query_id")
    }
    return pd.Series(values).dropna()


def find_interval(values: pd.Series[float]) -> tuple[float, float, float]:
    reach = stats.t.ppf(0.975, len(values) - 1) * values.std() / np.sqrt(len(values))
    return values.mean(), values.mean() - reach, values.mean() + reach


def test_click_rates_and_the_policy_beside_each_fit(log: pd.DataFrame, labels: pd.DataFrame, audited: Any) -> None:
    shown = log.groupby(KEY).agg(rate=("click", "mean"), position=("position", "mean")).reset_index()
    shown["policy"] = -shown["position"]
    fields = audited.to_dict()
    fit = elute.fit(pa.Table.from_pandas(log, preserve_index=False)).relevance.to_pandas()
    frame = labels.merge(shown, on=KEY).merge(fit[[*KEY, "relevance"]], on=KEY)
    by_clicks = measure(frame, "rate")
    reference = fields["reference"]
    found = [reference[f"click_rate_ndcg{end}"] for end in ("", "_low", "_high")]
    assert found == pytest.approx(find_interval(by_clicks), abs=1e-6)
    for column, name in (("rate", "ndcg_less_click_rate"), ("policy", "ndcg_less_policy")):
        less = fields["models"][0][name]
        expected = find_interval(measure(frame, "relevance") - measure(frame, column))
        assert [less[end] for end in ("mean", "low", "high")] == pytest.approx(expected, abs=1e-6)


def test_click_rates_are_no_better_than_themselves(audited: Any) -> None:
    """The model `ctr` is the click rates."""
    fields = audited.to_dict()
    assert fields["models"][1]["ndcg_less_click_rate"] == {"mean": 0.0, "low": 0.0, "high": 0.0}
    assert fields["models"][1]["ndcg"] == pytest.approx(fields["reference"]["click_rate_ndcg"])


def test_the_page_has_them(audited: Any) -> None:
    out = io.StringIO()
    show(Console(file=out, width=100), audited.fits, None)
    page = " ".join(out.getvalue().split())
    assert "click rates" in page and "logging policy" in page
    assert "nDCG less the policy's [95%]" in page
    assert "+0.000 [+0.000, +0.000]" in page


def test_labels_of_items_that_the_log_does_not_show(log: pd.DataFrame, labels: pd.DataFrame) -> None:
    """The fit knows them from another log: they rank by relevance, and there is no click rate to compare with."""
    queries = sorted(log["query_id"].unique())
    half = set(queries[::2])
    other = pa.Table.from_pandas(log[log["query_id"].isin(half)], preserve_index=False)
    fit = elute.fit(pa.Table.from_pandas(log, preserve_index=False))
    judged = labels[~labels["query_id"].isin(half)]
    scores = judged[KEY].assign(score=np.arange(len(judged)))
    fields = elute.audit(fit, other, labels=judged, policy_scores=scores).to_dict()
    assert fields["models"][0]["ndcg"] is not None
    assert fields["models"][0]["ndcg_less_click_rate"] is None
    assert fields["reference"]["click_rate_ndcg"] is None


def test_without_labels_there_is_nothing_to_compare(log: pd.DataFrame) -> None:
    table = pa.Table.from_pandas(log, preserve_index=False)
    fields = elute.audit(elute.fit(table), table).to_dict()
    assert fields["models"][0]["ndcg_less_policy"] is None
    assert fields["reference"]["click_rate_ndcg"] is None
