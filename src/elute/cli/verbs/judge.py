"""`elute judge`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from elute.cells.roles import DEFAULT_CLICK, DEFAULT_DOC, DEFAULT_QUERY
from elute.cli.options import FILES, adds_filters
from elute.cli.text import print_json
from elute.cli.types import PathType, typed

FORMATS = ("quepid", "opensearch", "ranklib", "trec", "lightgbm", "xgboost")
"""As in `elute.judging.export`, which is slow to import; a test compares the two."""

_EPILOG = """\b
Examples:
  elute judge demo/fits/pbm --format quepid --out ratings.csv
  elute judge demo/fits/pbm --format trec --grades 0.1,0.3,0.6 --min-precision 10 --out qrels.txt
  elute simulate --data docs/data/letor.txt --sessions 5000 --out clicks.parquet
  elute fit clicks.parquet --out clicks-fit
  elute judge clicks-fit --format lightgbm --log clicks.parquet --features docs/data/letor.txt --out bundle

\b
lightgbm and xgboost make a folder to train on from clicks; they need --log, with a column of result pages
(--session), and --features: Parquet with the query and document columns, or LETOR files.
"""


@click.command(epilog=_EPILOG)
@click.argument("fit", metavar="FIT", type=PathType(exists=True, file_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What will read it.")
@click.option("--out", type=PathType(path_type=Path), required=True, help="File to write, or folder for a bundle.")
@click.option(
    "--grades",
    type=typed("grades"),
    metavar="RULE",
    help="quantiles, or thresholds such as 0.1,0.3,0.6.  [default: quantiles]",
)
@click.option("--levels", type=typed("levels"), help="Number of grades that quantiles make.  [default: 4]")
@click.option(
    "--min-precision",
    type=typed("min_precision"),
    metavar="P",
    help="Leave out items whose relevance has a standard error above 1/P.",
)
@click.option("--all", "all_items", is_flag=True, help="Also items whose place in their query is not known, marked.")
@click.option(
    "--labels", type=PathType(dir_okay=False), help="Grades by people to compare with: query_id, doc_id, grade."
)
@click.option(
    "--features", multiple=True, type=FILES, help="ranklib, bundles: the documents' features, Parquet or LETOR."
)
@click.option(
    "--log", multiple=True, metavar="LOG", type=FILES, help="Bundles, or where items are not a query and a document."
)
@click.option(
    "--query", type=typed("query"), metavar="COL", default=DEFAULT_QUERY, show_default=True, help="The query's name."
)
@click.option(
    "--doc", type=typed("doc"), metavar="COL", default=DEFAULT_DOC, show_default=True, help="The document's name."
)
@click.option(
    "--click",
    type=typed("click"),
    metavar="COL",
    default=DEFAULT_CLICK,
    show_default=True,
    help="Bundles: the log's clicks.",
)
@click.option(
    "--session", type=typed("session"), metavar="COL", help="Bundles: a result page's id.  [default: session_id]"
)
@adds_filters
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def judge(fit: Path, form: str, out: Path, log: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Export what 'elute fit' left in FIT: judgments with grades, or click data to train a ranker on.

    Grades are made within a query. Items whose place in their query the clicks leave open are withheld, and so are
    queries whose items lie in more than one component: nothing can be compared across components. What each
    judgment rests on stands beside them, in OUT.evidence.parquet.
    """
    from elute.verbs.judge import judge as run

    source: Any = list(log) if len(log) > 1 else log[0] if log else None
    found = run(fit, form, out, log=source, **options)
    if as_json:
        print_json(found.to_json())
    else:
        _show(found.to_dict())


def _show(fields: dict[str, Any]) -> None:
    """What was written, by which rule, what was left out and what to do next."""
    from rich.console import Console
    from rich.text import Text

    from elute.cli.text import format_count, to_one_line
    from elute.judging.agreement import describe_agreement
    from elute.verbs.judge import count_known

    console = Console()
    where = f"for {fields['format']}, written to {to_one_line(fields['out'], 200)}"
    lines = [f"The fit: {fields['knowledge']}"] if fields.get("knowledge") else []
    lines.append(f"Rule: {fields['rule']}.")
    if "judgments" in fields:
        withheld = fields["withheld"]
        why = ", ".join(f"{_REASONS[reason]} {n:,}" for reason, n in withheld.items())
        kept_back = f"; {sum(withheld.values()):,} items are withheld: {why}" if withheld else ""
        headline = f"{count_known(fields)}{kept_back}."
        beside = [f"; what each rests on is in {to_one_line(file, 200)}" for file in fields["files"][1:]]
        lines.insert(0, f"{where[0].upper()}{where[1:]}{''.join(beside)}.")
        lines.append("Grades: " + ", ".join(f"{grade}: {format_count(n)}" for grade, n in fields["grades"].items()))
        if fields["agreement"] is not None:
            lines.append(describe_agreement(fields["agreement"]))
    else:
        headline = f"{format_count(fields['clicks'])} clicks on {format_count(fields['pages'])} pages {where}."
    console.print(Text(f"\n  {headline}", style="bold"), soft_wrap=True)
    for reason, lost in fields["left_out"].items():
        lines.append(f"Left out, {_REASONS[reason]}: {_format_amount(lost)}")
    for line in lines:
        console.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)
    for warning in fields["warnings"]:
        console.print(Text(f"  Note: {to_one_line(warning, 600)}.", style="red"), soft_wrap=True)
    console.print(Text.assemble(("\n  Next: ", "bold"), to_one_line(fields["next"], 600)), soft_wrap=True)


def _format_amount(lost: int | dict[str, int]) -> str:
    if isinstance(lost, int):
        return f"{lost:,}"
    queries = f", {lost['queries']:,} whole queries" if lost["queries"] else ""
    return f"{lost['judgments']:,} judgments{queries}"


_REASONS = {
    "not_in_fit": "shown in the log but not in the fit",
    "several_items": "a query and document that stand for several items",
    "not_rankable": "queries whose items lie in several components",
    "no_estimate": "no estimate",
    "imprecise": "too imprecise",
    "alone_in_query": "alone in their query",
    "place_not_known": "place in their query not known",
    "pages_without_click": "pages without a click",
    "pages_of_one_document": "pages of one document",
    "pages_with_gaps": "pages with gaps in their positions (from positions.parquet only)",
}
