"""What CMIP of a fit has beyond noise: its log is found again, clicks are redrawn, and its model is fitted to them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from elute._util.matching import id_columns
from elute.auditing.cmip.calibrated import Excess, JudgedCells, Power, calibrate
from elute.auditing.judged import JudgedItems
from elute.auditing.predictions import Subject
from elute.auditing.redrawn.refits import open_fitted, prepare_refit
from elute.cells.counts import Cells
from elute.fits.fit import Fit
from elute.log import ClickLog
from elute.progress import Progress


class Calibrated(NamedTuple):
    """`missing`: why there is nothing, in words."""

    excess: Excess | None
    power: Power | None
    missing: str = ""


def recalibrate(
    number: int, subject: Subject, log: ClickLog, judged: JudgedItems, seed: int, progress: Progress
) -> Calibrated:
    """Of the fit with this number. Items that its log no longer has do not count."""
    with open_fitted(subject, log, progress) as fitted:
        if fitted is None:
            gone = f"the log it was fitted to, {subject.fit.provenance.log}, cannot be read again to redraw its clicks"
            return Calibrated(None, None, gone)
        if subject.fit.propensities is None:
            return _redraw_pages(number, subject.fit, fitted, judged, seed, progress)
        counts = fitted.counts(progress)
    refit = prepare_refit(subject.fit, counts)
    own = judged.find_scored(number, id_columns(counts.items, counts.items.column_names))
    cells = Cells(counts.offsets, counts.factor, counts.impressions, counts.clicks)
    redrawn = JudgedCells(cells, refit.law, refit.again, own.at, own.grade, own.query, own.policy)
    return Calibrated(*calibrate(redrawn, own.relevance, seed, progress))


def _redraw_pages(
    number: int, fit: Fit, log: ClickLog, judged: JudgedItems, seed: int, progress: Progress
) -> Calibrated:
    from elute.auditing.cmip.pages import JudgedPages, choose_pages
    from elute.clicks.exact.redrawn import Redrawable
    from elute.clicks.sessions import Sessions
    from elute.sessions.log import open_pages, read_pages

    found = fit.click_model()
    if found is None or not isinstance(found[0], Redrawable):
        slow = f"a hundred more fits would tell what noise makes of it, and {fit.model} is too slow to fit for that"
        return Calibrated(None, None, slow)
    model, vocabulary = found
    with open_pages(log, log.roles.session or fit.provenance.session) as (path, columns):
        pages = read_pages(path, columns, vocabulary)[0]
        if not isinstance(pages, Sessions):
            return Calibrated(None, None, "its log is too long for its pages to be redrawn")
    own = judged.find_scored(number, id_columns(fit.relevance, log.roles.item))
    pages, shown = choose_pages(pages, own.at.astype(np.int64), seed)
    own = own.take(shown)
    redrawn = JudgedPages(pages, model, own.at, own.grade, own.query, own.policy)
    return Calibrated(*calibrate(redrawn, own.relevance, seed, progress))
