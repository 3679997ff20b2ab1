"""Results show themselves: in a sentence, in a notebook, in a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import elute
from elute.results.base import Result
from elute.results.card import Bars, Card, draw_bars

LETOR = Path(__file__).parents[2] / "docs" / "data" / "letor.txt"
EVIL = "<script>alert('x')</script>&\"."


@pytest.fixture(scope="module")
def results(demo_logs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder, broken = tmp_path_factory.mktemp("results"), demo_logs / "broken.parquet"
    check = elute.check(broken)
    plan = elute.merge(check)
    fit = elute.fit(broken, plan=plan)
    log = folder / "log.parquet"
    simulated = elute.simulate(LETOR, log, sessions=300)
    ranker = elute.train(
        log, LETOR, folder / "ranker", learner="naive", model="lightgbm", steps=3, session="session_id"
    )
    ubi = [LETOR.with_name(f"ubi_{kind}.ndjson") for kind in ("queries", "events")]
    return {
        "check": check,
        "merge": plan,
        "swap": elute.swap(check),
        "follow": elute.follow(elute.swap(check), pq.read_table(broken).slice(0, 500), broken),
        "fit": fit,
        "audit": elute.audit(fit, broken, assumptions=True),
        "judge": elute.judge(fit),
        "report": elute.report(broken, plan=plan, fits=fit),
        "simulate": simulated,
        "train": ranker,
        "rank": elute.rank(ranker, LETOR),
        "export": elute.export(ranker, folder / "ranker.onnx"),
        "convert": elute.convert(ubi, "ubi", folder / "ubi.parquet"),
        "count": elute.count(broken, folder / "counts"),
    }


VERBS = (
    "check",
    "merge",
    "swap",
    "follow",
    "fit",
    "audit",
    "judge",
    "report",
    "simulate",
    "train",
    "rank",
    "export",
    "convert",
    "count",
)


@pytest.mark.parametrize("verb", VERBS)
def test_a_result_says_what_it_is(results: dict[str, Result], verb: str) -> None:
    result = results[verb]
    assert result.sentence in repr(result)
    assert re.fullmatch(r"<\w+: .{10,}>", repr(result), re.DOTALL)
    page = result._repr_html_()
    ElementTree.fromstring(page)  # noqa: S314 (ours); well formed: every element is closed
    assert "script" not in page
    assert result.to_dict() == result.to_dict()


@pytest.mark.parametrize("verb", VERBS)
def test_what_was_saved_shows_the_same(results: dict[str, Result], verb: str, tmp_path: Path) -> None:
    result, path = results[verb], tmp_path / "saved"
    result.save(path)
    if verb == "report":
        assert "<!doctype html>" in path.read_text()[:40].lower()
        return
    again = type(result).load(path)
    assert again.sentence == result.sentence
    assert again.to_json() == result.to_json()
    assert again._repr_html_() == result._repr_html_()


def test_a_saved_check_has_its_fields_and_says_what_it_lacks(results: dict[str, Result], tmp_path: Path) -> None:
    results["check"].save(tmp_path / "check.json")
    saved: Any = elute.Check.load(tmp_path / "check.json")
    assert (saved.recoverable, saved.components) == (False, 2)
    with pytest.raises(AttributeError, match="has no 'counts'"):
        _ = saved.counts
    (tmp_path / "check.json").write_text('{"recoverable": true}')
    with pytest.raises(elute.EluteError, match="is not a saved Check"):
        elute.Check.load(tmp_path / "check.json")


def test_a_fit_that_was_loaded_is_a_fit(results: dict[str, Result], demo_logs: Path, tmp_path: Path) -> None:
    fit = results["fit"]
    assert isinstance(fit, elute.Fit)
    fit.save(tmp_path / "fit")
    again = elute.Fit.load(tmp_path / "fit")
    pd.testing.assert_frame_equal(again.relevance.to_pandas(), fit.relevance.to_pandas())
    assert again.propensities is not None and fit.propensities is not None
    pd.testing.assert_frame_equal(again.propensities.to_pandas(), fit.propensities.to_pandas())
    log = demo_logs / "broken.parquet"
    one, other = (elute.audit(one, log).to_dict() for one in (fit, again))
    one["models"][0].pop("name"), other["models"][0].pop("name")
    assert one["models"] == other["models"]
    with pytest.raises(elute.EluteError, match="already saved"):
        again.save(tmp_path / "copy")


def test_judgments_in_memory_are_those_of_the_file(results: dict[str, Result], tmp_path: Path) -> None:
    judged = results["judge"]
    assert isinstance(judged, elute.Judged)
    assert judged.table.column_names == ["query_id", "doc_id", "grade", "confidence", "impressions", "clicks"]
    assert judged.table.num_rows == judged.judgments
    judged.export(tmp_path / "qrels.txt", "trec")
    rows = [line.split() for line in (tmp_path / "qrels.txt").read_text().splitlines()]
    graded = judged.table.select(["query_id", "doc_id", "grade"]).to_pylist()
    assert [(row[0], row[2], int(row[3])) for row in rows] == [tuple(row.values()) for row in graded]
    assert pq.read_table(tmp_path / "qrels.txt.evidence.parquet").equals(judged.table)


def test_names_from_a_log_cannot_break_a_card() -> None:
    table = pa.table(
        {"query_id": [EVIL] * 4, "doc_id": ["a", "a", "b", "b"], EVIL: ["1", "2", "3", EVIL], "click": [1, 0, 1, 0]}
    )
    page = elute.check(table, bias=[EVIL])._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    ElementTree.fromstring(page)  # noqa: S314 (ours)


def test_bars_leave_out_what_is_not_a_number() -> None:
    svg = draw_bars(
        Bars("b", ["x", "y", "z"], [2.0, float("nan"), 1.0], [1.0, float("nan"), 0.5], [9.0, float("nan"), 1.5])
    )
    assert svg.count("<rect") == 2
    assert svg.count("<path") == 2
    assert "nan" not in svg
    assert "–" in svg
    assert "<svg" not in Card("calm", "w", "s", chart=Bars("none", [], [])).html()


def test_a_model_says_that_it_is_not_fitted() -> None:
    assert repr(elute.PBM(seed=3)) == (
        "PBM(seed=3, tolerance=0.0001, max_iter=200, start=None, prior=None, relevance_prior='auto')"
    )
    assert not hasattr(elute.DLA(), "propensity_")
    with pytest.raises(elute.EluteError, match="PBM has no 'propensities_' before it is fitted"):
        _ = elute.PBM().propensities_
