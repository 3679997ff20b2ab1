"""TianGong-ST (`sogousessiontrack2020.xml`): sessions of a Chinese search engine, an element a line.

    <session num="1">
      <interaction num="1">
        <query_id>q1</query_id>
        <results>
          <result rank="1"> <docid>d1</docid> <vtype>30000701#131</vtype> … </result>
        </results>
        <clicked>
          <click num="1"> <rank>1</rank> … </click>

The file is large, and the titles in it need not be sound XML: elements are found by their brackets, and only those
above are looked at. An interaction is a page; pages are numbered from 0. The vertical type `v1#v2` of a result becomes
the two bias columns `v1` and `v2`, as in Table 5 of *Identifiability Matters*. A click on a rank that the page does not
have is an orphan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.io.logs.rows import Flags, Ints, TextPart, find_repeated, parse_numbers, place_keys, read_parts, split
from elute.io.logs.tally import Rejects, Tally
from elute.io.text.lines import CHUNK_BYTES
from elute.progress import Progress, silent

BIAS = ("position", "v1", "v2")

_TAGS = "interaction|query_id|result|docid|vtype|click|rank"
_INITIALS = np.array(sorted({ord(tag[0]) for tag in _TAGS.split("|")}), np.uint8)
_ELEMENT = rf"^(?P<tag>{_TAGS})(?P<attributes>\s[^>]*)?>\s*(?P<value>[^<]*?)\s*$"
_RANK = r"""\srank\s*=\s*["']\s*(?P<rank>[0-9]+)\s*["']"""
_VERTICAL = r"^(?P<v1>[^#]+)#(?P<v2>[^#]+)$"
_NONE = -1


def read(
    paths: Sequence[Path], tally: Tally, progress: Progress = silent, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[pa.Table]:
    """Impressions, some sessions at a time."""
    tally.position_base = 1
    for part in read_parts(paths, _find_last_session, tally, progress, chunk_bytes):
        yield _to_table(part, tally)


def _find_last_session(text: bytes) -> int:
    return max(text.rfind(b"<session "), 0)


class _Elements:
    """The elements that matter, in the order of the file."""

    def __init__(self, text: bytes) -> None:
        pieces, at = split(text + b"<", b"<")
        letters = np.frombuffer(text, np.uint8)
        likely = np.flatnonzero(np.isin(letters[at[:-1] + 1], _INITIALS)) + 1  # the piece after each bracket
        found = pc.extract_regex(pieces.take(pa.array(likely)), pattern=_ELEMENT)
        known = found.is_valid()
        self.tag, self.attributes, self.value = found.filter(known).flatten()
        self._begins = at[likely[known.to_numpy(zero_copy_only=False)] - 1]
        self._newlines = np.flatnonzero(letters == ord("\n"))
        self.page, self.result, self.click = (self.have_tag(tag) for tag in ("interaction", "result", "click"))
        holders = np.flatnonzero(self.page | self.result | self.click)
        order = np.searchsorted(holders, np.arange(len(self.tag)), side="right") - 1
        self._holder = np.where(order >= 0, holders[order], _NONE) if len(holders) else order

    def have_tag(self, tag: str) -> Flags:
        return np.asarray(pc.equal(self.tag, tag).to_numpy(zero_copy_only=False))

    def find_within(self, tag: str, holders: Flags) -> Ints:
        """By holder: its first element of this name that no other holder has, or none."""
        found = np.flatnonzero(self.have_tag(tag) & (self._holder >= 0))
        found = found[holders[self._holder[found]]][::-1]
        place = np.full(len(holders), _NONE)
        place[self._holder[found]] = found
        return place[holders]

    def texts_of(self, which: Ints) -> pa.StringArray:
        """Values of elements; empty for none."""
        return pc.if_else(pa.array(which != _NONE), self.value.take(pa.array(np.maximum(which, 0))), "")

    def lines_of(self, which: Flags) -> Ints:
        """The lines, counted from 1 in the text, on which elements begin."""
        return np.asarray(np.searchsorted(self._newlines, self._begins[which]) + 1)


def _to_table(part: TextPart, tally: Tally) -> pa.Table:
    elements = _Elements(part.text)
    page_of = np.cumsum(elements.page) - 1
    query = _texts_within(elements, "query_id", elements.page)
    pages, results, clicks = (Rejects(int(which.sum())) for which in (elements.page, elements.result, elements.click))
    pages.add(_is_empty(query), "an interaction without a query_id")
    readable = np.append(pages.good, False)  # the last is for what stands before any interaction

    page = page_of[elements.result]
    doc = _texts_within(elements, "docid", elements.result)
    ranks = pc.extract_regex(elements.attributes.filter(pa.array(elements.result)), pattern=_RANK)
    position, numbered = parse_numbers(pc.struct_field(ranks, "rank").fill_null(""), 1)
    vertical = pc.extract_regex(_texts_within(elements, "vtype", elements.result), pattern=_VERTICAL)
    results.add(page < 0, "a result outside an interaction")
    results.add(~numbered, "a result without a rank from 1")
    results.add(_is_empty(doc), "a result without a docid")
    results.add(vertical.is_null().to_numpy(zero_copy_only=False), "a vtype that is not v1#v2")
    results.add(find_repeated(page, position, results.good), "a rank already on the page")

    click_page = page_of[elements.click]
    rank, ranked = parse_numbers(_texts_within(elements, "rank", elements.click), 1)
    clicks.add(~ranked, "a click without a rank from 1")
    for which, rejects in ((elements.page, pages), (elements.result, results), (elements.click, clicks)):
        _reject(part, elements, which, rejects, tally)

    kept, sought = results.good & readable[page], clicks.good & readable[click_page]
    click = _mark_clicked((page[kept], position[kept]), (click_page[sought], rank[sought]), tally)
    number = np.cumsum(pages.good) - 1 + tally.sessions
    tally.sessions += int(pages.good.sum())
    shown = pa.array(kept)
    columns = {
        "session_id": number[page[kept]],
        "query_id": query.take(pa.array(page[kept])),
        "doc_id": doc.filter(shown),
        "position": position[kept],
        "click": click,
        "v1": pc.struct_field(vertical, "v1").filter(shown),
        "v2": pc.struct_field(vertical, "v2").filter(shown),
    }
    return pa.table(columns)


def _texts_within(elements: _Elements, tag: str, holders: Flags) -> pa.StringArray:
    return elements.texts_of(elements.find_within(tag, holders))


def _is_empty(values: pa.StringArray) -> Flags:
    return np.asarray(pc.equal(values, "").to_numpy(zero_copy_only=False))


def _reject(part: TextPart, elements: _Elements, which: Flags, rejects: Rejects, tally: Tally) -> None:
    bad = np.flatnonzero(rejects.why)
    if len(bad):
        lines = elements.lines_of(which)[bad] + part.before
        reasons = (rejects.reasons[why] for why in rejects.why[bad].tolist())
        tally.reject_at(part.path, zip(lines.tolist(), reasons, strict=True), len(bad))


def _mark_clicked(
    shown: tuple[Ints, NDArray[np.int32]], clicked: tuple[Ints, NDArray[np.int32]], tally: Tally
) -> NDArray[np.uint8]:
    """By result: whether its rank on its page was clicked."""
    results, clicks = place_keys(*shown), place_keys(*clicked)
    click = np.isin(results, clicks).astype(np.uint8)
    hits = int(np.isin(clicks, results).sum())
    tally.orphans += len(clicks) - hits
    tally.repeated_clicks += hits - int(click.sum())
    return click
