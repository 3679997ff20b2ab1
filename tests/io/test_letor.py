"""LETOR files: against Python's own float, a plain reader, and scikit-learn's."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elute.errors import EluteError
from elute.io import letor
from elute.io.text.decimals import MAX_FLOAT32
from elute.ranking.data import RankingData

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def read(folder: Path, text: str | bytes, **options: Any) -> RankingData:
    path = folder / "data.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return letor.read(path, **options)


def rows(data: RankingData) -> list[tuple[str, str, int, list[float]]]:
    """(query, document, grade, features) by document."""
    query = data.queries[data.query_of]
    return list(zip(query.tolist(), data.documents.tolist(), data.grades.tolist(), data.features.tolist(), strict=True))


def nearest(token: str) -> np.float32:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # beyond float32: infinite
        return np.float32(float(token))


def test_sparse_lines_comments_blank_lines_and_any_order(tmp_path: Path) -> None:
    text = (
        "# a header\n"
        "2 qid:10 1:0.5 3:-1e-3 #docid = GX004-93-7097963 inc = 0.0246 prob = 0.1\r\n"
        "\r\n"
        "0\tqid:10\t3:.5   1:+2. \t \n"
        "   \n"
        "1.0 qid:x-7 2:1E2#docid=b\n"
        "3 qid:10 # nothing but a comment"
    )
    assert rows(read(tmp_path, text)) == [
        ("10", "GX004-93-7097963", 2, [0.5, 0.0, float(np.float32(-1e-3))]),
        ("10", "1", 0, [2.0, 0.0, 0.5]),
        ("10", "2", 3, [0.0, 0.0, 0.0]),
        ("x-7", "b", 1, [0.0, 100.0, 0.0]),
    ]


def test_lines_of_a_query_that_lie_apart_are_brought_together_in_order(tmp_path: Path) -> None:
    data = read(tmp_path, "0 qid:b 1:1\n1 qid:a 1:2\n2 qid:b 1:3\n3 qid:c 1:4\n4 qid:a 1:5\n")
    assert rows(data) == [
        ("b", "0", 0, [1.0]),
        ("b", "1", 2, [3.0]),
        ("a", "0", 1, [2.0]),
        ("a", "1", 4, [5.0]),
        ("c", "0", 3, [4.0]),
    ]
    assert data.offsets.tolist() == [0, 2, 4, 5]


def test_an_index_zero_anywhere_means_that_indices_count_from_zero(tmp_path: Path) -> None:
    assert read(tmp_path, "0 qid:1 1:1 2:2\n1 qid:1 2:5\n").features.tolist() == [[1, 2], [0, 5]]
    assert read(tmp_path, "0 qid:1 1:1 2:2\n1 qid:1 0:5\n").features.tolist() == [[0, 1, 2], [5, 0, 0]]
    assert read(tmp_path, "0 qid:1 1:1\n", zero_based=True).features.tolist() == [[0, 1]]
    with pytest.raises(EluteError, match="`zero_based=False`"):
        read(tmp_path, "0 qid:1 0:1\n", zero_based=False)


def test_a_given_number_of_features(tmp_path: Path) -> None:
    assert read(tmp_path, "0 qid:1 1:1\n", n_features=3).features.tolist() == [[1, 0, 0]]
    with pytest.raises(EluteError, match="index 4 is beyond `n_features=3`"):
        read(tmp_path, "0 qid:1 4:1\n", n_features=3)


def test_no_feature_at_all(tmp_path: Path) -> None:
    assert read(tmp_path, "0 qid:1\n1 qid:1\n").features.shape == (2, 0)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1.5 qid:1 1:1", "grade '1.5' is not a whole number"),
        ("-1 qid:1 1:1", "grade '-1' is not"),
        ("nan qid:1 1:1", "grade 'nan' is not"),
        ("qid:1 1:1", "grade 'qid:1' is not"),
        ("1e20 qid:1 1:1", "grade '1e20' is not"),
        ("1 1:1 2:2", "expected qid:<id> after the grade, found '1:1'"),
        ("1 qid: 1:1", "expected qid:<id>"),
        ("1", "expected qid:<id>"),
        ("1 qid:1 1", "expected index:value, found '1'"),
        ("1 qid:1 :3", "expected index:value, found ':3'"),
        ("1 qid:1 -1:3", "expected index:value, found '-1:3'"),
        ("1 qid:1 a:3", "expected index:value, found 'a:3'"),
        ("1 qid:1 1:1 qid:2", "expected index:value, found 'qid:2'"),
        ("1 qid:1 1 :3", "expected index:value, found '1'"),
        ("1 qid:1 1:", "the value of '1:' is not a finite number"),
        ("1 qid:1 1: 3", "the value of '1:' is not a finite number"),
        ("1 qid:1 1:nan", "the value of '1:nan' is not a finite number"),
        ("1 qid:1 1:-inf", "the value of '1:-inf' is not a finite number"),
        ("1 qid:1 1:1_0", "the value of '1:1_0' is not a finite number"),
        ("1 qid:1 1:1e", "the value of '1:1e' is not a finite number"),
        ("1 qid:1 1:1.2.3", "the value of '1:1.2.3' is not a finite number"),
        ("1 qid:1 1:1:2", "the value of '1:1:2' is not a finite number"),
        ("1 qid:1 1:.", "the value of '1:.' is not a finite number"),
        ("1 qid:1 1:--1", "the value of '1:--1' is not a finite number"),
        ("1 qid:1 1:1e39", "the value of '1:1e39' is too large"),
        ("1 qid:1 1:-1e999", "the value of '-1e999' is too large"),
        ("1 qid:1 3:1 99999999999:1", "the index of '99999999999:1' is larger than 1048575"),
        ("1 qid:1 3:1 1:2 3:1", "feature index 3 appears twice on the line"),
        (b"1 qid:\xff 1:1", "is not UTF-8"),
    ],
)
@pytest.mark.parametrize("chunk", [16, 1 << 20])
def test_a_malformed_line_is_named(tmp_path: Path, line: str | bytes, words: str, chunk: int) -> None:
    raw = line if isinstance(line, bytes) else line.encode()
    with pytest.raises(EluteError, match=r"data\.txt, line 4: ") as caught:
        read(tmp_path, b"0 qid:1 1:0\n\n0 qid:1 1:0\n" + raw + b"\n0 qid:1 1:0\n", chunk_bytes=chunk)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_document_twice_in_a_query(tmp_path: Path) -> None:
    with pytest.raises(EluteError, match="document 'a' appears twice in query '7'"):
        read(tmp_path, "0 qid:7 1:0 #docid = a\n0 qid:8 1:0 #docid = a\n0 qid:7 1:0 #docid = a\n")


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(EluteError, match="no document in "):
        read(tmp_path, "\n# only a comment\n")
    with pytest.raises(EluteError, match="no document in "):
        read(tmp_path, "")
    with pytest.raises(EluteError, match="no file"):
        letor.read(tmp_path / "missing.txt")
    with pytest.raises(EluteError, match="list of paths is empty"):
        letor.read([])
    (tmp_path / "empty").mkdir()
    with pytest.raises(EluteError, match="contains no file ending in"):
        letor.read(tmp_path / "empty")


def test_a_set_in_several_files(tmp_path: Path) -> None:
    """As a folder, a glob and a list; part 10 after part 9, gzip among them, a query cut between two files."""
    parts = {"part9.txt": "0 qid:1 1:1\n", "part10.txt": "1 qid:1 1:2\n2 qid:2 1:3\n", "part11.txt.gz": "3 qid:2 2:4"}
    for name, text in parts.items():
        raw = text.encode()
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    (tmp_path / "README.md").write_text("not data")
    expected = [("1", "0", 0, [1, 0]), ("1", "1", 1, [2, 0]), ("2", "0", 2, [3, 0]), ("2", "1", 3, [0, 4])]
    assert rows(letor.read(tmp_path)) == expected
    assert rows(letor.read(str(tmp_path / "part*"))) == expected
    assert rows(letor.read([tmp_path / name for name in parts])) == expected


def test_a_folder_of_several_splits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "set1.train.txt").write_text("0 qid:1 1:1\n")
    (tmp_path / "set1.test.txt").write_text("0 qid:2 1:1\n")
    with pytest.raises(EluteError, match=r"several splits \(test, train\)"):
        letor.read(tmp_path)


def test_a_damaged_archive(tmp_path: Path) -> None:
    whole = gzip.compress(b"0 qid:1 1:1\n" * 1000)
    (tmp_path / "cut.txt.gz").write_bytes(whole[:-20])
    with pytest.raises(EluteError, match=r"cannot read .*cut\.txt\.gz"):
        letor.read(tmp_path / "cut.txt.gz")


def test_a_byte_order_mark(tmp_path: Path) -> None:
    assert rows(read(tmp_path, b"\xef\xbb\xbf2 qid:1 1:1\n")) == [("1", "0", 2, [1.0])]


numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map("{:.25e}".format),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?", fullmatch=True).filter(
        str.isascii
    ),
)


def between_two_floats(draw_from: tuple[np.float32, int]) -> str:
    """A decimal at, or a hair from, the middle of two neighbouring float32: where rounding twice goes wrong."""
    value, nudge = draw_from
    middle = (float(value) + float(np.nextafter(value, np.float32(np.inf)))) / 2
    text = format(middle, ".60f") if 1e-9 < abs(middle) < 1e9 else format(middle, ".50e")
    mantissa, e, exponent = text.partition("e")
    return mantissa[:-1] + str((int(mantissa[-1]) + nudge) % 10) + e + exponent


hard = st.tuples(st.floats(2.0**-100, 2.0**100, width=32).map(np.float32), st.integers(0, 9)).map(between_two_floats)


@same_folder
@given(tokens=st.lists(st.one_of(numbers, hard), min_size=1, max_size=30))
def test_values_are_those_of_python(tmp_path: Path, tokens: list[str]) -> None:
    finite = [token for token in tokens if abs(float(token)) < MAX_FLOAT32]
    line = " ".join(f"{i}:{token}" for i, token in enumerate(finite, start=1))
    data = read(tmp_path, f"0 qid:1 {line}\n")
    assert data.features[0].tolist() == [float(nearest(token)) for token in finite]
    for token in set(tokens) - set(finite):
        with pytest.raises(EluteError, match="too large"):
            read(tmp_path, f"0 qid:1 1:{token}\n")


def test_the_largest_float_and_the_first_beyond(tmp_path: Path) -> None:
    largest = "340282346638528859811704183484516925440"
    middle = 340282356779733661637539395458142568448  # between the largest and 2¹²⁸; goes to the even one, infinity
    below = middle - 2**75  # the next double
    data = read(tmp_path, f"0 qid:1 1:{largest} 2:{below} 3:-{largest}.0\n")
    assert data.features[0].tolist() == [float(largest), float(largest), -float(largest)]
    with pytest.raises(EluteError, match="too large"):
        read(tmp_path, f"0 qid:1 1:{middle}\n")


def plain(lines: list[str]) -> list[tuple[str, int, dict[int, float]]]:
    """The same format, read with split: (query, grade, features), queries together."""
    groups: dict[str, list[tuple[str, int, dict[int, float]]]] = {}
    for line in lines:
        fields = line.split("#")[0].split()
        if fields:
            query = fields[1].removeprefix("qid:")
            pairs = dict(field.split(":") for field in fields[2:])
            features = {int(index): float(nearest(value)) for index, value in pairs.items()}
            groups.setdefault(query, []).append((query, int(fields[0]), features))
    return [row for group in groups.values() for row in group]


document = st.tuples(
    st.integers(0, 4),
    st.sampled_from(["1", "2", "q", "10"]),
    st.lists(st.tuples(st.integers(1, 40), st.floats(-1e6, 1e6).map(repr)), max_size=6, unique_by=lambda pair: pair[0]),
    st.sampled_from(["", " ", "\r", " # note", "\t#docid none"]),
)


@same_folder
@given(
    documents=st.lists(st.one_of(document, st.sampled_from(["", "  ", "# 1 qid:1"])), min_size=1, max_size=30).filter(
        lambda lines: any(isinstance(line, tuple) for line in lines)
    ),
    chunk=st.integers(1, 200),
)
def test_any_file_in_chunks_of_any_size(tmp_path: Path, documents: list[object], chunk: int) -> None:
    lines = [
        f"{d[0]} qid:{d[1]} {' '.join(f'{i}:{v}' for i, v in d[2])}{d[3]}" if isinstance(d, tuple) else str(d)
        for d in documents
    ]
    data = read(tmp_path, "\n".join(lines), chunk_bytes=chunk)
    found = [(query, grade, features) for query, _, grade, features in rows(data)]
    width = data.features.shape[1]
    expected = [(q, g, [f.get(i, 0.0) for i in range(1, width + 1)]) for q, g, f in plain(lines)]
    assert found == expected
    assert width == max((max(f, default=0) for _, _, f in plain(lines)), default=0)


@pytest.mark.parametrize(
    ("name", "shape", "queries"),
    [
        ("mq2008/train", (9630, 46), 471),
        ("mq2008/vali", (2707, 46), 157),
        ("mq2008/test", (2874, 46), 156),
        ("mslr5k/train", (5000, 136), 43),
        ("mslr5k/test", (5000, 136), 43),
    ],
)
def test_real_sets_as_scikit_learn_reads_them(data: Path, name: str, shape: tuple[int, int], queries: int) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    path = str(data / f"{name}.txt.gz")
    ours = letor.read(path)
    features, grades, query = datasets.load_svmlight_file(path, query_id=True)
    assert (ours.features.shape, ours.n_queries) == (shape, queries)
    np.testing.assert_array_equal(ours.features, features.toarray().astype(np.float32))
    np.testing.assert_array_equal(ours.grades, grades)
    np.testing.assert_array_equal(ours.queries[ours.query_of].astype(int), query)
