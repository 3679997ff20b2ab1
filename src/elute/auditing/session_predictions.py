"""What fits of session click models predict of a log's pages."""

from __future__ import annotations

import numpy as np

from elute.auditing.perplexity import Losses, compute_losses
from elute.auditing.predictions import Predicted
from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.log import ClickLog
from elute.sessions.log import iterate_parts, open_pages, read_pages


def predict_sessions(fit: Fit, log: ClickLog) -> Predicted:
    """Of a session model on a log's pages, from P(click) whatever else is clicked (Eq. 2)."""
    found = fit.click_model()
    if found is None:
        raise EluteError(f"{fit.label} is not a session click model")
    model, vocabulary = found
    total, unseen, shown = Losses(np.zeros(0), np.zeros(0, np.int64)), 0, 0
    with open_pages(log, log.roles.session or fit.provenance.session) as (path, columns):
        for sessions in iterate_parts(read_pages(path, columns, vocabulary)[0]):
            mask = sessions.mask
            p = np.clip(model.predict_clicks(sessions), 0.0, 1.0)
            total = total.add(compute_losses(p, sessions.clicked, mask=mask))
            unseen += int((sessions.doc[mask] == len(vocabulary.documents)).sum())
            shown += int(mask.sum())
    return Predicted(total, unseen / max(shown, 1), 0.0, 0.0)
