"""Which items are judged, and which are left out, each for one reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from judge_worlds import Row, write_fit

from elute.checking.check import check
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.judging.grades import Quantiles, Rule, Thresholds
from elute.judging.judgments import Judgments, judge
from elute.log import read_log
from elute.simulation import toy
from elute.verbs.fit import fit as fit_log

NAN = float("nan")


def judged(folder: Path, rows: list[Row], rule: Rule | None = None, precision: float | None = None) -> Judgments:
    fit = Fit.load(write_fit(folder / "fit", rows, propensities=[(1, 0, 1.0), (2, 0, 0.5), (3, 1, 1.0), (4, 1, 0.25)]))
    return judge(fit, "query_id", "doc_id", rule or Quantiles(2), precision)


def triples(made: Judgments) -> list[tuple[str, str, int]]:
    return list(zip(made.query, made.doc, made.grade.tolist(), strict=True))


def test_in_the_order_of_queries_and_documents_whatever_the_order_of_the_fit(tmp_path: Path) -> None:
    rows = [Row("b", "y", 0.1), Row("a", "z", 0.9), Row("b", "x", 0.7), Row("a", "y", 0.2)]
    expected = [("a", "y", 0), ("a", "z", 1), ("b", "x", 1), ("b", "y", 0)]
    assert triples(judged(tmp_path, rows)) == triples(judged(tmp_path, rows[::-1])) == expected


def test_numbers_are_sorted_as_numbers(tmp_path: Path) -> None:
    made = judged(tmp_path, [Row(q, d, d / 100) for q in (10, 9) for d in (20, 3)])
    assert triples(made) == [("9", "3", 0), ("9", "20", 1), ("10", "3", 0), ("10", "20", 1)]


def test_a_query_in_two_components_is_left_out_whole(tmp_path: Path) -> None:
    rows = [Row("a", "x", 0.1), Row("a", "y", 0.9, component=1), Row("a", "z", 0.5), Row("b", "x", 0.1, component=1)]
    made = judged(tmp_path, [*rows, Row("b", "y", 0.2, component=1)])
    assert triples(made) == [("b", "x", 0), ("b", "y", 1)]
    assert made.left_out == {"not_rankable": (1, 3)}


def test_an_item_that_is_not_judged_still_makes_its_query_unrankable(tmp_path: Path) -> None:
    rows = [Row("a", "x", 0.1), Row("a", "y", 0.5), Row("a", "z", NAN, component=1), Row("b", "x"), Row("b", "y", 0.6)]
    assert judged(tmp_path, rows).left_out == {"not_rankable": (1, 3)}


def test_thresholds_are_refused_where_there_are_two_scales(tmp_path: Path) -> None:
    rows = [Row("a", "x", 0.9), Row("b", "x", 0.9, component=1)]
    with pytest.raises(EluteError, match=r"2 components, each at its own scale.*`grades='quantiles'`"):
        judged(tmp_path, rows, Thresholds((0.3,)))
    assert triples(judged(tmp_path, rows[:1], Thresholds((0.3,)))) == [("a", "x", 1)]


def test_no_estimate_alone_and_alike(tmp_path: Path) -> None:
    rows = [Row("a", "x", NAN), Row("a", "y", 0.1), Row("b", "x", 0.2), Row("b", "y", 0.2), Row("c", "x", 0.2)]
    made = judged(tmp_path, [*rows, Row("c", "y", 0.3)])
    assert triples(made) == [("c", "x", 0), ("c", "y", 1)]
    assert made.left_out == {"no_estimate": (0, 1)}
    assert made.withheld == {"no_estimate": 1, "alone_in_query": 1, "place_not_known": 2}


def test_precision_is_one_over_the_standard_error_at_the_scale_of_relevance(tmp_path: Path) -> None:
    rows = [
        Row("a", "narrow", 0.5, log_se=0.19),  # 0.095
        Row("a", "wide", 0.5, log_se=0.21),  # 0.105
        Row("a", "rare but well known", 0.01, log_se=1.0),  # 0.01
        Row("a", "unknown error", 0.4, log_se=NAN),
        Row("a", "never clicked, seen often", 0.0, log_se=NAN, impressions=21),  # at most 1/(21 · 0.5)
        Row("a", "never clicked, seen less", 0.0, log_se=NAN, impressions=19),
        Row("b", "x", 0.0, 1, NAN, 41),  # in component 1 the least propensity is 0.25
        Row("b", "y", 0.0, 1, NAN, 39),
        Row("b", "z", 0.3, 1, 0.1),
    ]
    made = judged(tmp_path, rows, precision=10)
    kept = {"narrow", "rare but well known", "never clicked, seen often", "z"}
    assert set(made.doc) == kept
    assert made.withheld["place_not_known"] == 1  # x, of whom y, as rarely seen, says nothing
    assert made.left_out == {"imprecise": (0, 4)}


def test_without_error_bars_there_is_no_precision(tmp_path: Path) -> None:
    with pytest.raises(EluteError, match=r"model pbm\) has no error bars for `min_precision=`"):
        judged(tmp_path, [Row("a", "x", 0.5, log_se=NAN)], precision=1)


def test_nothing_left_says_why(tmp_path: Path) -> None:
    with pytest.raises(
        EluteError, match=r"all 2 items are withheld \(no estimate 1, alone in query 1\); `all_items=True`"
    ):
        judged(tmp_path, [Row("a", "x", NAN), Row("a", "y")])
    with pytest.raises(EluteError, match=r"all 1 items are withheld \(no estimate 1\)$"):
        judged(tmp_path, [Row("a", "x", NAN)])


def test_items_of_another_name_are_found_through_the_log(tmp_path: Path) -> None:
    """Items are documents, whatever the query; and the queries' text stands beside their ids."""
    rows = [Row("d1", "v1", 0.9), Row("d2", "v1", 0.1), Row("d2", "v2", 0.5), Row("d3", "v1", 0.3)]
    fit = Fit.load(write_fit(tmp_path / "fit", rows, item=("doc_id", "version")))
    log = pa.table(
        {
            "text": ["red shoe", "red shoe", "red shoe", "hat", "hat", "hat", "hat", None],
            "doc_id": ["d1", "d2", "d1", "d1", "d2", "d2", "d9", "d3"],
            "version": ["v1", "v1", "v1", "v1", "v1", "v2", "v1", "v1"],
        }
    )
    made = judge(fit, "text", "doc_id", Quantiles(2), log=log)
    # hat: d2 is two items, d9 is not in the fit, and d1 is then alone
    assert triples(made) == [("red shoe", "d1", 1), ("red shoe", "d2", 0)]
    assert made.left_out == {"not_in_fit": (0, 1), "several_items": (0, 2)}
    assert made.withheld == {"not_in_fit": 1, "several_items": 2, "alone_in_query": 1}
    by_relevance = judge(fit, "text", "doc_id", Thresholds((0.5,)), log=log)
    assert by_relevance.left_out == made.left_out
    assert by_relevance.withheld == {"not_in_fit": 1, "several_items": 2}


