"""The users by the names the command line knows, each built from plain settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from elute.errors import EluteError
from elute.options.kinds import Whole
from elute.options.takes import declares
from elute.simulation.grades import PROPENSITIES
from elute.simulation.users.base import User
from elute.simulation.users.browsing import UserBrowsing
from elute.simulation.users.carousel import Carousel
from elute.simulation.users.cascade import CascadeUser
from elute.simulation.users.choice import PlackettLuceChoice
from elute.simulation.users.contextual import ContextualPositionBased, draw_contexts
from elute.simulation.users.dbn import DynamicBayesian
from elute.simulation.users.dependent import DependentClick
from elute.simulation.users.mixture import MixtureDBN
from elute.simulation.users.position import PositionBased
from elute.simulation.users.trust import Trust, trust_bias


@declares(contexts=Whole(1, 10**8))
def _build_contextual(contexts: int = 5_000, seed: int = 0, propensities: ArrayLike = PROPENSITIES) -> User:
    """Contexts drawn from `seed`; 5,000 as on the identifiability paper's semi-synthetic sets."""
    return ContextualPositionBased(*draw_contexts(contexts, np.random.default_rng(seed)), propensities)


def _build_trust(
    propensities: ArrayLike = PROPENSITIES, plus: ArrayLike | None = None, minus: ArrayLike | None = None
) -> User:
    return Trust(*trust_bias(propensities, plus, minus))


USERS: dict[str, Callable[..., User]] = {
    "pbm": PositionBased,
    "cpbm": _build_contextual,
    "cascade": CascadeUser,
    "dcm": DependentClick,
    "ubm": UserBrowsing,
    "dbn": DynamicBayesian,
    "mixture-dbn": MixtureDBN,
    "carousel": Carousel,
    "trust": _build_trust,
    "pl-choice": PlackettLuceChoice,
}


def settings_of(name: str) -> tuple[str, ...]:
    """The settings that a user takes."""
    if name not in USERS:
        raise EluteError(f"no user '{name}'; there are: {', '.join(USERS)}")
    return tuple(inspect.signature(USERS[name]).parameters)


def build_user(name: str, **settings: object) -> User:
    """The user of this name; what `settings` leave out is at its default."""
    known = settings_of(name)
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        takes = f"it takes: {', '.join(known)}" if known else "it takes none"
        raise EluteError(f"the user '{name}' has no setting '{unknown[0]}'; {takes}")
    return USERS[name](**settings)
