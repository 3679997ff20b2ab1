"""Simulated users: click models as generators, each with its exact likelihood."""

from elute.simulate.users.base import Clicks, User
from elute.simulate.users.browsing import UserBrowsing, browsing_table
from elute.simulate.users.carousel import Carousel
from elute.simulate.users.cascade import Cascade
from elute.simulate.users.choice import PlackettLuceChoice
from elute.simulate.users.contextual import Contexts, ContextualPositionBased, draw_contexts
from elute.simulate.users.dbn import DynamicBayesian
from elute.simulate.users.dependent import DependentClick
from elute.simulate.users.mixture import MixtureDBN
from elute.simulate.users.position import PositionBased
from elute.simulate.users.registry import USERS, build_user, settings_of
from elute.simulate.users.trust import Trust, trust_bias

__all__ = [
    "USERS",
    "Carousel",
    "Cascade",
    "Clicks",
    "Contexts",
    "ContextualPositionBased",
    "DependentClick",
    "DynamicBayesian",
    "MixtureDBN",
    "PlackettLuceChoice",
    "PositionBased",
    "Trust",
    "User",
    "UserBrowsing",
    "browsing_table",
    "build_user",
    "draw_contexts",
    "settings_of",
    "trust_bias",
]
