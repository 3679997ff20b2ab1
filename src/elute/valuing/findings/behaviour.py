"""What rankings would earn if users behaved as a session click model says: UBM, DBN and others.

A position-based user looks at a place whatever stands above it. One who stops when satisfied, or looks further for
having clicked, does not, and the same ranking earns otherwise. Each model predicts how likely every place of a page is
clicked, exactly; pages are those that a ranking would fill, one for each query, as long as the log's. What was shown is
valued on the log's own pages. The values come without intervals: how far models are apart is what they tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.io.sessions import APART, Vocabulary
from elute.log import ClickLog
from elute.sessions.log import iterate_parts, open_pages, read_pages
from elute.valuing.inputs.exposure import EMPTY, KEPT, Exposure
from elute.valuing.inputs.rankings import Names
from elute.valuing.worth.contrasts import to_number
from elute.valuing.worth.find import Setting

if TYPE_CHECKING:
    from elute.clicks.base.model import ClickModel

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def value_under(fit: Fit, log: ClickLog, setting: Setting, names: Names, queries: Flags) -> dict[str, Any]:
    """An entry of the field `under`: what was shown and each ranking by one session model, over these queries."""
    found = fit.click_model()
    if found is None:
        raise EluteError(f"{fit.label} (model {fit.model}) is no session click model; fit ubm or dbn with `session=`")
    model, vocabulary = found
    shown = _value_shown(model, vocabulary, log, fit, names, queries)
    n = setting.traffic.pages[queries].sum()
    rows = []
    for one in setting.exposures:
        clicks = _value_ranking(model, vocabulary, one, names, queries)
        clicks = np.where(one.ranking.kept, shown, clicks)
        value = clicks[queries].sum() / n
        base = shown[queries].sum() / n
        rows.append({"name": one.ranking.name, "value": to_number(value), "difference": to_number(value - base)})
    return {"model": fit.model, "logged": to_number(float(shown[queries].sum() / n)), "rankings": rows}


def _value_shown(
    model: ClickModel[Any], vocabulary: Vocabulary, log: ClickLog, fit: Fit, names: Names, queries: Flags
) -> Floats:
    """Clicks that the model expects on the log's own pages, by query."""
    at = pc.index_in(vocabulary.queries.cast(pa.string()), value_set=names.queries).fill_null(-1).to_numpy()
    code = np.append(at.astype(np.int64), -1)
    out = np.zeros(len(queries) + 1)
    with open_pages(log, log.roles.session or fit.provenance.session) as (path, columns):
        for part in iterate_parts(read_pages(path, columns, vocabulary)[0]):
            expected = np.where(part.mask, model.predict_clicks(part), 0.0).sum(axis=1)
            out += np.bincount(np.where(code[part.query] < 0, len(queries), code[part.query]), expected, len(out))
    return out[:-1]


def _value_ranking(
    model: ClickModel[Any], vocabulary: Vocabulary, one: Exposure, names: Names, queries: Flags
) -> Floats:
    """By query: a page that the ranking fills, each place as often as the log's pages have it."""
    from elute.clicks.sessions import Sessions

    traffic, width = one.traffic, min(one.traffic.widest, model.ranks)
    chosen = np.flatnonzero(queries & ~one.ranking.kept)
    number = np.full(len(queries), -1)
    number[chosen] = np.arange(len(chosen))
    joined = pc.binary_join_element_wise(names.query, names.doc, APART)
    document = (
        pc.index_in(joined, value_set=vocabulary.documents.cast(pa.string()))
        .fill_null(len(vocabulary.documents))
        .to_numpy()
    )
    doc = np.full((len(chosen), width), len(vocabulary.documents), np.int32)
    often, length = np.zeros((len(chosen), width)), np.zeros(len(chosen), np.int32)
    place = traffic.place[traffic.factor]
    used = (number[one.query] >= 0) & (place < width) & (one.item != EMPTY) & (one.item != KEPT)
    row, column = number[one.query[used]], place[used]
    doc[row, column] = document[one.item[used]]
    np.add.at(often, (row, column), traffic.shown[used])
    np.maximum.at(length, row, column.astype(np.int32) + 1)
    known = (
        pc.index_in(names.queries, value_set=vocabulary.queries.cast(pa.string()))
        .fill_null(len(vocabulary.queries))
        .to_numpy()
    )
    pages = Sessions(known[chosen].astype(np.int32), doc, np.zeros(doc.shape, np.uint8), length)
    out = np.zeros(len(queries))
    out[chosen] = (model.predict_clicks(pages) * often).sum(axis=1)
    return out
