"""The verdict: can relevance be recovered from this log, and for which queries?"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

import elute.files
from elute.counts import Counts
from elute.identify import explain, health
from elute.identify.components import Components, Links, components
from elute.identify.explore import Subset
from elute.identify.explore import explore as explore_subsets
from elute.identify.probability import Point
from elute.identify.probability import curve as sample_curve
from elute.log import ClickLog
from elute.progress import Progress, silent
from elute.rankable import Rankable
from elute.structure import Structure


@dataclass(frozen=True, eq=False)
class Check:
    """What the structure of a log allows. Inspect it, print it, save it; nothing is estimated here."""

    log: ClickLog
    structure: Structure
    found: Components
    """The component of every factor."""
    ranking: Rankable | None
    """None where the log has no queries."""
    parts: list[explain.Part]
    isolated_factors: int
    isolated: list[explain.Isolated]
    warnings: list[health.Concern]
    plan: Links | None
    """The plan under which the log was checked."""
    subsets: list[Subset] | None
    curve: list[Point] | None

    @property
    def counts(self) -> Counts:
        """The log's cells, in memory."""
        return self.log.counts()

    @property
    def recoverable(self) -> bool:
        """Whether the identifiability graph is connected (Theorem 1)."""
        return len(self.found) == 1

    @property
    def components(self) -> int:
        """How many components the identifiability graph has."""
        return len(self.found)

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        n = len(self.structure.root)
        if self.recoverable:
            factors = "its one factor is" if n == 1 else f"its {n:,} factors form"
            under = f" under this {self.plan.method} plan" if self.plan is not None else ""
            return f"Relevance is recoverable from this log{under}: {factors} one component."
        rest = ""
        if self.ranking is not None:
            ranked, queries = self.ranking.rankable, self.ranking.queries
            rest = f" {ranked:,} of {queries:,} queries ({ranked / queries:.1%}) can still be ranked."
        return (
            f"Relevance is not recoverable from this log as a whole: its {n:,} factors fall into "
            f"{self.components:,} components that no item links.{rest}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields of `elute check --json`."""
        survey, ranking, roles = self.log.survey, self.ranking, self.log.roles
        impressions = int(survey.impressions.sum())
        fields: dict[str, Any] = {
            "verdict": self.sentence,
            "impressions": impressions,
            "clicks": int(survey.clicks.sum()) if roles.click is not None else None,
            "items": self.structure.items,
            "factors": len(self.structure.root),
            "cells": self.structure.cells,
            "queries": self.structure.queries,
            "recoverable": self.recoverable,
            "components": self.components,
            "component_sizes": [int(size) for size in self.found.factors[: explain.SHOWN]],
            "rankable_queries": ranking.rankable if ranking else None,
            "rankable_share": ranking.share if ranking else None,
            "comparable_pairs_share": ranking.comparable_share if ranking else None,
            "impressions_in_largest_share": int(self.found.impressions[0]) / impressions,
            "component_details": [part._asdict() for part in self.parts],
            "isolated_factors": self.isolated_factors,
            "isolated": [alone._asdict() for alone in self.isolated],
            "warnings": [asdict(concern) for concern in self.warnings],
            "collision_bound": self.structure.collision_bound,
            "rows": survey.rows,
            "columns": {
                "item": list(roles.item),
                "bias": list(roles.bias),
                "query": roles.query,
                "click": roles.click,
                "impressions": roles.impressions,
                "session": roles.session,
            },
        }
        if self.plan is not None:
            fields["plan"] = self.plan.method
        if self.subsets is not None:
            fields["subsets"] = [
                {**s._asdict(), "bias": list(s.bias), "recoverable": s.recoverable} for s in self.subsets
            ]
        if self.curve is not None:
            fields["curve"] = [point._asdict() for point in self.curve]
        return fields

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the JSON, whole or not at all."""
        elute.files.write_text(path, self.to_json() + "\n")

    def __repr__(self) -> str:
        return f"<Check: {self.sentence}>"

    def _repr_html_(self) -> str:
        shown = {k: v for k, v in self.to_dict().items() if isinstance(v, int | float) and not isinstance(v, bool)}
        rows = "".join(f"<tr><th>{escape(k)}</th><td>{v:,.6g}</td></tr>" for k, v in shown.items())
        return f"<p><b>{escape(self.sentence)}</b></p><table>{rows}</table>"


def check(
    log: ClickLog,
    *,
    plan: Links | None = None,
    explore: bool = False,
    curve: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> Check:
    """Check a log. `plan`: as if this repair plan had been carried out. `explore`: also for every subset of the
    bias columns. `curve`: also for samples of the log. Both look at the log without the plan."""
    structure = log.structure(progress)
    found = components(structure.root, log.survey.factors, log.survey.impressions, plan)
    alone, listed = explain.isolated(log, structure, found)
    return Check(
        log=log,
        structure=structure,
        found=found,
        ranking=log.rankable(found.of_factor, len(found), progress) if structure.queries is not None else None,
        parts=explain.parts(log, structure, found),
        isolated_factors=alone,
        isolated=listed,
        warnings=health.warnings(log, structure),
        plan=plan,
        subsets=explore_subsets(log, progress) if explore else None,
        curve=sample_curve(log, seed, progress) if curve else None,
    )
