"""ULTRA's ranking lists."""

from __future__ import annotations

from pathlib import Path

import pytest

import elute
from elute.io import ultra


def write(folder: Path, text: str) -> Path:
    (folder / "train.init_list").write_text(text)
    return folder


def test_rows_in_shown_order_without_padding(tmp_path: Path) -> None:
    table = ultra.read(write(tmp_path, "q1 5 7 -1\nq2 7 -1 5\n"))
    assert table.to_pylist() == [
        {"query_id": "q1", "doc_id": "5", "position": 0},
        {"query_id": "q1", "doc_id": "7", "position": 1},
        {"query_id": "q2", "doc_id": "7", "position": 0},
        {"query_id": "q2", "doc_id": "5", "position": 2},
    ]


def test_a_check_needs_no_clicks(tmp_path: Path) -> None:
    fields = elute.check(elute.read_log(write(tmp_path, "q1 5 7\nq2 7 8\n"), item="doc_id")).to_dict()
    assert (fields["components"], fields["clicks"], fields["factors"]) == (1, None, 2)
    assert "factors_without_clicks" not in {w["code"] for w in fields["warnings"]}


def test_a_line_without_documents_is_named(tmp_path: Path) -> None:
    with pytest.raises(elute.EluteError, match=r"train\.init_list, line 2"):
        elute.read_log(write(tmp_path, "q1 5 7\nq2\n"))


def test_two_lists_in_one_folder(tmp_path: Path) -> None:
    (tmp_path / "valid.init_list").write_text("q1 1 2\n")
    with pytest.raises(elute.EluteError, match=r"2 \.init_list files"):
        elute.read_log(write(tmp_path, "q1 5 7\n"))


def write_set(folder: Path, lists: str, labels: str, features: str = "", settings: str = "") -> Path:
    for suffix, text in {".init_list": lists, ".labels": labels, ".feature": features}.items():
        if text:
            (folder / f"train{suffix}").write_text(text)
    if settings:
        (folder / "settings.json").write_text(settings)
    return folder


def test_rankings_with_grades_and_features(tmp_path: Path) -> None:
    """Padding, a query with two lists, a document twice in a list, one shared by two queries, one never shown."""
    features = "d0 1:0.5 3:1\nd1 2:2\nd2\nd3 1:-1 # note\n"
    folder = write_set(tmp_path, "q1 3 1 -1\nq2 1 1 0\nq1 1 -1 3 0\n", "q1 2 0 0\nq2 1 1 4\nq1 0 9 2 1\n", features)
    data, query, rows = ultra.read_ranking(folder)
    assert data.queries.tolist() == ["q1", "q2"]
    assert data.documents.tolist() == ["3", "1", "0", "1", "0"]
    assert data.grades.tolist() == [2, 0, 1, 1, 4]
    assert data.offsets.tolist() == [0, 3, 5]
    assert data.features.tolist() == [[-1, 0, 0], [0, 2, 0], [0.5, 0, 1], [0, 2, 0], [0.5, 0, 1]]
    assert query.tolist() == [0, 1, 0]
    assert rows.tolist() == [[0, 1, -1, -1], [3, 3, 4, -1], [1, -1, 0, 2]]


def test_rankings_without_features_need_no_feature_file(tmp_path: Path) -> None:
    folder = write_set(tmp_path, "q 5 7\n", "q 1 0\n")
    assert ultra.read_ranking(folder, features=False).data.features.shape == (2, 0)
    with pytest.raises(elute.EluteError, match="with the documents' features; add it beside the rankings"):
        ultra.read_ranking(folder)


def test_the_number_of_features_comes_from_the_settings(tmp_path: Path) -> None:
    folder = write_set(tmp_path, "q 0\n", "q 1\n", "a 0:1 1:2\n", '{"feature_size": 4}')
    assert ultra.read_ranking(folder).data.features.tolist() == [[1, 2, 0, 0]]
    write_set(tmp_path, "q 0\n", "q 1\n", "a 0:1 4:2\n")
    with pytest.raises(elute.EluteError, match="index 4 is beyond the 4 features"):
        ultra.read_ranking(folder)
    write_set(tmp_path, "q 0\n", "q 1\n", "a 0:1 4:2\n", "{}")
    with pytest.raises(elute.EluteError, match="has no 'feature_size'"):
        ultra.read_ranking(folder)


@pytest.mark.parametrize(
    ("lists", "labels", "words"),
    [
        ("q 0 x\n", "q 1 1\n", r"init_list, line 1: 'x' is not a document's number"),
        ("q 0 1\n", "q 1 -2\n", r"labels, line 1: '-2' is not a grade"),
        ("q 0 1\n", "q 1 .5\n", r"labels, line 1: '\.5' is not a grade"),
        ("q 0 1\n", "q 1 nan\n", r"labels, line 1: 'nan' is not a grade"),
        ("q 0 1\n", "q 1\n", r"no matching line \(same query 'q', as many fields\)"),
        ("q 0 1\n", "p 1 1\n", r"no matching line \(same query 'q', as many fields\)"),
        ("q 0 1\nr 0 1\n", "q 1 1\n", r"init_list, line 2: .*same query 'r'"),
        ("q 0 1\n", "q 1 1\nr 1 1\n", r"labels has 2 lines, train\.init_list 1"),
        ("q 0 1\nq 1 0\n", "q 1 1\nq 2 1\n", r"document 1 has two grades for query 'q'"),
        ("q 0 9\n", "q 1 1\n", r"has 2 documents; the lists show number 9"),
    ],
)
def test_what_is_wrong_with_a_set_is_named(tmp_path: Path, lists: str, labels: str, words: str) -> None:
    with pytest.raises(elute.EluteError, match=words):
        ultra.read_ranking(write_set(tmp_path, lists, labels, "a 1:1\nb 1:1\n"))


def test_an_empty_list_file(tmp_path: Path) -> None:
    (tmp_path / "train.labels").write_text("")
    with pytest.raises(elute.EluteError, match=r"train\.init_list is empty"):
        ultra.read_ranking(write(tmp_path, ""))


@pytest.mark.parametrize(("name", "lists"), [("K=1", 1150), ("K=2", 1150), ("K=2_node_intervention", 1151)])
def test_the_papers_sets(data: Path, name: str, lists: int) -> None:
    """The same impressions as `read` gives, and one grade for each document (Appendix C.1)."""
    folder = data / "identifiability" / "dataset_fully_simulation" / name / "train"
    ranking, query, rows = ultra.read_ranking(folder, features=False)
    assert rows.shape == (lists, 10)
    table = ultra.read(folder)
    assert ranking.documents[rows].ravel().tolist() == table["doc_id"].to_pylist()
    assert ranking.queries[query].repeat(10).tolist() == table["query_id"].to_pylist()
    grades = dict(zip(ranking.documents.tolist(), ranking.grades.tolist(), strict=True))
    assert len(grades) == 10_000
    assert [grades[document] for document in ranking.documents.tolist()] == ranking.grades.tolist()
    assert set(grades.values()) == {0, 1, 2, 3, 4}
