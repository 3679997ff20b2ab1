"""`elute report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elute.cli.options import Invocation, reads_log
from elute.progress import Progress

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
@click.option("--plan", type=click.Path(dir_okay=False), help="A repair plan, shown before and after.")
@click.option("--fit", "fits", metavar="DIR", multiple=True, type=click.Path(), help="A folder 'elute fit' wrote.")
@click.option("--audit", type=click.Path(dir_okay=False), help="What 'elute audit --json' printed.")
@click.option("--out", type=click.Path(dir_okay=False), required=True, help="Where to write the page.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def report(
    log: ClickLog,
    call: Invocation,
    progress: Progress,
    plan: str | None,
    fits: tuple[str, ...],
    audit: str | None,
    out: str,
    as_json: bool,
) -> None:
    """One page on a log, for people: the verdict, the graph, propensities, relevance against clicks.

    The page is a single HTML file that needs no network. The log is checked anew; plans, fits and audits come
    from the files that the other verbs wrote. LOG as for 'elute check'.
    """
    import json
    from dataclasses import replace

    from elute.cli import report_commands
    from elute.repair.plan import load
    from elute.report.build import build

    found = build(log, plan=None if plan is None else load(plan), fits=fits, audit=audit, progress=progress)
    files = report_commands.Files(plan, fits, audit, out)
    page = replace(
        found,
        commands=report_commands.made(call, found, files),
        missing=report_commands.missing(call, found, files),
    )
    size = page.save(out)
    if as_json:
        click.echo(json.dumps({"report": out, "bytes": size, **page.to_dict()}, ensure_ascii=False, allow_nan=False))
    else:
        click.echo(f"{page.verdict[1]}. Written to {out} ({size / 1e6:.1f} MB): open it in a browser.")
