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
