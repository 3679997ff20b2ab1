"""`elute report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elute.cli.options import reads_log
from elute.cli.text import print_json
from elute.cli.types import PathType
from elute.progress import Progress
from elute.results.invocation import Invocation

if TYPE_CHECKING:
    from elute.log import ClickLog

_EPILOG = """\b
Examples:
  elute report demo/sound.parquet --out report.html
  elute report demo/broken.parquet --plan demo/merge.json --fit demo/fits/pbm --audit demo/audit.json --out report.html

\b
Exit code: 0 written, whatever the verdict; 1 something cannot be used, 2 wrong usage.
"""


@click.command(epilog=_EPILOG)
@reads_log
@click.option("--plan", type=PathType(dir_okay=False), help="A repair plan, shown before and after.")
@click.option("--fit", "fits", metavar="DIR", multiple=True, type=PathType(), help="A folder 'elute fit' wrote.")
@click.option("--audit", type=PathType(dir_okay=False), help="What 'elute audit --json' printed.")
@click.option("--value", type=PathType(file_okay=False), help="A folder 'elute value' wrote.")
@click.option("--out", type=PathType(dir_okay=False), required=True, help="Where to write the page.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def report(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    plan: str | None,
    fits: tuple[str, ...],
    audit: str | None,
    value: str | None,
    out: str,
    as_json: bool,
) -> None:
    """One page on a log, for people: the verdict, the graph, propensities, relevance against clicks.

    The page is a single HTML file that needs no network. The log is checked anew; plans, fits, audits and values
    come from the files that the other verbs wrote. LOG as for 'elute check'.
    """
    from elute.verbs.report import report as run

    page = run(log, out, plan=plan, fits=fits, audit=audit, value=value, progress=progress)
    fields = page.to_dict()
    if as_json:
        print_json(page.to_json())
    else:
        click.echo(f"{fields['headline']}. Written to {out} ({fields['bytes'] / 1e6:.1f} MB): open it in a browser.")
