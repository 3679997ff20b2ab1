"""`elute.judge`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from elute._util.text import format_count
from elute.cells.roles import DEFAULT_CLICK, DEFAULT_DOC, DEFAULT_QUERY
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.judging.export import Wanted, export, write_judgments
from elute.judging.judgments import Judgments
from elute.log import LogSource
from elute.results.base import Fields, Recorded
from elute.results.card import Bars, Card
from elute.verbs.source import as_paths


class Judged(Recorded):
    """Judgments, or click data to train a ranker on, and what was left out. Fields are attributes."""

    def __init__(
        self, fields: dict[str, Any], judgments: Judgments | None = None, wanted: Wanted | None = None
    ) -> None:
        super().__init__(fields)
        self._judgments, self._wanted = judgments, wanted or Wanted()

    @property
    def table(self) -> pa.Table:
        """The query and document columns and `grade`, one row a judgment."""
        made = self._made()
        return pa.table({self._wanted.query: made.query, self._wanted.doc: made.doc, "grade": made.grade})

    def export(self, path: str | Path, format: str | None = None) -> list[str]:
        """Write the judgments in a format, by default the one they were asked for; gives what its reader should
        know."""
        return write_judgments(format or str(self.format), Path(path), self._made(), self._wanted)

    def _made(self) -> Judgments:
        if self._judgments is None:
            raise EluteError("there are no judgments in memory: judge the fit anew, in a format that has grades")
        return self._judgments

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        to = "" if fields["out"] is None else f", written to {fields['out']}"
        if "judgments" not in fields:
            clicks, pages = format_count(fields["clicks"]), format_count(fields["pages"])
            sentence = f"{clicks} clicks on {pages} pages for {fields['format']}{to}."
            return Card("calm", "Click data", sentence, notes=fields["warnings"])
        sentence = f"{format_count(fields['judgments'])} judgments of {format_count(fields['queries'])} queries{to}."
        names, sizes = [f"grade {grade}" for grade in fields["grades"]], list(fields["grades"].values())
        lost = [f"left out, {reason}: {format_count(n['judgments'])}" for reason, n in fields["left_out"].items()]
        chart = Bars("Judgments by grade", names, sizes)
        return Card("calm", "Judgments", sentence, (), chart, [*fields["warnings"], f"Rule: {fields['rule']}.", *lost])


def judge(
    fit: Fit | str | Path,
    format: str = "quepid",
    out: str | Path | None = None,
    *,
    grades: str | None = None,
    levels: int | None = None,
    min_precision: float | None = None,
    features: str | Path | Sequence[str | Path] | None = None,
    log: LogSource | None = None,
    query: str = DEFAULT_QUERY,
    doc: str = DEFAULT_DOC,
    click: str = DEFAULT_CLICK,
    session: str | None = None,
    where: str | None = None,
    max_position: int | None = None,
    min_factor_impressions: int | None = None,
) -> Judged:
    """Judgments with grades, or click data to train a ranker on, in the format of whoever uses it.

    `fit`: of `elute.fit`, or its folder. `format`: quepid, opensearch, ranklib, trec; lightgbm and xgboost make a
    folder to train on from clicks and need `log`, `features` and `out`. Without `out` the judgments are in `table`, to
    be written by `export`. `grades`: quantiles, or thresholds such as "0.1,0.3,0.6"; `levels`: grades that quantiles
    make. `min_precision`: leave out items whose relevance has a standard error above 1/`min_precision`. `log` is also
    read where items are not a query and a document; `where`, `max_position` and `min_factor_impressions` as for
    `elute.read_log`.
    """
    graded, filters = (grades, levels, min_precision), (where, max_position, min_factor_impressions)
    wanted = Wanted(query, doc, click, session, log, as_paths(features), *graded, *filters)
    fields, made = export(fit if isinstance(fit, Fit) else Fit.load(fit), format, out, wanted)
    return Judged(fields, made, wanted)
