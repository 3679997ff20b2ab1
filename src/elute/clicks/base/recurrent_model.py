"""What models with a recurrent network share."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from elute.clicks.base.model import ClickModel, Floats
from elute.clicks.sessions import Sessions
from elute.clicks.structure.recurrent import RecurrentStructure

R = TypeVar("R", bound=RecurrentStructure)


class RecurrentModel(ClickModel[R]):
    """Trained by gradients. `samples`: patterns a marginal probability is made of (see `RecurrentStructure`)."""

    def predict_clicks(self, sessions: Sessions) -> Floats:
        """Once for every page that differs: logs show few rankings many times, and many patterns are gone through."""
        shown = np.where(sessions.mask, sessions.doc, -1)
        keys = np.column_stack((sessions.query, sessions.length, shown))
        _, first, again = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        return np.asarray(super().predict_clicks(sessions.take(first))[again])
