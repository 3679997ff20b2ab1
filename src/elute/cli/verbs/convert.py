"""`elute convert`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from elute.cli.options import FILES
from elute.cli.progress import Reporter
from elute.cli.text import format_count, format_share, print_json, to_one_line
from elute.cli.types import PathType

if TYPE_CHECKING:
    from elute.io.logs.convert import Conversion

FORMATS = ("ubi", "yandex", "tiangong", "baidu", "sessions")
"""As in the registry of `elute.io.logs.convert`, which is slow to import; a test compares them."""

_SUSPICIOUS = 0.9
"""Share of clicks whose position agrees with the lists, under which a sentence says so."""

_EPILOG = """\b
Formats:
  ubi       OpenSearch UBI 1.x: ubi_queries and ubi_events, NDJSON or Parquet, any number of files
  yandex    Yandex Relevance Prediction Challenge: text with Q and C rows
  tiangong  TianGong-ST: XML, with the vertical type as two bias columns, v1 and v2
  baidu     Baidu-ULTR: text, with the type of a result as a bias column, media_type
  sessions  Parquet with a page a row: query_doc_ids and clicks are lists

\b
Examples:
  elute convert docs/data/ubi_queries.ndjson docs/data/ubi_events.ndjson --from ubi --out ubi.parquet
  elute convert 'docs/data/ubi_*.ndjson' --from ubi --skip-malformed --json --out ubi.parquet
"""


@click.command(epilog=_EPILOG)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=FILES)
@click.option("--from", "kind", type=click.Choice(FORMATS), required=True, help="The format of SOURCE.")
@click.option("--out", type=PathType(dir_okay=False), required=True, help="The Parquet file to write.")
@click.option("--skip-malformed", is_flag=True, help="Leave out and count what cannot be read, instead of stopping.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def convert(sources: tuple[str, ...], kind: str, out: str, skip_malformed: bool, as_json: bool) -> None:
    """Write a log of another format as the Parquet that the other commands read: a row for every result shown."""
    from elute.verbs.convert import convert as run

    with Reporter() as progress:
        done = run(sources, kind, out, skip_malformed=skip_malformed, progress=progress)
    if as_json:
        print_json(done.to_json())
        return
    click.echo(done.sentence)
    for sentence in _list_notes(done):
        click.echo(f"- {sentence}")
    item = [] if done.has_query else ["--item", "doc_id"]
    bias = ["--bias", ",".join(done.bias)] if len(done.bias) > 1 else []
    click.echo(f"Next: {shlex.join(['elute', 'check', out, *item, *bias])}")


def _list_notes(done: Conversion) -> list[str]:
    """What a reader of the log should know of it."""
    tally, notes = done.tally, []
    clicks = done.clicks + tally.repeated_clicks + tally.orphans
    if tally.orphans:
        part = format_share(tally.orphans / clicks)
        notes.append(
            f"clicks on a result that was not shown on their page, left out: {format_count(tally.orphans)} ({part})"
        )
    if tally.repeated_clicks:
        notes.append(f"clicks after the first on one result of a page, left out: {format_count(tally.repeated_clicks)}")
    if not clicks:
        notes.append("there are no clicks at all")
    if done.format == "ubi":
        notes += _list_ubi_notes(done)
    elif tally.position_base == 0:
        notes.append("positions counted from 0; the log counts from 1")
    if not done.has_query:
        notes.append("there is no query_id: a doc_id stands for query and document together")
    if tally.malformed:
        where = "; ".join(f"{to_one_line(p.file, 80)}:{p.line}: {to_one_line(p.reason, 120)}" for p in tally.problems)
        notes.append(f"{format_count(tally.malformed)} malformed records left out: {where}")
    return notes


def _list_ubi_notes(done: Conversion) -> list[str]:
    figures, base, notes = done.tally.figures, done.tally.position_base, []
    left_out = {
        "queries_without_results": "without query_response_hit_ids",
        "queries_without_text": "without user_query",
        "repeated_queries": "with the query_id of an earlier one",
    }
    for figure, words in left_out.items():
        if figures[figure]:
            notes.append(
                f"queries {words}, left out: {format_count(figures[figure])} of {format_count(figures['queries'])}"
            )
    if not figures["click_events"]:
        seen = ", ".join(to_one_line(action) for action in done.tally.actions) or "there are no events"
        notes.append(f"clicks are events whose action_name is 'click'; found: {seen}")
        return notes
    if base is None:
        notes.append("no click says its position; positions are places in query_response_hit_ids, from 1")
        return notes
    agree = figures["positions_agree"] / figures["clicks_with_position"]
    notes.append(
        f"clicks count positions from {base} ({format_share(agree)} agree with the lists); the log counts from 1"
    )
    if agree < _SUSPICIOUS:
        notes.append("where they disagree, users may have seen another order than query_response_hit_ids")
    return notes
