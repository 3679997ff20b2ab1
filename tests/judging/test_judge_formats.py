"""Judgments in each format, read back by those who consume it; ids of every kind."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judge_worlds import Row, write_fit
from sklearn.datasets import load_svmlight_file

from conftest import run_elute
from elute.cli import main
from elute.cli.verbs.judge import FORMATS
from elute.cli.verbs.judge import judge as command
from elute.errors import EluteError
from elute.io import letor
from elute.io.features import read_features
from elute.judging import export, opensearch, quepid, ranklib, trec
from elute.judging.export import Wanted
from elute.judging.judgments import Judgments, Support

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
judgments = st.dictionaries(st.tuples(names, names), st.integers(0, 4), min_size=1, max_size=12)

AWKWARD = {
    ("=1+1", 'say "hi", twice'): 2,
    ("two\nlines", "tab\there"): 0,
    ("# not a comment", "d#1"): 1,
    ("<script>", "\u2028\u00a0%20"): 3,
    ("дом", "-5"): 4,
}


def made(pairs: dict[tuple[str, str], int]) -> Judgments:
    ordered = sorted(pairs)
    grade = np.array([pairs[pair] for pair in ordered])
    n = len(ordered)
    support = Support(np.full(n, 0.9), np.full(n, 10), np.full(n, 2), np.ones(n, np.bool_))
    return Judgments([q for q, _ in ordered], [d for _, d in ordered], grade, support, 5, {}, {}, False)


@same_folder
@given(judgments)
def test_quepid(tmp_path: Path, pairs: dict[tuple[str, str], int]) -> None:
    quepid.write(tmp_path / "r.csv", made(pairs))
    text = (tmp_path / "r.csv").read_bytes().decode()
    assert text.split("\n")[0] == "query,docid,rating"  # Quepid splits and compares so
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert {(query, doc): int(rating) for query, doc, rating in rows[1:]} == pairs


def test_quepid_says_what_a_spreadsheet_would_do(tmp_path: Path) -> None:
    formulas, commas = quepid.write(tmp_path / "r.csv", made(AWKWARD))
    assert formulas.startswith("1 queries or documents begin with = + - or @")
    assert commas.startswith("2 queries or documents contain commas or line breaks")
    assert quepid.write(tmp_path / "r.csv", made({("q", "-5"): 1, ("q", "-1.5"): 1})) == []
    assert len(quepid.write(tmp_path / "r.csv", made({("q", "@SUM(A1)"): 1, ("-cmd", "d"): 1}))) == 1


@same_folder
@given(judgments)
def test_opensearch(tmp_path: Path, pairs: dict[tuple[str, str], int]) -> None:
    opensearch.write(tmp_path / "j.json", made(pairs))
    body = json.loads((tmp_path / "j.json").read_bytes())
    assert body["type"] == "IMPORT_JUDGMENT" and set(body) == {"name", "description", "type", "judgmentRatings"}
    assert [entry["query"] for entry in body["judgmentRatings"]] == sorted({query for query, _ in pairs})
    found = {(e["query"], r["docId"]): r["rating"] for e in body["judgmentRatings"] for r in e["ratings"]}
    assert found == {pair: str(grade) for pair, grade in pairs.items()}


@same_folder
@given(judgments)
def test_trec_by_ir_measures(tmp_path: Path, pairs: dict[tuple[str, str], int]) -> None:
    """Every id comes back, or the file is not written."""
    ir_measures = pytest.importorskip("ir_measures")
    path = tmp_path / "qrels"
    path.unlink(missing_ok=True)
    if any(len(name.split()) != 1 or name.strip() != name for pair in pairs for name in pair):
        with pytest.raises(EluteError, match="ids are empty or contain one"):
            trec.write(path, made(pairs))
        assert list(tmp_path.iterdir()) == []
        return
    trec.write(path, made(pairs))
    read = list(ir_measures.read_trec_qrels(io.StringIO(path.read_bytes().decode(), newline="\n")))
    assert {(q.query_id, q.doc_id): q.relevance for q in read} == pairs
    assert {q.iteration for q in read} == {"0"}


def test_trec_names_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(
        EluteError, match=r"1 query ids are empty or contain one, for instance 'red shoe'.*`query=` with `log=`"
    ):
        trec.write(tmp_path / "qrels", made({("red shoe", "d"): 1}))


@same_folder
@given(judgments)
def test_ranklib_lines_by_sklearn(tmp_path: Path, pairs: dict[tuple[str, str], int]) -> None:
    path = tmp_path / "letor.txt"
    ranklib.write(path, made(pairs))
    ordered = sorted(pairs)
    queries = sorted({query for query, _ in pairs})
    _, grade, qid = load_svmlight_file(str(path), query_id=True)
    assert grade.tolist() == [pairs[pair] for pair in ordered]
    assert qid.tolist() == [1 + queries.index(query) for query, _ in ordered]
    lines = path.read_bytes().decode().split("\n")[:-1]
    words = [line.split(" # ", 1)[1].split(" ") for line in lines]
    assert [(unquote(w[5]), unquote(w[2])) for w in words] == ordered


def test_ranklib_with_features(tmp_path: Path) -> None:
    values = np.array([[0.1, 0.0], [3.0, -1e-7], [0.3333333, 2.5e10]], np.float32)
    table = pa.table({"query_id": [7, 7, 8], "doc_id": ["a", "b", "a"], "x": values[:, 0], "y": values[:, 1]})
    pq.write_table(table, tmp_path / "f.parquet")
    features = read_features((str(tmp_path / "f.parquet"),), ("query_id", "doc_id"))
    path = tmp_path / "letor.txt"
    assert ranklib.write(path, made({("8", "a"): 2, ("7", "b"): 1}), features) == []
    x, grade, qid = load_svmlight_file(str(path), query_id=True)
    assert (x.toarray().astype(np.float32) == values[[1, 2]]).all()
    assert (grade.tolist(), qid.tolist()) == ([1, 2], [1, 2])
    ours = letor.read(path)
    assert (ours.features == values[[1, 2]]).all() and ours.documents.tolist() == ["b", "a"]
    with pytest.raises(EluteError, match="1 of 2 judged documents have no features in"):
        ranklib.write(tmp_path / "no.txt", made({("7", "c"): 2, ("7", "b"): 1}), features)
    assert not (tmp_path / "no.txt").exists()


def test_features_by_document_alone(tmp_path: Path) -> None:
    pq.write_table(pa.table({"doc_id": ["a", "b"], "x": [1.5, 2.5]}), tmp_path / "f.parquet")
    features = read_features((str(tmp_path / "f.parquet"),), ("query_id", "doc_id"))
    ranklib.write(tmp_path / "letor.txt", made({("q", "b"): 1, ("r", "a"): 0, ("r", "b"): 2}), features)
    assert letor.read(tmp_path / "letor.txt").features.tolist() == [[2.5], [1.5], [2.5]]


ROWS = [Row(q, d, r / 10) for q in ("q1", "q2") for r, d in enumerate("abcd")]


def invoke(folder: Path, *arguments: str) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(main, arguments)


def test_the_command_line(tmp_path: Path) -> None:
    write_fit(tmp_path / "fit", [*ROWS, Row("q3", "a"), Row("q3", "b", component=1)], converged=False, reason="tired")
    call = ("judge", "fit", "--format", "opensearch", "--out", "j.json")
    done = run_elute(*call, "--json", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.json["judgments"] == 8 and done.json["queries"] == 2
    assert done.json["grades"] == {"0": 2, "1": 2, "2": 2, "3": 2}
    assert done.json["left_out"] == {"not_rankable": {"queries": 1, "judgments": 2}}
    assert done.json["warnings"] == ["the fit did not converge (tired); its figures may be far off"]
    assert done.json["withheld"] == {"not_rankable": 2} and done.json["agreement"] is None
    assert done.json["next"].endswith("--data-binary @j.json") and "4 equal bands" in done.json["rule"]
    before = (tmp_path / "j.json").read_bytes()
    page = invoke(tmp_path, *call).output
    first = "8 judgments of 2 queries can be stood behind; 2 items are withheld: queries whose items lie in several "
    assert page.split("\n")[1] == f"  {first}components 2."
    assert "For opensearch, written to j.json; what each rests on is in j.json.evidence.parquet." in page
    assert "Left out, queries whose items lie in several components: 2 judgments, 1 whole queries" in page
    assert (tmp_path / "j.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--format", "quepid", "--out", "mine"), "'mine' is a folder, but quepid is a single file"),
        (("--format", "quepid", "--out", "fit"), "--out: 'fit' is read as 'fit' too"),
        (("--format", "quepid", "--out", "r", "--features", "f.parquet"), "does not use --features"),
        (("--format", "quepid", "--out", "r", "--grades", "high"), "neither 'quantiles' nor thresholds"),
        (("--format", "lightgbm", "--out", "r"), "needs --log, the clicks to learn from"),
        (("--format", "xgboost", "--out", "r", "--log", "l.parquet"), "needs --features"),
        (("--format", "xgboost", "--out", "r", "--levels", "3"), "has no --levels: its labels are clicks"),
        (("--format", "xgboost", "--out", "mine/file"), "is a file, but xgboost takes a folder"),
        (("--format", "xgboost", "--out", "fit/fit.json"), "--out: 'fit/fit.json' lies in 'fit', which is read"),
    ],
)
def test_what_cannot_be_done(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    write_fit(tmp_path / "fit", ROWS)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    done = invoke(tmp_path, "judge", "fit", *arguments)
    assert done.exit_code == 1 and words in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    """An id that is no text: half a pair of UTF-16, which UTF-8 cannot write."""
    path = tmp_path / "r.csv"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        quepid.write(path, made({("a", "b"): 1, ("q", "\ud800"): 1}))
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_formats_are_those_of_the_command_line() -> None:
    assert FORMATS == export.FORMATS
    assert {option.name for option in command.params} >= set(Wanted.__dataclass_fields__)
