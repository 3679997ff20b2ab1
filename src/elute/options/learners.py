"""The learners of `elute.train` and their settings, each with what it may be: what learners declare, the library
checks and the command line reads. Here and not with the learners, which need JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elute._util.text import to_one_line
from elute.errors import EluteError
from elute.options.kinds import PROBABILITY, Flag, Kind, Number, OneOf, Whole
from elute.options.takes import take_setting

_ADJUSTMENT: dict[str, Kind] = {
    "average": OneOf(words=("logit", "exponential", "probability")),
    "target": OneOf(words=("logit", "probability", "ratio", "clicks")),
    "over": OneOf(words=("batch", "log")),
    "frozen": Flag(),
}

SETTINGS: dict[str, dict[str, Kind]] = {
    "elute": {},
    "score-adjusted": {},
    "naive": {},
    "ipw": {},
    "ipw-random": {},
    "dla": {},
    "rem": {"rate": PROBABILITY, "start": PROBABILITY},
    "pairwise-debias": {"rate": PROBABILITY, "regularisation": Number(0)},
    "vectorization": {"dimensions": Whole(1, 10**6), "rate": PROBABILITY},
    "multr": {"pretraining": Whole(0, 10**9), "orders": Whole(1, 10**4)},
    "grad-reversal": {"drop": PROBABILITY, "reversal": Number(0)},
    "observation-dropout": {"drop": PROBABILITY},
    "upe": _ADJUSTMENT,
    "upe-mrr": _ADJUSTMENT,
    "upe-dcg": _ADJUSTMENT,
    "upe-n": _ADJUSTMENT,
}
"""By learner and by name."""


def take_settings(learner: str, given: Mapping[str, object] | None) -> dict[str, Any]:
    """Settings of a learner, checked; none where none are given."""
    if learner not in SETTINGS:
        raise EluteError(f"no learner '{to_one_line(learner, 60)}'; there are: {', '.join(SETTINGS)}")
    if given is not None and not isinstance(given, Mapping):
        raise EluteError(f"`learner_settings=` is {to_one_line(repr(given), 60)}; give values by name, as in a dict")
    known = SETTINGS[learner]
    for name in given or {}:
        if name not in known:
            takes = f"it takes: {', '.join(known)}" if known else "it takes none"
            raise EluteError(f"the learner '{learner}' has no setting '{to_one_line(str(name), 60)}'; {takes}")
    return {name: take_setting(name, known[name], value) for name, value in (given or {}).items()}
