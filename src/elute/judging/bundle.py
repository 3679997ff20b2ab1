"""Click data for a ranker of trees: features, groups, and either weights from a fit or positions.

The folder holds two sets of rows, `weighted` for the propensities of the fit and `positions` for the library's own way
of debiasing, and `bundle.json`, which is written last: a folder with it is complete.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.files import write_text
from elute._util.folders import write_folder
from elute.cells.factors import is_position, to_rows
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.io.features import Features
from elute.judging import groups, lightgbm, xgboost
from elute.log import ClickLog
from elute.training.pages import PageColumns, read_pages
from elute.training.task import SESSION
from elute.training.weights import weigh_by_table

SUMMARY = "bundle.json"

FILES = {"lightgbm": lightgbm.FILES, "xgboost": xgboost.FILES}


class Places(NamedTuple):
    """Where a factor's results stand, by factor."""

    column: str
    """The bias column that orders a page."""
    position: NDArray[np.int64]


def write(form: str, folder: Path, fit: Fit, log: ClickLog, source: object, features: Features) -> dict[str, Any]:
    """Write the folder; returns what the summary says of it. `source` is what the log was read from."""
    weight = _compute_weights(fit, log)
    places = _find_places(log)
    if form == "xgboost":
        xgboost.refuse_names(features)
    found = groups.select_usable(read_pages(source, _choose_columns(log, places.column), features, log.survey.factors))
    if not len(found.pages.documents):
        raise EluteError(f"{log.engine.label} has no page with a click and a second document: nothing to compare")
    with write_folder(folder, SUMMARY, (name for names in FILES.values() for name in names)) as new:
        return _write_files(form, new, fit, log, features, found, places, weight)


def _write_files(
    form: str,
    folder: Path,
    fit: Fit,
    log: ClickLog,
    features: Features,
    found: groups.Usable,
    places: Places,
    weight: NDArray[np.float64],
) -> dict[str, Any]:
    pages = found.pages
    left = {"pages_without_click": found.without_click, "pages_of_one_document": found.of_one}
    codes = None
    if form == "lightgbm":
        position, codes = _encode_factors(log, places)
        weighted = lightgbm.write_weighted(folder, groups.group_by_click(pages, weight), features)
        own = lightgbm.write_positions(folder, groups.group_by_page(pages), features, position)
    else:
        whole = groups.find_gapless(pages, places.position)
        left["pages_with_gaps"] = int((~whole).sum())
        weighted = xgboost.write_weighted(folder, groups.group_by_click(pages, weight), features)
        own = (0, 0)
        if whole.any():
            own = xgboost.write_positions(folder, groups.group_by_page(groups.take_pages(pages, whole)), features)
    largest = float(weight[pages.factor[pages.clicks > 0]].max())
    fields = {
        "files": [name for name in FILES[form] if (folder / name).exists()] + [SUMMARY],
        "pages": len(pages.documents),
        "clicks": weighted[0],
        "weighted": {"groups": weighted[0], "rows": weighted[1], "largest_weight": largest},
        "positions": {"groups": own[0], "rows": own[1]},
        "left_out": {reason: n for reason, n in left.items() if n},
        "features": list(features.names),
        "position_codes": codes,
    }
    write_text(folder / SUMMARY, json.dumps({"format": form, "model": fit.model, **fields}, indent=1) + "\n")
    return fields


def _compute_weights(fit: Fit, log: ClickLog) -> NDArray[np.float64]:
    """1/propensity by factor of the log, the largest propensity being 1."""
    if log.roles.click is None or log.roles.impressions is not None:
        why = "has no clicks" if log.roles.click is None else "has counts in its rows"
        raise EluteError(f"{log.engine.label} {why}; rankers learn from impressions, clicked or not")
    if fit.propensities is None:
        raise EluteError(f"{fit.label} (model {fit.model}) has no propensities to weigh clicks by; fit with pbm")
    if "offset" in fit.propensities.column_names:
        raise EluteError(
            f"{fit.label} (model {fit.model}) has offsets, that is clicks that do not come from relevance, which "
            "no weight can undo; fit with pbm"
        )
    parts = len(fit.propensities["component"].unique())
    if parts > 1:
        raise EluteError(
            f"{fit.label} has {parts:,} components, each at its own scale: weights cannot be compared across them; "
            "repair the log with `elute.merge` and fit again with `plan=`"
        )
    return weigh_by_table(log, fit.propensities).weight


def _choose_columns(log: ClickLog, position: str) -> PageColumns:
    session = log.roles.session or SESSION
    if session not in log.engine.columns:
        raise EluteError(
            f"{log.engine.label} has no column '{session}'; name the column with the ids of result pages: `session=`"
        )
    return PageColumns(replace(log.roles, session=session), position, None, False, log.filters)


def _find_places(log: ClickLog) -> Places:
    factors, bias = log.survey.factors, log.roles.bias
    found = [column for column in bias if is_position(factors, column)] if len(bias) > 1 else list(bias)
    if len(found) != 1:
        raise EluteError(
            f"it is not clear which of {', '.join(bias)} orders a page; name that column 'position', and fit again"
        )
    try:
        position = factors[found[0]].cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise EluteError(f"{log.engine.label}: positions in '{found[0]}' are not numbers; write numbers") from None
    return Places(found[0], position.astype(np.int64))


def _encode_factors(log: ClickLog, places: Places) -> tuple[NDArray[np.int64], list[dict[str, Any]] | None]:
    """What LightGBM is told for each factor: its position or, where there are more bias columns, its number; and what
    the numbers stand for."""
    if len(log.roles.bias) == 1:
        return places.position, None
    n = log.survey.factors.num_rows
    return np.arange(n), to_rows(log.survey.factors, range(n))
