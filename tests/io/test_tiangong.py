"""TianGong-ST: files in the published shape against an XML parser, titles that are no XML, and broken elements."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elute
from elute.errors import EluteError
from elute.io.logs import tiangong
from elute.io.logs.convert import convert
from elute.io.logs.tally import Tally

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)

Shown = tuple[str, str]
Page = tuple[str, list[Shown], list[int]]
MODELS = ("TACM", "PSCM", "THCM", "UBM", "DBN", "POM")


def written(sessions: list[list[Page]], title: str = "a title") -> str:
    """An element a line, as published: what users saw, click models' labels, and the clicks."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<sessions>"]
    for number, pages in enumerate(sessions, start=1):
        lines.append(f'<session num="{number}">')
        for place, (query, shown, clicks) in enumerate(pages, start=1):
            lines += [f'<interaction num="{place}">', f"<query>{title}</query>", f"<query_id>{query}</query_id>"]
            lines.append("<results>")
            for rank, (doc, vertical) in enumerate(shown, start=1):
                lines += [f'<result rank="{rank}">', f"<url>http://x/{doc}</url>", f"<docid>{doc}</docid>"]
                lines += [f"<title>{title}</title>", f"<vtype>{vertical}</vtype>", "<relevance>"]
                lines += [f"<{model}>0.5</{model}>" for model in MODELS]
                lines += ["</relevance>", "</result>"]
            lines.append("</results>")
            if clicks:
                lines.append("<clicked>")
                for order, rank in enumerate(clicks, start=1):
                    lines += [f'<click num="{order}">', f"<docid>d{rank}</docid>", f"<rank>{rank}</rank>", "</click>"]
                lines.append("</clicked>")
            lines.append("</interaction>")
        lines.append("</session>")
    return "\n".join([*lines, "</sessions>"]) + "\n"


def read(path: Path, chunk: int = 1 << 20, skip: bool = False) -> tuple[list[tuple[object, ...]], Tally]:
    tally = Tally(skip=skip)
    tables = list(tiangong.read([path], tally, chunk_bytes=chunk))
    return [tuple(row.values()) for row in pa.concat_tables(tables).to_pylist()], tally


def parsed(text: str) -> tuple[list[tuple[object, ...]], int, int]:
    """The same with an XML parser, element by element."""
    rows: list[tuple[object, ...]] = []
    orphans = repeated = 0
    for number, page in enumerate(ET.fromstring(text).iter("interaction")):  # noqa: S314
        clicked = [int(rank.text or "") for rank in page.findall("clicked/click/rank")]
        ranks = {int(result.attrib["rank"]) for result in page.findall("results/result")}
        orphans += sum(rank not in ranks for rank in clicked)
        repeated += len([rank for rank in clicked if rank in ranks]) - len(ranks & set(clicked))
        for result in page.findall("results/result"):
            rank = int(result.attrib["rank"])
            v1, v2 = str(result.findtext("vtype")).split("#")
            rows.append(
                (number, page.findtext("query_id"), result.findtext("docid"), rank, int(rank in clicked), v1, v2)
            )
    return rows, orphans, repeated


verticals = st.sampled_from(["-1#-1", "30000701#131", "30000701#-1"])
page = st.tuples(
    st.sampled_from(["q1", "q22"]),
    st.lists(st.tuples(st.sampled_from(["d1", "d2", "d3"]), verticals), max_size=4),
    st.lists(st.integers(1, 6), max_size=4),
)


@same_folder
@given(sessions=st.lists(st.lists(page, max_size=3), min_size=1, max_size=4), chunk=st.integers(1, 600))
def test_as_an_xml_parser_reads_it(tmp_path: Path, sessions: list[list[Page]], chunk: int) -> None:
    text = written(sessions)
    (tmp_path / "sessions.xml").write_text(text)
    rows, tally = read(tmp_path / "sessions.xml", chunk)
    assert (rows, tally.orphans, tally.repeated_clicks) == parsed(text)
    assert tally.sessions == sum(map(len, sessions))


@pytest.mark.parametrize("title", ["a & b", "x < y > z", "<b>bold", "什么是爱情", "rank>2", "</click", '"quoted"'])
def test_titles_need_not_be_sound_xml(tmp_path: Path, title: str) -> None:
    sessions = [[("q1", [("d1", "-1#-1"), ("d2", "30000701#131")], [2])]]
    (tmp_path / "sessions.xml").write_text(written(sessions, title), encoding="utf-8")
    rows, tally = read(tmp_path / "sessions.xml")
    assert rows == [(0, "q1", "d1", 1, 0, "-1", "-1"), (0, "q1", "d2", 2, 1, "30000701", "131")]
    assert tally.malformed == 0


GOOD: list[list[Page]] = [[("q1", [("d1", "-1#-1"), ("d2", "1#2")], [2])], [("q2", [("d3", "1#2")], [1])]]


@pytest.mark.parametrize(
    ("old", "new", "at", "reason", "left"),
    [
        ("<docid>d1</docid>", "", '<result rank="1">', "a result without a docid", ["d2", "d3"]),
        ("<vtype>-1#-1</vtype>", "<vtype>-1</vtype>", '<result rank="1">', "a vtype that is not v1#v2", ["d2", "d3"]),
        ('<result rank="2">', "<result>", "<result>", "a result without a rank from 1", ["d1", "d3"]),
        ('<result rank="2">', '<result rank="0">', '<result rank="0">', "a result without a rank from 1", ["d1", "d3"]),
        ('<result rank="2">', '<result  rank="1" >', '<result  rank="1" >', "a rank already on the page", ["d1", "d3"]),
        ("<query_id>q1</query_id>", "", '<interaction num="1">', "an interaction without a query_id", ["d3"]),
        ("<rank>2</rank>", "<rank>two</rank>", '<click num="1">', "a click without a rank", ["d1", "d2", "d3"]),
    ],
)
def test_broken_elements_by_line(tmp_path: Path, old: str, new: str, at: str, reason: str, left: list[str]) -> None:
    text = written(GOOD)
    assert old in text
    text = text.replace(old, new, 1)
    line = text[: text.index(at)].count("\n") + 1
    (tmp_path / "sessions.xml").write_text(text)
    with pytest.raises(EluteError, match=f"sessions.xml: line {line}: {reason}"):
        read(tmp_path / "sessions.xml")
    for chunk in (10, 1 << 20):
        rows, tally = read(tmp_path / "sessions.xml", chunk, skip=True)
        assert [row[2] for row in rows] == left
        assert (tally.malformed, tally.problems[0].line) == (1, line)


def test_verticals_decide_what_is_recoverable(tmp_path: Path) -> None:
    """As in Table 5 of the paper: with position alone one component, with the vertical types more."""
    swapped: list[list[Page]] = [
        [("q1", [("a", "1#1"), ("b", "2#2")], [1])],
        [("q1", [("b", "2#2"), ("a", "1#1")], [1])],
    ]
    (tmp_path / "sessions.xml").write_text(written(swapped))
    convert(tmp_path / "sessions.xml", "tiangong", tmp_path / "log.parquet")
    components = {}
    for bias in ("position", "position,v1,v2"):
        with elute.read_log(tmp_path / "log.parquet", bias=bias) as log:
            components[bias] = elute.check(log).components
    assert components == {"position": 1, "position,v1,v2": 2}
