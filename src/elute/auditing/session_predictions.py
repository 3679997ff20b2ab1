"""What fits of session click models predict of a log's pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from elute.auditing.perplexity import Losses, compute_losses
from elute.auditing.predictions import Predicted, Queries
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.log import ClickLog
from elute.sessions.log import iterate_parts, open_pages, read_pages

Floats = NDArray[np.float64]


def predict_sessions(fit: Fit, log: ClickLog, queries: Queries) -> Predicted:
    """Of a session model on a log's pages: P(click) whatever else is clicked (Eq. 2), and given the clicks above, whose
    logarithms add up to that of the page."""
    found = fit.click_model()
    if found is None:
        raise EluteError(f"{fit.label} is not a session click model")
    model, vocabulary = found
    none = Losses(np.zeros(0), np.zeros(0, np.int64))
    total, given, unseen, shown = none, none, 0, 0
    by_query = np.zeros(queries.n)
    with open_pages(log, log.roles.session or fit.provenance.session) as (path, columns):
        own, names = read_pages(path, columns)
        code = np.append(queries.find(names.queries), 0)
        for sessions, named in zip(
            iterate_parts(read_pages(path, columns, vocabulary)[0]), iterate_parts(own), strict=True
        ):
            mask = sessions.mask
            p = np.clip(model.predict_clicks(sessions), 0.0, 1.0)
            after = np.clip(model.predict_conditional_clicks(sessions), 0.0, 1.0)
            total = total.add(compute_losses(p, sessions.clicked, mask=mask))
            given = given.add(compute_losses(after, sessions.clicked, mask=mask))
            page = np.where(mask, xlogy(sessions.clicked, after) + xlog1py(1.0 - sessions.clicked, -after), 0.0).sum(1)
            by_query += np.bincount(code[named.query], page, queries.n)
            unseen += int((sessions.doc[mask] == len(vocabulary.documents)).sum())
            shown += int(mask.sum())
    return Predicted(total, given, by_query, unseen / max(shown, 1), 0.0, 0.0)
