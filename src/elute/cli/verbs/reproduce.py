"""`elute reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from elute.cli.progress import Reporter
from elute.cli.text import print_json
from elute.cli.types import PathType, typed
from elute.errors import EluteError

if TYPE_CHECKING:
    from rich.console import Console

    from elute_reproduce.result import ComparedValue, Reproduction

_EPILOG = """\b
Examples:
  elute reproduce
  elute reproduce identifiability-table1 --data data/identifiability --seeds 3
  elute reproduce identifiability-figure6 --out docs/reproductions

\b
Exit code: 0 it ran (whether or not figures agree: that is the result), 1 it could not.
"""


_ELSEWHERE = (
    "the reproductions are not part of the installed package: clone elute's repository, which has them in research/, "
    "and run 'pip install -e .' there"
)


@click.command(epilog=_EPILOG)
@click.argument("name", required=False)
@click.option(
    "--data",
    type=PathType(exists=True, path_type=Path),
    envvar="ELUTE_DATA",
    help="Folder or file with the data it needs.  [default: $ELUTE_DATA]",
)
@click.option("--seeds", type=typed("seeds"), default=10, show_default=True, help="Runs to average over.")
@click.option("--out", type=PathType(file_okay=False), help="Folder for a Markdown page and its pictures.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def reproduce(name: str | None, data: Path | None, seeds: int, out: str | None, as_json: bool) -> None:
    """Run a published table or figure again: published and measured values side by side.

    Without a NAME, list what there is.
    """
    import json

    from rich.console import Console

    from elute._util.threads import count_usable_cores

    try:
        from elute_reproduce import page
        from elute_reproduce.studies import STUDIES, reproduce
        from elute_reproduce.study import Study
    except ModuleNotFoundError as missing:
        if missing.name != "elute_reproduce":
            raise
        raise EluteError(_ELSEWHERE) from None

    if name is None:
        for known, shows in STUDIES.items():
            click.echo(f"{known:<32}{shows}")
        return
    with Reporter() as progress:
        cores = count_usable_cores()
        result = reproduce(name, Study(data, seeds, progress, None if out is None else Path(out), cores))
    if out is not None:
        written = page.write(out, result)
    if as_json:
        print_json(json.dumps(result.to_dict(), ensure_ascii=False))
        return
    _show(Console(), result)
    if out is not None:
        click.echo(f"Written to {written}")


def _show(console: Console, result: Reproduction) -> None:
    from rich.table import Table

    console.print(f"\n[bold]{result.title}[/]\n{result.source}\n")
    if result.compared:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for head in (*result.compared[0].where, "published", "measured", ""):
            table.add_column(head)
        for entry in result.compared:
            table.add_row(*entry.where.values(), *_format_values(entry))
        console.print(table)
    for claim in result.claims:
        sign = "[green]✓[/]" if claim.holds else "[red]✗[/]"
        console.print(f"\n{sign} {claim.sentence}\n  [dim]{claim.evidence}[/]", soft_wrap=True)
    fields = result.to_dict()
    console.print(f"\n{fields['passed']} agree, {fields['failed']} do not ({result.seconds:.0f} s).")


def _format_values(entry: ComparedValue) -> tuple[str, str, str]:
    from elute_reproduce.page import format_number, format_published

    verdict = {None: "", True: "[green]✓[/]", False: "[red]✗[/]"}[entry.passed]
    measured = f"{format_number(entry.mean)} ± {format_number(entry.sd)}{entry.mark}" if entry.measured else ""
    return format_published(entry), measured, verdict
