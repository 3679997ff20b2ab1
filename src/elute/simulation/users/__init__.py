"""Simulated users: click models as generators, each with its exact likelihood."""

from elute.simulation.users.base import Clicks, User
from elute.simulation.users.browsing import UserBrowsing, browsing_table
from elute.simulation.users.carousel import Carousel
from elute.simulation.users.cascade import CascadeUser
from elute.simulation.users.choice import PlackettLuceChoice
from elute.simulation.users.contextual import Contexts, ContextualPositionBased, draw_contexts
from elute.simulation.users.dbn import DynamicBayesian
from elute.simulation.users.dependent import DependentClick
from elute.simulation.users.mixture import MixtureDBN
from elute.simulation.users.position import PositionBased
from elute.simulation.users.registry import USERS, build_user, settings_of
from elute.simulation.users.trust import Trust, trust_bias

__all__ = [
    "USERS",
    "Carousel",
    "CascadeUser",
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
