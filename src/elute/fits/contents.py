"""Where a fit's tables come from: a model fitted in this process, or a folder."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from elute._util.files import write_parquet, write_row_groups
from elute.cells.survey import Survey
from elute.errors import EluteError
from elute.estimate.inference.bootstrap import Bootstrap
from elute.estimate.models.base import Estimator
from elute.estimate.models.pbm import PBM
from elute.estimate.models.score_adjusted import ScoreAdjusted
from elute.fits.debiasing import describe_debiasing
from elute.fits.folder import EFFECTS, PROPENSITIES, RELEVANCE, read_effects, read_propensities, read_relevance
from elute.identify.merged import MergedFactors
from elute.results.provenance import Provenance

if TYPE_CHECKING:
    from elute.clicks.base.model import ClickModel
    from elute.io.sessions import Vocabulary
    from elute.sessions.fit import SessionFit


class Contents(Protocol):
    """The tables of a fit."""

    @property
    def propensities(self) -> pa.Table | None:
        """By factor; None for a session click model."""

    @property
    def effects(self) -> pa.Table | None:
        """Of a formula for bias; None without one."""

    def iterate_relevance(self) -> Iterator[pa.Table]:
        """By item, in as many tables as it takes to keep to memory."""

    def click_model(self) -> tuple[ClickModel[Any], Vocabulary] | None:
        """The session click model, and how it numbers queries and documents."""

    def write(self, folder: Path) -> None:
        """All files but the summary."""


_REPEATED = ("component", "impressions", "clicks")
"""What relevance tables have of which many items have the same."""


class EstimatorContents:
    """A count model, fitted here to a log of this survey. A bootstrap adds the ends of its intervals, `low` and
    `high`."""

    def __init__(self, estimator: Estimator, survey: Survey, drawn: Bootstrap | None = None) -> None:
        self.estimator, self.drawn, self._survey = estimator, drawn, survey

    @cached_property
    def propensities(self) -> pa.Table | None:
        table = self.estimator.propensities_
        if self.drawn is not None:
            for name, values in (("low", self.drawn.propensity_low), ("high", self.drawn.propensity_high)):
                table = table.append_column(name, pa.array(values))
        shown = table.append_column("impressions", pa.array(self._survey.impressions))
        return shown.append_column("clicks", pa.array(self._survey.clicks))

    @cached_property
    def effects(self) -> pa.Table | None:
        return self.estimator.effects_ if isinstance(self.estimator, PBM) else None

    def iterate_relevance(self) -> Iterator[pa.Table]:
        return self.estimator.relevance_parts()

    def click_model(self) -> None:
        return None

    def write(self, folder: Path) -> None:
        write_parquet(folder / PROPENSITIES, self.propensities)
        (folder / EFFECTS).unlink(missing_ok=True)
        if self.effects is not None:
            write_parquet(folder / EFFECTS, self.effects)
        write_row_groups(folder / RELEVANCE, self.iterate_relevance(), _REPEATED)


class SessionContents:
    """A session click model, fitted here."""

    propensities = None
    effects = None

    def __init__(self, fitted: SessionFit, item: list[str]) -> None:
        self.fitted, self._item = fitted, item

    def iterate_relevance(self) -> Iterator[pa.Table]:
        from elute.sessions.folder import relevance_table

        yield relevance_table(self.fitted, self._item)

    def click_model(self) -> tuple[ClickModel[Any], Vocabulary]:
        return self.fitted.model, self.fitted.vocabulary

    def write(self, folder: Path) -> None:
        from elute.sessions.folder import write_model

        write_row_groups(folder / RELEVANCE, self.iterate_relevance(), _REPEATED)
        write_model(folder, self.fitted, self._item[0])


class FolderContents:
    """A fit that was saved. Tables are read when they are asked for."""

    def __init__(self, folder: Path, summary: dict[str, Any], provenance: Provenance) -> None:
        self.folder, self._summary, self._from = folder, summary, provenance

    @cached_property
    def propensities(self) -> pa.Table | None:
        if not (self.folder / PROPENSITIES).exists() and self._is_of_sessions:
            return None
        return read_propensities(self.folder, self._from.bias, self._components)

    @cached_property
    def effects(self) -> pa.Table | None:
        return None if self._from.formula is None else read_effects(self.folder, self._from.bias)

    @cached_property
    def _relevance(self) -> pa.Table:
        return read_relevance(self.folder, self._from.item, self._components)

    @property
    def _components(self) -> int:
        """A session click model has one."""
        return int(self._summary.get("components", 1))

    def iterate_relevance(self) -> Iterator[pa.Table]:
        yield self._relevance

    @property
    def _is_of_sessions(self) -> bool:
        from elute.sessions.folder import MODEL

        return (self.folder / MODEL).exists()

    def click_model(self) -> tuple[ClickModel[Any], Vocabulary] | None:
        if not self._is_of_sessions:
            return None
        from elute.sessions.folder import read_model

        items = tuple(self._relevance[name].combine_chunks() for name in self._from.item)
        return read_model(self.folder, self._summary, items)

    def write(self, folder: Path) -> None:
        raise EluteError(f"this fit is already saved in {self.folder}; copy that folder")


def find_error_column(table: pa.Table) -> str:
    """Of a table of propensities: with what clusters add, where that was measured."""
    return "log_se_clusters" if "log_se_clusters" in table.column_names else "log_se"


def summarise(name: str, fit: Estimator, merged: MergedFactors | None = None) -> dict[str, Any]:
    """The fields of `elute fit --json`; a likelihood of 0, whose log JSON cannot write, is null. `merged`: the factors
    under the plan."""
    priors = {"prior": fit.prior_} if isinstance(fit, PBM) else {}
    scored = {"score": fit.summarise_score()} if isinstance(fit, ScoreAdjusted) else {}
    return {
        "model": name,
        "iterations": fit.iterations_,
        "converged": fit.converged_,
        "reason": fit.reason_ or None,
        "log_likelihood": fit.log_likelihood_ if math.isfinite(fit.log_likelihood_) else None,
        "components": int(fit.component_.max()) + 1,
        "seconds": fit.seconds_,
        "posterior": dict(zip(("shape", "rate"), fit.alone_, strict=True)) if fit.has_posteriors else None,
        **priors,
        **scored,
        **describe_debiasing(fit, merged),
    }
