"""`elute watch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elute.cli.ending import ALARM
from elute.cli.text import format_count, print_json, to_one_line
from elute.cli.types import PathType, typed

if TYPE_CHECKING:
    from rich.console import Console

    from elute.results.base import Fields

_SHOWN = 10
"""Periods that are listed."""

_EPILOG = """\b
Examples:
  elute count demo/sound.parquet --append --key day=2026-11-13 --out daily
  elute watch daily
  elute watch daily --baseline 14 --out watch.html
  elute watch daily --pager

\b
Exit code: 0 the newest period is quiet, or has no baseline yet; 4 it has an alarm;
1 the folder cannot be used, 2 wrong usage.
"""


@click.command(epilog=_EPILOG)
@click.argument("folder", metavar="DIR", type=PathType())
@click.option(
    "--every",
    type=typed("every"),
    metavar="NAME",
    help="The name of the parts' keys that counts time, as in day.  [default: their first]",
)
@click.option(
    "--baseline",
    type=typed("baseline"),
    default=28,
    show_default=True,
    help="Periods that each is compared with.",
)
@click.option(
    "--false-alarms",
    type=typed("false_alarms"),
    metavar="N",
    default=1.0,
    show_default=True,
    help="How many to expect at most in 365 periods in which nothing happens.",
)
@click.option("--last", type=typed("last"), metavar="N", help="Look at the last N periods only.")
@click.option("--drop", type=typed("drop"), metavar="COND", help="Leave out parts as in 'day = 2026-10-17'.")
@click.option("--out", type=PathType(dir_okay=False), help="Where to write a page for people.")
@click.option("--prometheus", type=PathType(dir_okay=False), help="Where to write metrics in Prometheus' text format.")
@click.option("--pager", is_flag=True, help="One JSON line an alarm on stdout, nothing else.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def watch(
    folder: str,
    every: str | None,
    baseline: int,
    false_alarms: float,
    last: int | None,
    drop: str | None,
    out: str | None,
    prometheus: str | None,
    pager: bool,
    as_json: bool,
) -> None:
    """What changed in a folder of parts, period by period, and is it more than chance?

    DIR is what 'elute count --append' wrote. The newest period, and those before it, are each compared with as many
    as --baseline says: traffic, clicks at a fixed mix of items, propensities, links, and faults of the data.
    """
    from rich.console import Console

    from elute.cli.progress import Reporter
    from elute.verbs.counting.watch import watch as run

    if pager and as_json:
        raise click.UsageError("--pager and --json both print to stdout; give one of them")
    with Reporter() as progress:
        found = run(
            folder,
            out,
            every=every,
            baseline=baseline,
            false_alarms=false_alarms,
            last=last,
            drop=drop,
            prometheus=prometheus,
            progress=progress,
        )
    if pager:
        for line in found.lines():
            print_json(line)
    elif as_json:
        print_json(found.to_json())
    else:
        _show(Console(), found.to_dict(), out)
    if not found.quiet:
        click.get_current_context().exit(ALARM)


def _show(console: Console, fields: Fields, out: str | None) -> None:
    from elute.cli.pages.tables import make_table

    quiet, judged = fields["quiet"], fields["judged"]
    colour = "green" if quiet and judged else "yellow" if quiet else "red"
    word = "Alarm" if not quiet else "Quiet" if judged else "Nothing judged"
    console.print(f"\n[bold {colour}]{word}[/]")

    def say(line: str, style: str = "") -> None:
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    if quiet:
        say(fields["verdict"])
    for alarm in fields["alarms"]:
        say(f"{alarm['period']}: {alarm['message']}.")
        say(f"  {alarm['code']}: {alarm['do']}", "dim")
    for one in fields["untested"]:
        say(f"Not tested: {one['test']}; {one['why']}.", "dim")
    table = make_table("period", "impressions", "clicks", "ratio", "rung", "components", "")
    for column in table.columns:
        column.no_wrap = True
    for row in fields["series"][-_SHOWN:]:
        check, ratio = row["check"], row["figures"]["click_rate"]["ratio"]
        table.add_row(
            to_one_line(row["period"], 24),
            format_count(row["impressions"]),
            format_count(row["clicks"]),
            "–" if ratio is None else f"{ratio:.2f}",
            "–" if check is None else check["rung"],
            "–" if check is None else format_count(check["components"]),
            ", ".join(row["alarms"]),
        )
    console.print()
    console.print(table)
    say("ratio: clicks over those expected of the same items at the same positions, by all periods", "dim")
    if fields["alarms"]:
        click.echo(f"\nMore on a code: elute explain {fields['alarms'][0]['code']}")
    if out is not None:
        click.echo(f"\nWritten to {out}: open it in a browser.")
