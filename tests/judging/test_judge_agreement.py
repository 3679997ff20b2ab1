"""Agreement with labels: kappa against scikit-learn, pairs against their definition, the interval against coverage."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_worlds import Row, write_fit
from sklearn.metrics import cohen_kappa_score

import elute
from conftest import call_elute
from elute.errors import EluteError
from elute.judging.agreement import compute_weighted_kappa, count_pairs, match_scales

both = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=40)


@given(both)
def test_kappa_is_that_of_sklearn(drawn: list[tuple[int, int, int]]) -> None:
    grade, label = (np.array([row[at] for row in drawn]) for at in (0, 1))
    found = compute_weighted_kappa(grade.astype(float), label.astype(float))
    if len({*grade.tolist(), *label.tolist()}) == 1:
        assert found is None
    else:
        assert found == pytest.approx(cohen_kappa_score(grade, label, labels=range(4), weights="quadratic"))


@given(both)
def test_pairs_are_what_they_say(drawn: list[tuple[int, int, int]]) -> None:
    grade, label, query = (np.array(column) for column in zip(*drawn, strict=True))
    pairs, alike = count_pairs(grade, label.astype(float), query)
    ordered = [(one, other) for one, other in permutations(drawn, 2) if one[2] == other[2] and one[1] > other[1]]
    assert pairs.sum() == len(ordered)
    assert alike.sum() == sum(1.0 if g > h else 0.5 if g == h else 0.0 for (g, *_), (h, *_) in ordered)
    assert len(pairs) == len({one[2] for one, _ in ordered})


def test_scales() -> None:
    labels, how = match_scales(np.array([1.0, 3.0, 2.0]), 4)
    assert labels.tolist() == [1, 3, 2] and how == "labels as they are"
    labels, how = match_scales(np.array([0.0, 1.0, 1.0]), 4)
    assert labels.tolist() == [0, 3, 3] and how == "labels 0 to 1 stretched to grades 0 to 3"
    labels, how = match_scales(np.array([1.0, 5.0, 3.0]), 3)
    assert labels.tolist() == [0, 2, 1] and how == "labels 1 to 5 stretched to grades 0 to 2"
    assert match_scales(np.array([2.0, 2.0]), 4)[0].tolist() == [2, 2]


def make_fit(folder: Path, queries: int = 30) -> Path:
    return write_fit(folder / "fit", [Row(f"q{q}", f"d{d}", (d + 1) / 10) for q in range(queries) for d in range(8)])


def make_labels(queries: int = 30, noise: float = 0.0) -> pa.Table:
    """In the order of relevance but for noise; documents that are not judged, too."""
    rng = np.random.default_rng(0)
    rows = [
        (f"q{q}", f"d{d}", np.clip(d // 2 + round(rng.normal(0, noise)), 0, 3))
        for q in range(queries)
        for d in range(9)
    ]
    query, doc, grade = zip(*rows, strict=True)
    return pa.table({"query_id": query, "doc_id": doc, "grade": np.array(grade, float)})


def test_judgments_against_labels(tmp_path: Path) -> None:
    fit = make_fit(tmp_path)
    found = elute.judge(fit, labels=make_labels(noise=0.7))
    table = found.table.to_pandas().merge(make_labels(noise=0.7).to_pandas(), on=["query_id", "doc_id"])
    assert found.agreement["judged"] == len(table) == 240
    kappa = cohen_kappa_score(table["grade_x"], table["grade_y"].astype(int), labels=range(4), weights="quadratic")
    assert found.agreement["weighted_kappa"] == pytest.approx(kappa)
    low, share, high = (found.agreement[name] for name in ("pairwise_low", "pairwise", "pairwise_high"))
    assert 0.5 < low < share < high < 1 and high - low < 0.1
    assert found.agreement["queries"] == 30
    assert elute.judge(fit, labels=make_labels(noise=0.7)).to_json() == found.to_json()


def test_the_interval_covers_the_share_in_the_population(tmp_path: Path) -> None:
    """Of logs of 20 queries each, drawn from one world: 95% in the long run."""
    from elute.judging.agreement import _compare_pairs

    rng = np.random.default_rng(3)

    def draw(queries: int) -> tuple[np.ndarray, np.ndarray]:
        size = rng.integers(1, 20, queries).astype(float)
        return size, rng.binomial(size.astype(int), rng.beta(6, 2, queries)).astype(float)

    covered = []
    for _ in range(100):
        _, low, high, _, _ = _compare_pairs(*draw(40))
        assert low is not None and high is not None
        covered.append(low <= 0.75 <= high)
    assert 86 <= sum(covered) <= 99


def test_labels_of_other_documents_are_refused(tmp_path: Path) -> None:
    fit = make_fit(tmp_path, 2)
    labels = make_labels(2)
    others = labels.set_column(0, "query_id", pa.array(["elsewhere"] * labels.num_rows))
    apart = others.set_column(others.column_names.index("grade"), "grade", pa.array(range(others.num_rows)))
    with pytest.raises(EluteError, match=r"items have more than one grade, for instance elsewhere·d0"):
        elute.judge(fit, labels=apart)
    with pytest.raises(
        EluteError, match=r"no judgment has a label in the labels: judgments name q0·d0, labels elsewhere·d0"
    ):
        elute.judge(fit, labels=others.slice(0, 9))
    with pytest.raises(EluteError, match=r"has no column 'grade'"):
        elute.judge(fit, labels=labels.drop_columns(["grade"]))


def test_labels_that_say_nothing(tmp_path: Path) -> None:
    """One label a query: there is no pair; one grade only: kappa is still defined, as grades differ."""
    labels = make_labels(2).filter(pa.array([at % 9 == 3 for at in range(18)]))
    found = elute.judge(make_fit(tmp_path, 2), labels=labels).agreement
    assert (found["judged"], found["pairs"], found["queries"], found["pairwise"]) == (2, 0, 0, None)
    assert found["weighted_kappa"] is None


def test_the_page_and_the_card(tmp_path: Path) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(make_labels(), tmp_path / "labels.csv")
    fit, out = make_fit(tmp_path), tmp_path / "r.csv"
    page = call_elute("judge", fit, "--format", "quepid", "--labels", tmp_path / "labels.csv", "--out", out).out
    words = "Agreement with 240 labels: weighted kappa 1.00, 100.0% of 720 pairs in 30 queries in the same order"
    assert words in page
    assert words in elute.judge(fit, labels=make_labels())._repr_html_()


@pytest.mark.parametrize("form", ["lightgbm", "xgboost"])
def test_bundles_have_no_labels_and_no_places(tmp_path: Path, form: str) -> None:
    for option in ({"labels": make_labels()}, {"all_items": True}):
        with pytest.raises(EluteError, match=rf"has no `{next(iter(option))}=`"):
            elute.judge(make_fit(tmp_path), form, tmp_path / "out", **option)