def test_items_of_another_name_without_a_log(tmp_path: Path) -> None:
    fit = Fit.load(write_fit(tmp_path / "fit", [Row("a", "x", 0.9)], item=("q", "d")))
    with pytest.raises(
        EluteError, match=r"named by q, d, not by query_id and doc_id.*`query='q'` and `doc='d'`.*`log=`"
    ):
        judge(fit, "query_id", "doc_id", Quantiles())
    assert judge(fit, "q", "d", Thresholds((0.1,))).doc == ["x"]
    with pytest.raises(EluteError, match="both 'q'"):
        judge(fit, "q", "q", Quantiles())
    with pytest.raises(EluteError, match="the table has no column 'query_id'"):
        judge(fit, "query_id", "doc_id", Quantiles(), log=pa.table({"q": ["a"]}))


def test_what_was_shown_a_few_times_is_withheld_and_exported_only_with_a_mark(tmp_path: Path) -> None:
    """An item that nobody clicked gains from few impressions; that must not make its grade."""
    rows = [Row("a", f"seen often {at}", at / 10) for at in range(1, 9)]
    rows += [Row("a", f"seen once {at}", 0.0, exposure=1.0 / at) for at in (1, 2, 3)]
    rows += [Row("b", "on its own"), Row("c", "x"), Row("c", "y", component=1)]
    made = judged(tmp_path, rows)
    assert made.doc == [f"seen often {at}" for at in range(1, 9)]
    assert made.withheld == {"not_rankable": 2, "alone_in_query": 1, "place_not_known": 3}
    fit = Fit.load(tmp_path / "fit")
    whole = judge(fit, "query_id", "doc_id", Quantiles(2), all_items=True)
    assert (len(whole.doc), whole.withheld, whole.left_out) == (14, {}, {})
    assert {doc for doc, known in zip(whole.doc, whole.support.known, strict=True) if known} == set(made.doc)
    at = [whole.doc.index(doc) for doc in made.doc]
    assert whole.grade[at].tolist() == made.grade.tolist()
    assert whole.support.confidence[at].tolist() == made.support.confidence.tolist()


