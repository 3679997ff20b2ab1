"""The one fit: what a model found in a log, in memory or in a folder, and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.files import write_parquet
from elute._util.folders import write_folder
from elute._util.text import format_count, to_one_line
from elute.cells.factors import describe as describe_factor
from elute.cells.factors import to_rows
from elute.cells.roles import Roles
from elute.errors import EluteError
from elute.fits.contents import (
    Contents,
    EstimatorContents,
    FolderContents,
    SessionContents,
    find_error_column,
    summarise,
)
from elute.fits.folder import BOUNDS, FILES, MARK, read_bounds, read_summary, write_summary
from elute.identify.components import LinkingPlan
from elute.log import ClickLog
from elute.results.base import Fields, Result
from elute.results.card import Bars, Card
from elute.results.knowledge import describe_knowledge
from elute.results.provenance import Provenance

if TYPE_CHECKING:
    from elute.clicks.base.model import ClickModel
    from elute.estimate.inference.bootstrap import Bootstrap
    from elute.estimate.models.base import Estimator
    from elute.io.sessions import Vocabulary
    from elute.sessions.fit import SessionFit


Floats = NDArray[np.float64]


class Fit(Result):
    """Propensities of factors and relevance of items, with standard errors.

    `summary`: how the fit went. `provenance`: the log and its columns. `estimator`: the model, where it was fitted in
    this process. `folder`: where it was read from. `name`: what it is called beside others. `bounds`: of the scales of
    components, where they were asked for.
    """

    def __init__(
        self,
        summary: dict[str, Any],
        provenance: Provenance,
        contents: Contents,
        *,
        estimator: Estimator | None = None,
        folder: Path | None = None,
        name: str | None = None,
    ) -> None:
        self.summary, self.provenance, self.estimator, self.folder = summary, provenance, estimator, folder
        self._contents, self._name = contents, name
        self.bounds: pa.Table | None = None

    @classmethod
    def from_estimator(
        cls,
        model: str,
        estimator: Estimator,
        log: ClickLog,
        drawn: Bootstrap | None = None,
        name: str | None = None,
        plan: LinkingPlan | None = None,
    ) -> Fit:
        """A count model that was fitted to a log, under a merge plan; `drawn`: the bootstrap that its errors come
        from."""
        survey = log.survey
        merged = None if plan is None else plan.measure_merged(survey.factors, survey.impressions)
        summary, contents = summarise(model, estimator, merged), EstimatorContents(estimator, survey, drawn)
        return cls(summary, log.provenance(), contents, estimator=estimator, name=name)

    @classmethod
    def from_sessions(cls, fitted: SessionFit, log: ClickLog) -> Fit:
        """A session click model that was fitted to a log's pages."""
        found = log.provenance()
        return cls(fitted.summary, found, SessionContents(fitted, found.item))

    @classmethod
    def load(cls, path: str | Path) -> Fit:
        """A fit from the folder that `save` wrote. Tables are read when they are asked for."""
        folder = Path(path)
        summary, found = read_summary(folder)
        fit = cls(summary, found, FolderContents(folder, summary, found), folder=folder)
        if "bounds" in summary:
            fit.bounds = read_bounds(folder, found.bias)
        return fit

    def save(self, path: str | Path) -> None:
        """Write the fit to a folder; `fit.json` comes last, so that a folder with it is complete."""
        with write_folder(path, MARK, FILES) as folder:
            self._contents.write(folder)
            if self.bounds is not None:
                write_parquet(folder / BOUNDS, self.bounds)
            write_summary(folder, self.summary, self.provenance)

    def to_dict(self) -> dict[str, Any]:
        """The fields of `elute fit --json`."""
        return dict(self.summary)

    @property
    def bootstrap(self) -> Bootstrap | None:
        """The bootstrap that error bars come from, where one was drawn in this process."""
        return self._contents.drawn if isinstance(self._contents, EstimatorContents) else None

    @property
    def model(self) -> str:
        """The model's name, as `elute.fit` takes it."""
        return str(self.summary["model"])

    @property
    def name(self) -> str:
        """What the fit is called beside others: the name it was given, else its folder's or the model's."""
        if self._name is not None:
            return self._name
        return self.model if self.folder is None else self.folder.resolve().name

    @property
    def label(self) -> str:
        """How messages name the fit."""
        return f"the fit of {self.model}" if self.folder is None else f"'{self.folder}'"

    @property
    def converged(self) -> bool:
        return self.summary.get("converged") is not False

    @property
    def reason(self) -> str:
        """Why the fit is not to be trusted, in words; empty where nothing speaks against it."""
        return "" if self.converged else str(self.summary.get("reason") or "did not converge")

    @property
    def propensities(self) -> pa.Table | None:
        """The bias columns, `component, propensity, log_se`, what the model adds, and `impressions, clicks`; None for a
        session click model."""
        return self._contents.propensities

    @property
    def effects(self) -> pa.Table | None:
        """Under a formula for bias: `term`, the bias columns, `effect` (the log of what a level multiplies propensities
        by, relative to the term's reference), `log_se` (of independent clicks), `reference, determined`."""
        return self._contents.effects

    @property
    def propensity_errors(self) -> Floats:
        """Standard errors of log propensities, by factor, with what clusters add where that was measured; where there
        are propensities."""
        table = self.propensities
        if table is None:
            raise EluteError(f"{self.label} has no propensities; fit with pbm")
        return np.asarray(table[find_error_column(table)].to_numpy(), np.float64)

    @property
    def click_rates(self) -> Floats:
        """Clicks over impressions by factor, before any debiasing; where there are propensities."""
        table = self.propensities
        if table is None or "clicks" not in table.column_names:
            raise EluteError(f"{self.label} has no click rates by factor; fit again with pbm")
        return np.asarray(table["clicks"].to_numpy() / table["impressions"].to_numpy())

    @cached_property
    def relevance(self) -> pa.Table:
        """The item columns, `component, relevance, log_se, impressions, clicks`."""
        return pa.concat_tables(self._contents.iterate_relevance())

    def relevance_parts(self) -> Iterator[pa.Table]:
        """`relevance`, in as many tables as it takes to keep to memory."""
        return self._contents.iterate_relevance()

    def click_model(self) -> tuple[ClickModel[Any], Vocabulary] | None:
        """A session click model and how it numbers queries and documents; None for a count model."""
        return self._contents.click_model()

    def require_columns(self, roles: Roles) -> None:
        """Refuse a log that is read with other columns than the fit was made with."""
        for option, mine, ours in (
            ("item", self.provenance.item, roles.item),
            ("bias", self.provenance.bias, roles.bias),
        ):
            if sorted(mine) != sorted(ours):
                theirs = ",".join(mine)
                raise EluteError(
                    f"{self.label} was fitted with `{option}='{theirs}'`, but the log is read with {','.join(ours)}; "
                    f"pass `{option}='{theirs}'`",
                    code="other_columns",
                )

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        n, model = int(fields["iterations"]), fields["model"]
        parts = int(fields.get("components", 1))
        ended = "converged" if fields["converged"] else "did NOT converge"
        sentence = f"{model} {ended} after {format_count(n)} iteration{'' if n == 1 else 's'}"
        if fields.get("reason"):
            sentence += f": {to_one_line(fields['reason'], 400)}"
        baseline, caution = fields.get("baseline"), fields.get("caution")
        if parts > 1 and not baseline:
            sentence += f"; {format_count(parts)} components, each at its own scale: do not compare across them"
        sentence += f"; {caution}." if baseline else f". {caution}" if caution else "."
        knowledge = "" if baseline else describe_knowledge(fields)
        sentence += f" {knowledge}" if knowledge else ""
        good = fields["converged"] and (parts == 1 or baseline)
        figures = []
        if fields.get("log_likelihood") is not None:
            figures.append((f"{fields['log_likelihood']:,.1f}", "log-likelihood"))
        figures += [
            (format_count(int(fields[name])), name) for name in ("sessions", "ranks") if fields.get(name) is not None
        ]
        figures.append((f"{fields['seconds']:.2f} s", "to fit"))
        if not good:
            return Card("bad", "Check the fit", sentence, figures)
        if baseline:
            return Card("calm", "Baseline", sentence, figures)
        if caution:
            word = "Nearly no debiasing" if fields["debiases"] else "No debiasing"
            return Card("warn", word, sentence, figures)
        if fields.get("score", {}).get("verdict") == "contradicted":
            return Card("bad", "Contradicted", sentence, figures)
        if fields.get("rung", "known") != "known":
            return Card("warn", "Fitted, not precisely known", sentence, figures)
        return Card("good", "Fitted", sentence, figures)

    def card(self) -> Card:
        """The summary, with the propensities drawn where there are any."""
        card, table = self.describe(self.summary), self.propensities
        if table is None:
            return card
        value, error = table["propensity"].to_numpy().astype(np.float64), self.propensity_errors.copy()
        names = [describe_factor(row) for row in to_rows(table.select(self.provenance.bias), range(table.num_rows))]
        error[error == 0] = math.nan  # the reference has none
        low, high = (value * np.exp(2 * sign * error) for sign in (-1, 1))
        chart = Bars("Propensity, ± 2 standard errors", names, value.tolist(), low.tolist(), high.tolist())
        figures = [(format_count(table.num_rows), "factors"), *card.figures]
        return Card(card.tone, card.word, card.sentence, figures, chart)
