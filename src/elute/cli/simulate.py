"""`elute simulate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from elute.cli.options import FILES
from elute.cli.progress import Reporter

USERS = ("pbm", "cpbm", "cascade", "dcm", "ubm", "dbn", "mixture-dbn", "carousel", "trust", "pl-choice")
POLICIES = ("uniform", "noisy-oracle", "lambdamart", "weak", "scores")
"""As in the registries of `elute.simulate`, which are slow to import; a test compares them."""

_EPILOG = """\b
Examples:
  elute simulate --data docs/data/letor.txt --user pbm --sessions 5000 --out clicks.parquet
  elute simulate --data 'docs/data/*.txt' --policy weak --user dbn --user-setting continuation=0.9 --out browsed.parquet
  elute repair browsed.parquet --method swap --out swap.json
  elute simulate --data docs/data/letor.txt --policy weak --user dbn --swap swap.json --out mended.parquet

\b
The log has session_id, query_id, doc_id, position, score and click (and context, for cpbm);
log.truth.parquet beside it has the true relevance of items and propensity of factors.
"""


def _settings(_: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    """KEY=VALUE, where a value is JSON, or else text."""
    found = {}
    for setting in given:
        key, sign, value = setting.partition("=")
        if not sign:
            raise click.BadParameter(f"'{setting}' is not KEY=VALUE", param=option)
        try:
            found[key.replace("-", "_")] = json.loads(value)
        except json.JSONDecodeError:
            found[key.replace("-", "_")] = value
    return found


def _seeded(seed: int, settings: tuple[str, ...]) -> dict[str, Any]:
    return {"seed": seed} if "seed" in settings else {}


@click.command(epilog=_EPILOG)
@click.option(
    "--data", multiple=True, required=True, type=FILES, help="Ranking data: LETOR/SVMlight files, or an ULTRA folder."
)
@click.option("--policy", type=click.Choice(POLICIES), default="noisy-oracle", show_default=True, help="Who ranks.")
@click.option("--policy-setting", metavar="KEY=VALUE", multiple=True, callback=_settings, help="As temperature=0.1.")
@click.option("--scores", type=click.Path(dir_okay=False), help="Parquet of query_id, doc_id, score.")
@click.option("--user", type=click.Choice(USERS), default="pbm", show_default=True, help="Who clicks.")
@click.option(
    "--user-setting", metavar="KEY=VALUE", multiple=True, callback=_settings, help="As eta=2, propensities=1/k."
)
@click.option("--sessions", type=click.IntRange(min=1), default=100_000, show_default=True, help="Result pages.")
@click.option("--width", type=click.IntRange(min=1), default=10, show_default=True, help="Results on a page.")
@click.option("--epsilon", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Relevance of grade 0.")
@click.option("--top-grade", type=click.IntRange(min=1), help="The grade surely relevant.  [default: the highest]")
@click.option("--swap", type=click.Path(dir_okay=False), help="A swap plan: its pages follow the others.")
@click.option("--seed", default=0, show_default=True, help="Of everything drawn.")
@click.option("--out", type=click.Path(dir_okay=False), required=True, help="Where to write the log.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def simulate(
    data: tuple[str, ...],
    policy: str,
    policy_setting: dict[str, Any],
    scores: str | None,
    user: str,
    user_setting: dict[str, Any],
    sessions: int,
    width: int,
    epsilon: float,
    top_grade: int | None,
    swap: str | None,
    seed: int,
    out: str,
    as_json: bool,
) -> None:
    """A click log whose truth is known: real documents and grades, a policy that ranks, a user who clicks."""
    from itertools import chain

    from elute.errors import EluteError
    from elute.io.ranking import read_ranking, read_scores
    from elute.repair.plan import SwapPlan, load
    from elute.simulate import log
    from elute.simulate.grades import reciprocal, relevance_of_grades
    from elute.simulate.policies.registry import build_policy
    from elute.simulate.policies.registry import settings_of as policy_settings
    from elute.simulate.swaps import swapped_pages
    from elute.simulate.users.registry import build_user
    from elute.simulate.users.registry import settings_of as user_settings
    from elute.simulate.world import World, pages, streams

    plan = None if swap is None else load(swap)
    if plan is not None and not isinstance(plan, SwapPlan):
        raise EluteError(f"{swap} is a merge plan: it changes a fit, not what is shown")
    with Reporter() as progress:
        progress("reading", 0, 0)
        ranking = read_ranking(list(data))
        if user_setting.get("propensities") == "1/k":
            user_setting["propensities"] = reciprocal(width)
        clicker = build_user(user, **(_seeded(seed, user_settings(user)) | user_setting))
        given = None if scores is None else read_scores(scores, ranking)
        ranker = build_policy(policy, ranking, given, **(_seeded(seed, policy_settings(policy)) | policy_setting))
        top = int(ranking.grades.max()) if top_grade is None else top_grade
        relevance = relevance_of_grades(ranking.grades, max(top, 1), epsilon)
        contexts = 0 if clicker.propensities is None or clicker.propensities.ndim == 1 else len(clicker.propensities)
        world = World(ranking, ranker, clicker, relevance, width=width, contexts=contexts)
        chance = streams(seed)
        parts = pages(world, sessions, chance)
        if plan is not None:
            parts = chain(parts, swapped_pages(world, plan, chance))
        rows = log.write(out, world, parts, sessions, progress)
    truth = log.truth_path(out)
    if as_json:
        fields = {"log": out, "truth": str(truth), "impressions": rows, "queries": ranking.n_queries}
        click.echo(json.dumps(fields))
    else:
        click.echo(f"{rows:,} impressions of {ranking.n_queries:,} queries written to {out}, the truth to {truth}")
        click.echo(f"Next: elute check {Path(out)}")