def test_what_judgments_rest_on(tmp_path: Path) -> None:
    rows = [Row("a", "y", 0.2, impressions=70, exposure=1000), Row("a", "x", 0.4, impressions=50, exposure=2000)]
    support = judged(tmp_path, rows).support
    assert support.impressions.tolist() == [50, 70] and support.clicks.tolist() == [20, 14]
    assert (support.confidence > 0.999).all() and support.known.all()


def test_items_that_are_not_judged_are_still_compared_with(tmp_path: Path) -> None:
    """Imprecise ones, here: the middle of three is no better for the others' absence."""
    rows = [Row("a", "low", 0.1), Row("a", "high", 0.9, log_se=9.0), Row("a", "middle", 0.5)]
    made = judged(tmp_path, rows, Quantiles(3), precision=10)
    assert triples(made) == [("a", "low", 0), ("a", "middle", 1)]


def test_a_fit_without_posteriors_has_them_from_its_clicks(tmp_path: Path) -> None:
    rows = [Row("a", f"d{at}", at / 10, impressions=10_000, exposure=1000) for at in (1, 2, 7, 8)]
    rows += [Row("a", f"once {at}", 0.0, impressions=1, exposure=1) for at in range(2)]
    with_posteriors = judged(tmp_path, rows)
    fit = Fit.load(write_fit(tmp_path / "older", rows, posteriors=False))
    made = judge(fit, "query_id", "doc_id", Quantiles(2))
    assert made.clicks_alone and not with_posteriors.clicks_alone
    assert triples(made) == triples(with_posteriors)
    assert made.withheld == with_posteriors.withheld == {"place_not_known": 2}


@pytest.mark.parametrize("broken", ["fit.json", "relevance.parquet"])
def test_a_folder_that_is_no_fit(tmp_path: Path, broken: str) -> None:
    folder = write_fit(tmp_path / "fit", [Row("a", "x")])
    (folder / broken).write_text("{}")
    with pytest.raises(EluteError, match="fit again"):
        judge(Fit.load(folder), "query_id", "doc_id", Quantiles())
    (folder / broken).unlink()
    with pytest.raises(EluteError, match=r"is an unfinished fit: it has no fit.json|is missing; fit again"):
        judge(Fit.load(folder), "query_id", "doc_id", Quantiles())


def test_dictionaries_of_ids(tmp_path: Path) -> None:
    folder = write_fit(tmp_path / "fit", [Row("b", "x", 0.1), Row("b", "w", 0.2)])
    table = pq.read_table(folder / "relevance.parquet")
    coded = table.set_column(1, "doc_id", table["doc_id"].dictionary_encode())
    pq.write_table(coded, folder / "relevance.parquet")
    assert judge(Fit.load(folder), "query_id", "doc_id", Quantiles(2)).doc == ["w", "x"]
    assert np.array_equal(judge(Fit.load(folder), "query_id", "doc_id", Quantiles(2)).grade, [1, 0])


def test_the_queries_left_out_are_those_that_the_check_cannot_rank(tmp_path: Path) -> None:
    with read_log(toy.simulate(3000, 60, broken=True, seed=3)) as log:
        verdict = check(log).to_dict()
        fit_log(log, relevance_prior="none", allow_unidentified=True).save(tmp_path / "fit")
    made = judge(Fit.load(tmp_path / "fit"), "query_id", "doc_id", Quantiles())
    assert 0 < verdict["rankable_queries"] < verdict["queries"]
    assert made.left_out["not_rankable"].queries == verdict["queries"] - verdict["rankable_queries"]
    table = Fit.load(tmp_path / "fit").relevance.to_pandas()
    components = table.groupby("query_id")["component"].nunique()
    assert (components == 1).sum() == verdict["rankable_queries"]
    assert {str(query) for query in components[components == 1].index} >= set(made.query) > set()
