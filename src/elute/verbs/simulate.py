"""`elute.simulate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from elute._util.paths import refuse_harm
from elute.errors import EluteError
from elute.io.ranking import read_ranking, read_scores
from elute.options.takes import takes
from elute.progress import Progress, silent
from elute.repair.plan import SwapPlan
from elute.results.base import Fields, Recorded
from elute.results.card import Card
from elute.simulation import log as files
from elute.simulation.grades import reciprocal_propensities, relevance_of_grades
from elute.simulation.policies.registry import build_policy, make_policy
from elute.simulation.policies.registry import settings_of as settings_of_policy
from elute.simulation.swaps import draw_swapped_pages
from elute.simulation.users.registry import build_user
from elute.simulation.users.registry import settings_of as settings_of_user
from elute.simulation.world import World, draw_pages, spawn_streams
from elute.verbs.source import PlanSource, as_paths, as_plan

Settings = Mapping[str, object]


class Simulated(Recorded):
    """A log that was written to `log`, and the `truth` beside it. Fields are attributes."""

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        sentence = f"{fields['impressions']:,} impressions of {fields['queries']:,} queries written to {fields['log']}"
        beside = "" if fields["truth"] is None else f", the truth to {fields['truth']}"
        return Card("calm", "Simulated", sentence + beside)


@takes()
def simulate(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    policy: str = "noisy-oracle",
    policy_settings: Settings | None = None,
    scores: str | Path | None = None,
    user: str = "pbm",
    user_settings: Settings | None = None,
    sessions: int = 100_000,
    width: int = 10,
    epsilon: float = 0.1,
    top_grade: int | None = None,
    swap: PlanSource | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Simulated:
    """A click log whose truth is known: real documents and grades, a policy that ranks, a user who clicks.

    `data`: LETOR/SVMlight files, or an ULTRA folder. The log is written to `out` (Parquet), with the true relevance of
    items and propensity of factors beside it. `policy` ranks and `user` clicks, each with settings of its own;
    `scores`: a Parquet file of query_id, doc_id, score for the policy "scores". `epsilon`: relevance of grade 0;
    `top_grade`: the grade surely relevant. `swap`: a swap plan, whose pages follow the others.
    """
    truth = files.truth_path(out)
    for target in (out, truth):
        refuse_harm(target, [as_paths(data), scores, swap])
    plan = None if swap is None else as_plan(swap)
    if plan is not None and not isinstance(plan, SwapPlan):
        named = str(swap) if isinstance(swap, str | Path) else "this"
        raise EluteError(f"{named} is a merge plan: it changes a fit, not what is shown")
    of_user = _seeded(seed, settings_of_user(user)) | dict(user_settings or {})
    if of_user.get("propensities") == "1/k":
        of_user["propensities"] = reciprocal_propensities(width)
    clicker = build_user(user, **of_user)
    of_policy = _seeded(seed, settings_of_policy(policy)) | dict(policy_settings or {})
    make_policy(policy, None if scores is None else np.empty(0), **of_policy)  # refused before anything is read
    progress("reading", 0, 0)
    ranking = read_ranking(list(as_paths(data)))
    given = None if scores is None else read_scores(str(scores), ranking)
    ranker = build_policy(policy, ranking, given, **of_policy)
    top = int(ranking.grades.max()) if top_grade is None else top_grade
    relevance = relevance_of_grades(ranking.grades, max(top, 1), epsilon)
    contexts = 0 if clicker.propensities is None or clicker.propensities.ndim == 1 else len(clicker.propensities)
    world = World(ranking, ranker, clicker, relevance, width=width, contexts=contexts)
    chance = spawn_streams(seed)
    parts = draw_pages(world, sessions, chance)
    if plan is not None:
        parts = chain(parts, draw_swapped_pages(world, plan, chance))
    rows = files.write(out, world, parts, sessions, progress)
    fields = {"log": str(out), "truth": truth and str(truth), "impressions": rows, "queries": ranking.n_queries}
    return Simulated(fields)


def _seeded(seed: int, settings: Sequence[str]) -> dict[str, object]:
    """The seed, for those that take one."""
    return {"seed": seed} if "seed" in settings else {}
