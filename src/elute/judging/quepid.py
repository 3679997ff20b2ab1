"""Quepid's CSV of ratings: `query,docid,rating`.

Lines end in a line feed alone: Quepid compares the header byte by byte. Ids are written as they are, because Quepid
finds documents by them; nothing is put in front of those that a spreadsheet takes for formulas, and the caller is told.
"""

from __future__ import annotations

from pathlib import Path

from elute._util.atomic import write_atomically
from elute.judging.judgments import Judgments

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_BREAKS = (",", "\n", "\r")


def write(path: str | Path, judgments: Judgments) -> list[str]:
    """Write the file; returns what a person should know before opening it elsewhere."""
    with write_atomically(Path(path)) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write("query,docid,rating\n")
        rows = zip(judgments.query, judgments.doc, judgments.grade.tolist(), strict=True)
        file.writelines(f"{_quote_cell(query)},{_quote_cell(doc)},{grade}\n" for query, doc, grade in rows)
    names = [*set(judgments.query), *judgments.doc]
    formulas, broken = (sum(map(test, names)) for test in (_is_formula, _has_breaks))
    warnings = []
    if formulas:
        warnings.append(
            f"{formulas:,} queries or documents begin with = + - or @, which spreadsheets run as formulas: "
            "import the file into Quepid as it is, or into a spreadsheet as text"
        )
    if broken:
        warnings.append(
            f"{broken:,} queries or documents contain commas or line breaks; they are quoted, but Quepid's import form "
            "counts commas and may refuse such lines"
        )
    return warnings


def _quote_cell(text: str) -> str:
    """Quoted where it must be; Python's own writer leaves a lone carriage return bare."""
    return '"' + text.replace('"', '""') + '"' if '"' in text or _has_breaks(text) else text


def _is_formula(text: str) -> bool:
    """Numbers below 0 are none."""
    return text.startswith(_FORMULA) and not text[1:].replace(".", "", 1).isdecimal()


def _has_breaks(text: str) -> bool:
    return any(sign in text for sign in _BREAKS)
