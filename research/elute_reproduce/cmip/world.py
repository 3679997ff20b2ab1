"""The simulated worlds of the CMIP paper (section 5.1): users, logging policies, sessions.

The paper's text and its public code differ, so a world is built after either: `TEXT` or `CODE`.

|             | text                                        | code                                         |
| NoisyOracle | noise of variance 0.5                       | noise of standard deviation 0.5              |
| DBN         | attraction R, satisfaction R/2              | attraction max(y/4, .1), satisfaction y/8    |
| MixtureDBN  | the same                                    | attraction with noise, satisfaction without  |
| Carousel    | 25 documents, one of five rows is chosen    | 10 documents, every row read, clicks thinned |

Continuation, row length and row bias are in the code only, and are taken from it for both. numpy and numba alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from elute.ranking.data import RankingData
from elute.simulation.grades import reciprocal_propensities, relevance_of_grades
from elute.simulation.policies.noisy_oracle import NoisyOracle
from elute.simulation.policies.scored import Scored
from elute.simulation.shown import ShownPages
from elute.simulation.users.base import Clicks
from elute.simulation.users.carousel import ROW_BIAS, Carousel
from elute.simulation.users.dbn import DynamicBayesian
from elute.simulation.users.mixture import MixtureDBN
from elute.simulation.users.position import PositionBased

Floats = NDArray[np.float64]
Reading = Literal["text", "code"]
UserName = Literal["PBM", "DBN", "MixtureDBN", "Carousel"]
PolicyName = Literal["NoisyOracle", "LambdaMART", "Uniform"]

READINGS: tuple[Reading, ...] = get_args(Reading)
USERS: tuple[UserName, ...] = get_args(UserName)
POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)
LOGGING: tuple[PolicyName, ...] = ("NoisyOracle", "LambdaMART")
TEMPERATURE = 0.1
"""Of the Plackett–Luce model (section 5.1.3)."""
SHORT, LONG = 10, 25
"""Documents of a query; the longer for the text's Carousel."""
ROW = 5


class Behaviour(Protocol):
    """What a study needs of a user."""

    def draw_clicks(self, shown: ShownPages, rng: np.random.Generator) -> Clicks: ...

    def probabilities(self, shown: ShownPages) -> Floats: ...


class Documents(NamedTuple):
    """Queries cut to the same number of documents, with the scores of the LambdaMART policy; `top`: the best grade."""

    data: RankingData
    lambdamart: Floats
    top: int

    @property
    def width(self) -> int:
        return int(self.data.offsets[1])


@dataclass(frozen=True, eq=False)
class CmipWorld:
    """Documents, what a user makes of each, and how that user reads; `scores` by policy."""

    documents: Documents
    user: Behaviour
    attraction: Floats
    satisfaction: Floats | None
    scores: dict[PolicyName, Floats]
    seed: int

    def policy(self, name: PolicyName, temperature: float = TEMPERATURE) -> Scored:
        """A ranking policy. At temperature 0, equal scores stand in an order that the seed fixes once for a query."""
        return Scored(self.scores[name], temperature=temperature, seed=self.seed)


class SessionLog(NamedTuple):
    """Sessions: their queries, the documents shown (rows of the data) and the clicks; P(click) by place."""

    query: NDArray[np.int64]
    rows: NDArray[np.int32]
    click: Clicks
    chance: Floats


class RowsReadApart:
    """The public code's Carousel: each row is read by a DBN of its own, satisfied by whatever attracts.

    The code multiplies clicks by the row's bias and so has fractions of clicks; here a click is kept with that
    probability, which has the same expected loss and leaves clicks 0 or 1.
    """

    def __init__(self) -> None:
        self._user = DynamicBayesian(0.75)

    def draw_clicks(self, shown: ShownPages, rng: np.random.Generator) -> Clicks:
        clicks = self._user.draw_clicks(_split_rows(shown), rng).reshape(shown.relevance.shape)
        return np.asarray(clicks & (rng.random(clicks.shape) < _row_bias(shown)), np.uint8)

    def probabilities(self, shown: ShownPages) -> Floats:
        return self._user.probabilities(_split_rows(shown)).reshape(shown.relevance.shape) * _row_bias(shown)


def _split_rows(shown: ShownPages) -> ShownPages:
    attraction = shown.relevance.reshape(-1, ROW)
    return ShownPages(attraction, np.full(len(attraction), ROW), attraction)


def _row_bias(shown: ShownPages) -> Floats:
    return np.repeat(ROW_BIAS, ROW)[: shown.width]


def list_length(reading: Reading, user: UserName) -> int:
    """Documents of a query in such a world."""
    return LONG if reading == "text" and user == "Carousel" else SHORT


def build(documents: Documents, reading: Reading, user: UserName, seed: int) -> CmipWorld:
    """A world; the oracle's noise and the code's noise of attraction are drawn from `seed`."""
    grades, top = documents.data.grades, documents.top
    relevance = relevance_of_grades(grades, top)
    attraction, satisfaction = relevance, None
    if reading == "code" and user == "DBN":
        attraction, satisfaction = np.maximum(grades / top, 0.1), grades / (2 * top)
    if reading == "code" and user == "MixtureDBN":
        satisfaction = relevance_of_grades(grades, top, 0.0)
        noise = np.random.default_rng((seed, 1)).standard_normal(len(grades))
        attraction = np.clip(satisfaction + 0.1 * noise, 0.1, 1.0)
    behaviours: dict[UserName, Behaviour] = {
        "PBM": PositionBased(reciprocal_propensities(documents.width)),
        "DBN": DynamicBayesian(0.8),
        "MixtureDBN": MixtureDBN(0.7, 0.7),
        "Carousel": Carousel(ROW, ROW_BIAS, 0.75) if reading == "text" else RowsReadApart(),
    }
    oracle = NoisyOracle(sd=0.5**0.5 if reading == "text" else 0.5, seed=seed)
    scores: dict[PolicyName, Floats] = {
        "NoisyOracle": oracle.scores(documents.data),
        "LambdaMART": documents.lambdamart,
        "Uniform": np.zeros(len(grades)),
    }
    return CmipWorld(documents, behaviours[user], attraction, satisfaction, scores, seed)


def draw(world: CmipWorld, policy: Scored, sessions: int, seed: tuple[int, ...]) -> SessionLog:
    """Sessions with queries drawn uniformly; queries, rankings and clicks have a random stream each."""
    queries, rankings, clicks = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(3))
    data = world.documents.data
    query = queries.integers(data.n_queries, size=sessions)
    rows = policy.sample(data, query, world.documents.width, rankings).rows
    satisfaction = None if world.satisfaction is None else world.satisfaction[rows]
    shown = ShownPages(world.attraction[rows], np.full(sessions, world.documents.width), satisfaction)
    return SessionLog(query, rows, world.user.draw_clicks(shown, clicks), world.user.probabilities(shown))
