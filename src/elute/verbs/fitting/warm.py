"""A fit that starts from an earlier one."""

from __future__ import annotations

from elute.errors import EluteError
from elute.estimate.models.base import Estimator
from elute.estimate.models.pbm import PBM
from elute.fits.warm import EarlierFit, WarmStart, find_warm_start
from elute.log import ClickLog


def refuse_warm(model: str, warm: EarlierFit | None) -> None:
    """Say which model has a start."""
    if warm is not None and model != "pbm":
        raise EluteError(f"model '{model}' has no `warm=`; pbm has")


def warm_up(estimator: Estimator, warm: EarlierFit | None, log: ClickLog) -> WarmStart | None:
    """Have the model start from an earlier fit, if there is one."""
    if warm is None or not isinstance(estimator, PBM):
        return None
    if estimator.prior is not None or "smooth(" in str(log.roles.formula):
        raise EluteError("a smooth prior has no `warm=`: its strength is chosen anew each time; leave out one of them")
    found = find_warm_start(warm, log.roles, log.survey.factors)
    estimator.start_warm(found.propensity)
    return found
