"""What a merge plan says of its consequence, as its file holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.text import format_share, to_one_line
from elute.cells.factors import describe

DELTAS = (1.1, 1.25, 1.5, 2.0)
"""By how much the two factors of a pair may differ in how often they are seen."""

STANDARD = 1.25
"""The one that sentences speak of, and by which trees are compared."""

CURVE = tuple(round(1 + 0.05 * step, 2) for step in range(21))


@dataclass(frozen=True)
class Distortion:
    """What follows where the factors of a pair differ by up to `delta`."""

    delta: float
    largest: float | None
    """By how much a ratio of two relevances may be off; None where no number of this kind is as large."""
    queries_safe_share: float | None
    """Of all queries those that keep their order; None where there is no relevance to order them by."""


def find_standard(rows: Iterable[Distortion]) -> Distortion:
    """What follows at the standard δ."""
    return next(row for row in rows if row.delta == STANDARD)


@dataclass(frozen=True)
class KnownDistortion:
    """Estimated over true relevance, by given propensities."""

    smallest: float
    largest: float
    ratio: float
    """The largest over the smallest: by how much a ratio of two relevances is off at most."""
    scale: dict[str, Any]
    """A factor of the component in which estimated over true relevance is set to 1."""

    @property
    def sentence(self) -> str:
        """In words."""
        if self.ratio == 1.0:
            return (
                "The given propensities are equal within every pair, as those of a fit under a merge plan are by "
                "construction: by them, merging distorts nothing."
            )
        where = to_one_line(describe(self.scale), 60)
        return (
            f"By the given propensities, estimated over true relevance runs from {self.smallest:.3g} to "
            f"{self.largest:.3g} where relevance of the component of {where} is exact: ratios of relevances are off by "
            f"up to {self.ratio:.3g}."
        )


@dataclass(frozen=True)
class Alternative:
    """A tree of pairs, and what it does. Here factors `unit` apart differ by δ and others in proportion to their
    distance, so that trees of near and of far pairs are compared in the same world."""

    name: str
    chosen: bool
    exact: bool
    """Whether no other tree has less of what it is named for."""
    cost: float
    longest_path: float
    longest_distance: float
    unit: float | None
    """None: all distances are 0, and each pair differs by δ."""
    distortion: tuple[Distortion, ...]
    gap: float | None = None
    """Where it is not exact under a formula: by which share of itself the longest distance may be too long, at most."""

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """As a file has it."""
        return cls(**{**fields, "distortion": tuple(Distortion(**row) for row in fields["distortion"])})


@dataclass(frozen=True)
class Consequence:
    """What merging does to relevance."""

    longest_path: float
    """In pairs: how often their differences enter the ratio of two relevances, at most."""
    longest_distance: float
    """In bias features: the largest sum of costs along a path."""
    queries_across: int | None
    """Queries with items in several components, which merging may reorder; None where the log has no queries."""
    distortion: tuple[Distortion, ...]
    """Where the factors of every pair differ by up to δ."""
    queries_safe_curve: tuple[dict[str, float], ...] | None
    """The share of queries that keep their order, over δ."""
    distortion_known: KnownDistortion | None
    alternatives: tuple[Alternative, ...]
    """The least harmful first."""

    @property
    def safe_share(self) -> float | None:
        """Of queries that keep their order at the standard δ."""
        return find_standard(self.distortion).queries_safe_share

    @property
    def sentence(self) -> str:
        """In words."""
        at = find_standard(self.distortion)
        power = [f"{at.delta:g}^{self.longest_path:g}"] if self.longest_path > 1 else []
        figure = [] if at.largest is None else [f"{at.largest:.3g}"]
        off = f"ratios of relevances are off by up to {' = '.join(power + figure)}"
        if self.queries_across == 0:
            kept = ", and all queries keep their order: each has its items in one component"
        elif at.queries_safe_share is not None:
            kept = f", and {format_share(at.queries_safe_share)} of the queries keep their order"
        else:
            kept = ""
        return (
            f"If the two factors of each merged pair differ by a factor of {at.delta:g} in how often they are seen, "
            f"{off}{kept}."
        )

    @property
    def comparison(self) -> str:
        """What figures of the alternatives speak of."""
        unit = self.alternatives[0].unit
        far = "Factors of a pair" if unit is None else f"Factors {unit:.4g} apart in bias features"
        rest = "" if unit is None else ", others in proportion to their distance"
        other = next(one for one in self.alternatives if not one.chosen)
        option = "distortion" if other.name == "least distortion" else "cost"
        return (
            f"Another tree of pairs joins the components too (--prefer {option}). {far} are taken to differ by a "
            f"factor of {STANDARD:g}{rest}:"
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields of a plan's file."""
        return asdict(self)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self | None:
        """From a plan's file; None where it does not say."""
        if "longest_path" not in fields:
            return None
        known, curve = fields["distortion_known"], fields["queries_safe_curve"]
        return cls(
            longest_path=fields["longest_path"],
            longest_distance=fields["longest_distance"],
            queries_across=fields["queries_across"],
            distortion=tuple(Distortion(**row) for row in fields["distortion"]),
            queries_safe_curve=None if curve is None else tuple(curve),
            distortion_known=None if known is None else KnownDistortion(**known),
            alternatives=tuple(Alternative.from_fields(row) for row in fields["alternatives"]),
        )


@dataclass(frozen=True, eq=False)
class QueryFlips:
    """When each query's order flips first, with a way to name the queries, for which the log is read."""

    at: NDArray[np.float64]
    read_names: Callable[[], pa.Table]

    def to_table(self) -> pa.Table:
        """The query column and `flips_at`; infinite where a query never flips."""
        return self.read_names().append_column("flips_at", pa.array(self.at))
