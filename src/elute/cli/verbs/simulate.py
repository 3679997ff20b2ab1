"""`elute simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from elute.cli.options import FILES, parse_settings
from elute.cli.progress import Reporter
from elute.cli.text import print_json
from elute.cli.types import PathType, typed

USERS = ("pbm", "cpbm", "cascade", "dcm", "ubm", "dbn", "mixture-dbn", "carousel", "trust", "pl-choice")
POLICIES = ("uniform", "noisy-oracle", "lambdamart", "weak", "scores")
"""As in the registries of `elute.simulation`, which are slow to import; a test compares them."""

_EPILOG = """\b
Examples:
  elute simulate --data docs/data/letor.txt --user pbm --sessions 5000 --out clicks.parquet
  elute simulate --data 'docs/data/*.txt' --policy weak --user dbn --user-setting continuation=0.9 --out browsed.parquet
  elute repair browsed.parquet --method swap --out swap.json
  elute simulate --data docs/data/letor.txt --policy weak --user dbn --swap swap.json --out repaired.parquet

\b
The log has session_id, query_id, doc_id, position, score and click (and context, for cpbm);
log.truth.parquet beside it has the true relevance of items and propensity of factors.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--data", multiple=True, required=True, type=FILES, help="Ranking data: LETOR/SVMlight files, or an ULTRA folder."
)
@click.option("--policy", type=click.Choice(POLICIES), default="noisy-oracle", show_default=True, help="Who ranks.")
@click.option(
    "--policy-setting",
    metavar="NAME=VALUE",
    multiple=True,
    callback=parse_settings,
    help="For example temperature=0.1.",
)
@click.option("--scores", type=PathType(dir_okay=False), help="Parquet of query_id, doc_id, score.")
@click.option("--user", type=click.Choice(USERS), default="pbm", show_default=True, help="Who clicks.")
@click.option(
    "--user-setting",
    metavar="NAME=VALUE",
    multiple=True,
    callback=parse_settings,
    help="For example eta=2, propensities=1/k.",
)
@click.option("--sessions", type=typed("sessions"), default=100_000, show_default=True, help="Result pages.")
@click.option("--width", type=typed("width"), default=10, show_default=True, help="Results on a page.")
@click.option("--epsilon", type=typed("epsilon"), default=0.1, show_default=True, help="Relevance of grade 0.")
@click.option("--top-grade", type=typed("top_grade"), help="The grade that is surely relevant.  [default: the highest]")
@click.option("--swap", type=PathType(dir_okay=False), help="A swap plan: its pages follow the others.")
@click.option("--seed", type=typed("seed"), default=0, show_default=True, help="Seed for everything drawn.")
@click.option("--out", type=PathType(dir_okay=False), required=True, help="Where to write the log.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def simulate(
    data: tuple[str, ...],
    out: str,
    policy_setting: dict[str, Any],
    user_setting: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """A click log whose truth is known: real documents and grades, a policy that ranks, a user who clicks."""
    from elute.verbs.simulate import simulate as run

    with Reporter() as progress:
        found = run(data, out, policy_settings=policy_setting, user_settings=user_setting, progress=progress, **options)
    if as_json:
        print_json(found.to_json())
    else:
        click.echo(found.sentence)
        click.echo(f"Next: elute check {Path(out)}")
