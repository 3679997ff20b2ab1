"""The page on a watch: alarms and what to do, then figures over time with the limits within which there is none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elute._util.files import write_text
from elute._util.text import format_count, to_one_line
from elute.errors import EluteError
from elute.reporting.document import render_document
from elute.reporting.parts import Block, Commands, Grid, Note, Section
from elute.results.card import Tone
from elute.watching.sections import show_amounts, show_groups, show_health, show_structure

Fields = Mapping[str, Any]


def save_page(fields: Fields, path: str | Path) -> None:
    """`fields`: of `elute watch --json`."""
    if Path(path).is_dir():
        raise EluteError(f"'{path}' is a folder; name a file, as in `out='{Path(path) / 'watch.html'}'`")
    write_text(path, render_page(fields))


def render_page(fields: Fields) -> str:
    """The page."""
    alarms, newest, judged = fields["alarms"], fields["series"][-1], fields["judged"]
    tone: Tone = "bad" if alarms else "good" if judged else "calm"
    word = "Quiet" if not alarms else alarms[0]["code"].replace("_", " ").capitalize()
    if len(alarms) > 1:
        word = f"{len(alarms)} alarms"
    check = newest["check"] or {}
    tiles = [
        (format_count(newest["impressions"]), "impressions"),
        (format_count(newest["clicks"]), "clicks"),
        (str(check.get("rung", "–")), "by itself"),
        (str((fields["window"] or {}).get("rung", "–")), "the window before"),
        (str(len({alarm["period"] for alarm in fields["earlier_alarms"]})), "earlier periods with alarms"),
    ]
    found = [
        _list_alarms(fields),
        show_amounts(fields),
        show_groups(fields),
        show_structure(fields),
        show_health(fields),
        _say_how(fields),
    ]
    sections = [section for section in found if section is not None]
    said = to_one_line(fields["verdict"], 600)
    verdict = tone, word if judged else "Too few periods", said
    return render_document(fields["folder"], verdict, tiles, [], sections, "Has anything changed in this log?")


def _list_alarms(fields: Fields) -> Section:
    blocks: list[Block] = []
    for alarm in fields["alarms"]:
        tone: Tone = "bad" if alarm["kind"] == "fault" else "warn"
        blocks.append(Note(f"{alarm['period']}, {alarm['code']}: {alarm['message']}. {alarm['do']}", tone))
    earlier = fields["earlier_alarms"]
    if earlier:
        rows = [
            (one["period"], one["code"], one["message"], "–" if one["p"] is None else f"{one['p']:.1g}")
            for one in reversed(earlier)
        ]
        marks: list[Tone] = ["bad" if one["kind"] == "fault" else "warn" for one in reversed(earlier)]
        caption = (
            "Earlier alarms. The chance is that of as much where nothing happens; – where it is no matter of chance."
        )
        blocks.append(Grid((fields["every"], "code", "what changed", "chance"), rows, ("chance",), caption, marks))
    lead = "Nothing in the newest period is more than chance."
    if fields["alarms"]:
        lead = "What changed in the newest period, and what to do about it."
    elif not fields["judged"]:
        lead = fields["verdict"]
    return Section("alarms", "Alarms", lead, blocks)


def _say_how(fields: Fields) -> Section:
    blocks: list[Block] = [Note(f"Not tested: {one['test']}. {one['why']}.") for one in fields["untested"]]
    folder = fields["folder"]
    blocks.append(
        Commands(
            [
                (f"elute watch {folder} --out watch.html", "this page"),
                (f"elute check {folder} --last {fields['baseline']}", "the verdict on the window"),
            ]
        )
    )
    alarms = "one false alarm" if fields["false_alarms"] == 1 else f"{fields['false_alarms']:g} false alarms"
    lead = (
        f"Each period is held against up to {fields['baseline']} before it, whose own differences say what is usual. "
        f"In 365 periods in which nothing happens, at most {alarms} is to be expected: each test has the level "
        f"{fields['level']:.1g}."
    )
    return Section("how", "How it is tested", lead, blocks)
