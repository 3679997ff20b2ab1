"""The verdict: can relevance be recovered from this log, for which queries, and how much of it is known?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from elute._util.text import format_count, format_share, list_rows
from elute.cells.counts import Counts
from elute.cells.factors import to_rows
from elute.cells.filters import describe_filters
from elute.cells.rankable import Rankable
from elute.cells.structure import Structure
from elute.checking import details, health
from elute.checking.coarser import Coarser, propose_items
from elute.checking.explore import Subset
from elute.checking.explore import explore as explore_subsets
from elute.checking.growth import FORWARD, Stage, grow, join_stages
from elute.checking.looks import look_closer
from elute.checking.missing import find_missing
from elute.checking.planned import describe_planned, is_doubted, list_trusted
from elute.checking.probability import SHARES, Point, sample_curve
from elute.checking.rung import Bar, Look, Rung, find_look, find_rung, reaches, write_sentence
from elute.checking.structures import BiasStructure, explore_structures, propose
from elute.checking.thin import Filter, find_filter
from elute.identify.components import Components, LinkingPlan, find_components, link_planned
from elute.identify.effects.details import Effects, describe_effects
from elute.identify.merged import MergedFactors
from elute.known.precision import TARGET, Precision
from elute.log import ClickLog
from elute.progress import Progress, silent
from elute.results.base import Fields, Result
from elute.results.card import Bars, Card

if TYPE_CHECKING:
    from elute.bounds.bounds import Bounds
    from elute.estimate.inference.certificate import Certificate
    from elute.identify.generic.identifiability import GenericIdentifiability


@dataclass(frozen=True, eq=False, repr=False)
class Check(Result):
    """What the structure of a log allows, and how much of that its clicks settle. Inspect it, print it, save it."""

    log: ClickLog
    structure: Structure
    found: Components
    """The component of every factor."""
    ranking: Rankable | None
    """None where the log has no queries."""
    component_details: list[details.ComponentDetail]
    isolated_factors: int
    isolated: list[details.IsolatedFactor]
    warnings: list[health.Concern]
    plan: LinkingPlan | None
    """The plan under which the log was checked."""
    subsets: list[Subset] | None
    curve: list[Point] | None
    certificate: Certificate | None = None
    """How precisely propensities are determined."""
    generic: GenericIdentifiability | None = None
    """The verdict for another click model."""
    precision: Precision | None = None
    """How much is known; None where the log has no clicks, or where that was not asked for."""
    stages: list[Stage] | None = None
    """What logs of other sizes would give, with `curve`."""
    filter: Filter | None = None
    """A few impressions that could be left out so that the rest is one."""
    coarser: tuple[Coarser, ...] = ()
    """Items that would link more."""
    bounds: Bounds | None = None
    """What can be said across components."""
    structures: list[BiasStructure] | None = None
    """What other ways for several bias columns to act together would give, with `subsets`."""
    effects: Effects | None = None
    """What is determined of a formula's effects; None where every combination of bias values stands for itself."""

    @property
    def counts(self) -> Counts:
        """The log's cells, in memory."""
        return self.log.counts()

    @property
    def planned_counts(self) -> Counts:
        """The log's cells, as if the plan had been carried out."""
        return self.counts if self.plan is None else self.plan.apply(self.counts)

    @property
    def recoverable(self) -> bool:
        """Whether the identifiability graph is connected (Theorem 1)."""
        return len(self.found) == 1

    @property
    def components(self) -> int:
        """How many components the identifiability graph has."""
        return len(self.found)

    @cached_property
    def merged(self) -> MergedFactors | None:
        """What the plan leaves to debias with; None without one that merges."""
        survey = self.log.survey
        return None if self.plan is None else self.plan.measure_merged(survey.factors, survey.impressions)

    @property
    def caution(self) -> str:
        """What must be said beside that the log is recoverable under the plan; empty where there is nothing."""
        return "" if self.merged is None else self.merged.caution

    @property
    def rung(self) -> Rung:
        """How far the log leads: apart, linked, loose or known."""
        return find_rung(self.recoverable, self.precision, bool(self.caution) or is_doubted(self.plan))

    def reaches(self, bar: Bar) -> bool:
        """Whether the log is linked, estimable or known. A log without clicks is judged by its structure alone."""
        return self.recoverable if self.log.roles.click is None else reaches(self.rung, bar)

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        n = len(self.structure.root)
        if self.recoverable:
            factors = "its one factor is" if n == 1 else f"its {n:,} factors form"
            under = "" if self.effects is None else f" under {self.effects.formula}"
            under += f" under this {self.plan.method} plan" if self.plan is not None else ""
            said = write_sentence(self.rung, f"{factors} one component{under}", self.precision)
            return " ".join((said, *list_trusted(self.plan, self.caution)))
        rest, apart = "", "that no item links"
        if self.ranking is not None:
            ranked, queries = self.ranking.rankable, self.ranking.queries
            rest = f" {ranked:,} of {queries:,} queries ({ranked / queries:.1%}) can still be ranked."
        if self.effects is not None:
            apart = f"that nothing compares under {self.effects.formula}"
        return (
            f"Relevance is not recoverable from this log as a whole: its {n:,} factors fall into "
            f"{self.components:,} components {apart}.{rest}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields of `elute check --json`."""
        survey, ranking, roles = self.log.survey, self.ranking, self.log.roles
        impressions = int(survey.impressions.sum())
        fields: dict[str, Any] = {
            "verdict": self.sentence,
            "rung": self.rung,
            "impressions": impressions,
            "clicks": int(survey.clicks.sum()) if roles.click is not None else None,
            "items": self.structure.items,
            "factors": len(self.structure.root),
            "cells": self.structure.cells,
            "queries": self.structure.queries,
            "recoverable": self.recoverable,
            "components": self.components,
            "component_sizes": [int(size) for size in self.found.factors[: details.SHOWN]],
            "rankable_queries": ranking.rankable if ranking else None,
            "rankable_share": ranking.share if ranking else None,
            "comparable_pairs_share": ranking.comparable_share if ranking else None,
            "impressions_in_largest_share": int(self.found.impressions[0]) / impressions,
            "component_details": [part._asdict() for part in self.component_details],
            "isolated_factors": self.isolated_factors,
            "isolated": [alone._asdict() for alone in self.isolated],
            "warnings": [asdict(concern) for concern in self.warnings],
            "collision_bound": self.structure.collision_bound,
            "rows": survey.rows,
            "rows_filtered": survey.filtered,
            "filters": self.log.filters.to_dict(),
            "columns": {
                "item": list(roles.item),
                "bias": list(roles.bias),
                "query": roles.query,
                "click": roles.click,
                "impressions": roles.impressions,
                "session": roles.session,
            },
        }
        fields |= self._list_known()
        if self.effects is not None:
            fields["columns"]["formula"], fields["effects"] = str(roles.formula), self.effects.to_dict()
        fields |= describe_planned(self.plan, self.merged)
        if self.subsets is not None:
            fields["subsets"] = [
                {**s._asdict(), "bias": list(s.bias), "recoverable": s.recoverable} for s in self.subsets
            ]
        if self.structures is not None:
            fields["structures"] = [one.to_dict() for one in self.structures]
            fields["proposal"] = propose(self.structures)
        if self.curve is not None:
            fields["curve"] = join_stages(self.curve, self.stages, impressions)
        if self.certificate is not None:
            fields["certificate"] = self.certificate.to_dict()
        if self.generic is not None:
            open_factors = list(self.generic.undetermined[: details.SHOWN])
            fields["generic"] = {**self.generic.to_dict(), "undetermined": open_factors}
        if self.bounds is not None:
            fields["bounds"] = self.bounds.to_dict()
        return fields

    def _list_known(self) -> Fields:
        """The fields about what is known, and about ways to know more."""
        found = self.precision
        lost = None if found is None else found.unestimable[found.sample.problem.merged]
        rows = [] if lost is None else to_rows(self.log.survey.factors, np.flatnonzero(lost)[: details.SHOWN])
        return {
            "estimable": None if found is None else found.estimable,
            "unestimable_factors": None if lost is None else int(np.count_nonzero(lost)),
            "unestimable": rows,
            "unclicked_factors": None if found is None else int(found.unclicked[found.sample.problem.merged].sum()),
            "precision": None if found is None else found.to_dict(),
            "missing": None if found is None or self.rung in ("apart", "known") else find_missing(found).to_dict(),
            "suggestions": [
                *([] if self.filter is None else [self.filter._asdict()]),
                *({"option": "item", "value": ",".join(one.item), **one._asdict()} for one in self.coarser),
            ],
        }

    @property
    def look(self) -> Look:
        """How the verdict is shown."""
        return find_look(self.rung, self.log.roles.click is not None)

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        whole = fields["recoverable"]
        ranked = fields["rankable_share"]
        figures = [(format_count(fields[name]), name) for name in _COUNTED if fields[name] is not None]
        figures.append((format_count(fields["components"]), "component" if fields["components"] == 1 else "components"))
        if ranked is not None:
            figures.append((format_share(ranked), "of queries rankable"))
        sizes = [part["impressions"] for part in fields["component_details"]]
        names = [_name_component(number, part) for number, part in enumerate(fields["component_details"], start=1)]
        chart = None if whole else Bars("Impressions by component", names, sizes)
        notes = [*describe_filters(fields), *(warning["message"] for warning in fields["warnings"])]
        known = fields["precision"]
        if known is not None:
            figures.append((format_share(known["impressions_known_share"]), "of impressions with a known propensity"))
            if known["queries_ordered_share"] is not None:
                figures.append((format_share(known["queries_ordered_share"]), "of pairs in queries certain"))
        _, tone, word = find_look(fields["rung"], fields["clicks"] is not None)
        if not whole and ranked == 1:
            word, tone = "Recoverable query by query", "warn"
        if whole and fields.get("caution"):
            tone, word = "warn", "Nearly no debiasing" if fields["debiases"] else "No debiasing"
        return Card(tone, word, fields["verdict"], figures, chart, notes)


_COUNTED = ("impressions", "clicks", "items", "factors", "queries")


def _name_component(number: int, part: Fields) -> str:
    """A component by its number and its first factors."""
    return f"{number}: {list_rows(part['example_factors'], 3)}"


def check(
    log: ClickLog,
    *,
    plan: LinkingPlan | None = None,
    explore: bool = False,
    structures: bool = True,
    curve: bool = False,
    target_log_se: float | None = TARGET,
    seed: int = 0,
    progress: Progress = silent,
) -> Check:
    """Check a log. `plan`: as if this repair plan had been carried out. `explore`: also for every subset of the
    bias columns and, unless `structures` is false, for ways in which they may act together. `curve`: also for samples
    of the log. Both look at the log without the plan. `target_log_se`: the precision at which a propensity is known;
    None: look at the structure only."""
    structure, tries = log.structure(progress), explore and structures and len(log.roles.bias) > 1
    found = find_components(structure.root, log.survey.factors, log.survey.impressions, plan)
    alone, examples = details.find_isolated(log, structure, found)
    seen = look_closer(log, structure, found, plan, target_log_se, progress)
    precision = seen.precision
    verdict = Check(
        log=log,
        structure=structure,
        found=found,
        ranking=seen.ranking,
        component_details=seen.components,
        isolated_factors=alone,
        isolated=examples,
        warnings=health.find_concerns(log, structure),
        plan=plan,
        subsets=explore_subsets(log, progress) if explore else None,
        structures=explore_structures(log, target_log_se, progress) if tries else None,
        curve=sample_curve(log, seed, progress) if curve else None,
        precision=precision,
        effects=describe_effects(link_planned(structure.root, log.survey.factors, plan), log.survey.factors),
        stages=grow(precision, (*SHARES, *FORWARD), seed) if curve and precision is not None else None,
    )
    if target_log_se is None or plan is not None or verdict.rung in ("loose", "known"):
        return verdict
    thin = find_filter(log, found, precision)
    if thin is not None or verdict.recoverable or verdict.ranking is None:
        return replace(verdict, filter=thin)
    return replace(verdict, coarser=tuple(propose_items(log, verdict.ranking.share, progress)))
