"""Plans: what repairs a log, as a small JSON file that says what it was made for."""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute._util.files import write_text
from elute.cells.counts import Counts
from elute.cells.formula import formula_of
from elute.door.json_file import read_json
from elute.errors import EluteError
from elute.identify.assumed import AssumedScore
from elute.identify.effects.constraints import join_factors
from elute.identify.merged import MergedFactors, measure_merged
from elute.kernels.merge import add_cells, merge_cells, merge_factors
from elute.repair.card import describe_plan
from elute.repair.distortion.fields import Consequence, QueryFlips
from elute.repair.files.kinds import FORECAST, LIMITS, plan_kind
from elute.repair.files.score_contents import ScoreContents
from elute.repair.steps import Pair, Row, Swap, find_factor_codes, find_item_codes, read_swap
from elute.results.base import Fields, Result
from elute.results.card import Card
from elute.results.provenance import Provenance

Pairs = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """What every plan has."""

    provenance: Provenance
    components_before: int
    components_after: int
    cost: float

    method: ClassVar[str]

    @abstractmethod
    def pairs_of(self, factors: pa.Table) -> Pairs:
        """The factors that the plan links, as rows of a log's factors; refuses a log it was not made for."""

    @abstractmethod
    def to_dict(self) -> Row:
        """The fields of `elute repair --json`, which are those of the file."""

    def save(self, path: str | Path) -> None:
        """Write the file, whole or not at all."""
        write_text(path, json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> AnyPlan:
        """A plan from its file."""
        return load(path)

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        return describe_plan(fields)

    @abstractmethod
    def measure_merged(self, factors: pa.Table, impressions: NDArray[np.int64]) -> MergedFactors | None:
        """What it leaves to debias with on a log of these factors, with these impressions each; None where it merges
        nothing."""

    def place(self, factors: pa.Table) -> tuple[Floats, Floats] | None:
        """Propensities of a log's factors on one scale, and their errors, where the plan holds them."""
        return None

    @property
    def assumption(self) -> AssumedScore | None:
        """What it takes on trust, where the log could say something to that."""
        return None

    def _common_fields(self) -> Row:
        return {
            "method": self.method,
            "components_before": self.components_before,
            "components_after": self.components_after,
            "cost": self.cost,
        }

    def _find_codes(self, factors: pa.Table, wanted: list[Row]) -> NDArray[np.int64]:
        """Factor codes of these rows."""
        return find_factor_codes(factors, wanted, self.provenance)


@dataclass(frozen=True, repr=False)
class MergePlan(Plan):
    """Pairs of factors that are to share one propensity: a spanning tree over the components."""

    pairs: tuple[Pair, ...] = ()
    bound: float | None = None
    """Proposition 4: estimated over true relevance differs by no more than this between any two items."""
    bound_scale: Row | None = None
    """A factor of the component in which relevance is exact at the scale of the bound."""
    merged: MergedFactors | None = None
    """What the plan leaves to debias with on the log that it was made for; None in files of older versions."""
    consequence: Consequence | None = None
    """What it does to relevance; None where that was not asked for, and in files of older versions."""
    query_flips: QueryFlips | None = field(default=None, compare=False)
    """Not in the file."""

    method: ClassVar[str] = "merge"

    @property
    def flips(self) -> pa.Table:
        """The query column and `flips_at`: by how much the factors of every pair may differ before the query's order
        flips; infinite where it never does."""
        if self.query_flips is None:
            raise EluteError(
                "this plan does not know its queries: make it with `elute.merge` from a log that has clicks and queries"
            )
        return self.query_flips.to_table()

    @property
    def bound_sentence(self) -> str:
        """Proposition 4 in words; empty without given propensities, and where they imply no error."""
        if not self.bound:
            return ""
        return f"At this scale no two items differ in it by more than {self.bound:.3g} (Proposition 4)."

    def pairs_of(self, factors: pa.Table) -> Pairs:
        codes = self._find_codes(factors, [row for pair in self.pairs for row in (pair.a, pair.b)])
        return codes.reshape(-1, 2)

    def measure_merged(self, factors: pa.Table, impressions: NDArray[np.int64]) -> MergedFactors | None:
        return measure_merged(join_factors(factors, self.pairs_of(factors)), impressions)

    def apply(self, counts: Counts) -> Counts:
        """Counts whose merged factors are one; merging is transitive. A merged factor goes by the name of
        its first member. Where a formula ties factors the plan constrains effects, and counts stay as they are."""
        if formula_of(counts.factors) is not None:
            return counts
        codes = merge_factors(counts.n_factors, self.pairs_of(counts.factors))
        cells = merge_cells(counts.offsets, counts.factor, counts.impressions, counts.clicks, codes)
        first = np.unique(codes, return_index=True)[1]
        return replace(
            counts,
            offsets=cells[0],
            factor=cells[1],
            impressions=cells[2],
            clicks=cells[3],
            factors=counts.factors.take(pa.array(first)),
        )

    def to_dict(self) -> Row:
        return {
            **self._common_fields(),
            "bound": self.bound,
            "bound_scale": self.bound_scale,
            **({} if self.merged is None else self.merged.to_dict()),
            **({} if self.consequence is None else self.consequence.to_dict()),
            "pairs": [asdict(pair) for pair in self.pairs],
            "provenance": asdict(self.provenance),
        }


@dataclass(frozen=True, repr=False)
class SwapPlan(Plan):
    """Items to show under other factors: a spanning tree over the components, and more where a budget allows."""

    swaps: tuple[Swap, ...] = ()
    parts_before: int = 1
    """Parts of the log within which chains of clicks determine all ratios; more than components where some items that
    link factors were never clicked."""
    parts_after: int = 1
    infeasible: tuple[Row, ...] = ()
    """Parts that stay apart: an example factor, and the constraint that stands in the way."""
    precision: tuple[Row, ...] = ()
    """With a budget: for each factor the predicted standard error before and after."""
    forecast: Row = field(default_factory=dict)
    """What the plan takes and gives: `users_lose`, `impressions`, `log_lengths`, `days`, `largest_log_se`, …"""
    limits: Row = field(default_factory=dict)
    """What was asked: `target_se`, `share`, `log_days`; which columns are `fixed` (with why) and `movable`;
    `guessed`: nothing is known of propensities; `notes`."""
    designs: tuple[Row, ...] = ()
    """Standard experiments beside the plan, with the same figures."""
    history: tuple[Row, ...] = ()
    """The looks so far (`elute.follow`): what was read at each, and what it held."""

    method: ClassVar[str] = "swap"

    def pairs_of(self, factors: pa.Table) -> Pairs:
        codes = self._find_codes(factors, [row for swap in self.swaps for row in (swap.source, swap.target)])
        return codes.reshape(-1, 2)

    def measure_merged(self, factors: pa.Table, impressions: NDArray[np.int64]) -> MergedFactors | None:
        return None

    def apply(self, counts: Counts) -> Counts:
        """Counts as they would be if the swaps had been shown as planned (or as needed, without a budget) and
        clicked as expected: for predictions, not for estimates."""
        item = find_item_codes(counts.items, [swap.item for swap in self.swaps])
        factor = self.pairs_of(counts.factors)[:, 1]
        shown = np.array([swap.impressions for swap in self.swaps], np.int64)
        expected = np.cumsum(shown * np.array([swap.click_probability for swap in self.swaps]))
        clicked = np.diff(np.floor(expected + 0.5), prepend=0.0).astype(np.int64)  # in all as many as expected
        cells = add_cells(
            (counts.offsets, counts.factor, counts.impressions, counts.clicks), item, factor, shown, clicked
        )
        return replace(counts, offsets=cells[0], factor=cells[1], impressions=cells[2], clicks=cells[3])

    def to_dict(self) -> Row:
        fields = {
            **self._common_fields(),
            "parts_before": self.parts_before,
            "parts_after": self.parts_after,
            **self.forecast,
            **self.limits,
            "infeasible": list(self.infeasible),
            "swaps": [swap.to_dict() for swap in self.swaps],
            "designs": list(self.designs),
        }
        if self.precision:
            fields["precision"] = list(self.precision)
        if self.history:
            fields["history"] = list(self.history)
        return {**fields, "provenance": asdict(self.provenance)}


@dataclass(frozen=True, repr=False)
class ScorePlan(Plan):
    """Components on one scale by the score that results were ranked by; ratios within from items that link factors."""

    contents: ScoreContents

    method: ClassVar[str] = "score"

    @property
    def score(self) -> tuple[str, ...]:
        """The columns of scores."""
        return tuple(self.contents.assumption.score.split(","))

    @property
    def score_scale(self) -> Literal["raw", "query", "rank"]:
        return self.contents.assumption.score_scale

    @property
    def assumption(self) -> AssumedScore:
        return self.contents.assumption

    def pairs_of(self, factors: pa.Table) -> Pairs:
        codes = self._find_codes(factors, [row for link in self.contents.links for row in (link["a"], link["b"])])
        return codes.reshape(-1, 2)

    def measure_merged(self, factors: pa.Table, impressions: NDArray[np.int64]) -> MergedFactors | None:
        return None

    def apply(self, counts: Counts) -> Counts:
        """Counts stay as they are: a score says how they are to be read."""
        return counts

    def place(self, factors: pa.Table) -> tuple[Floats, Floats]:
        rows = [row["factor"] for row in self.contents.propensities]
        return self.contents.place(factors, self._find_codes(factors, rows), self.provenance.log)

    def to_dict(self) -> Row:
        return {**self._common_fields(), **self.contents.to_dict(), "provenance": asdict(self.provenance)}


AnyPlan: TypeAlias = "MergePlan | SwapPlan | ScorePlan"


def load(path: str | Path) -> AnyPlan:
    """Read a plan from its file."""
    try:
        fields = read_json(path, plan_kind, "a plan that elute wrote", "make it again")
    except FileNotFoundError:
        raise EluteError(f"there is no plan '{path}'; make one: `elute.merge`, `elute.swap`, `elute.link`") from None
    provenance = Provenance.from_fields(fields["provenance"])
    head = (provenance, fields["components_before"], fields["components_after"], fields["cost"])
    if fields["method"] == "merge":
        pairs = tuple(Pair(**pair) for pair in fields["pairs"])
        said = MergedFactors.from_fields(fields), Consequence.from_fields(fields)
        return MergePlan(*head, pairs, fields["bound"], fields.get("bound_scale"), *said)
    if fields["method"] == "score":
        return ScorePlan(*head, ScoreContents.from_fields(fields))
    return SwapPlan(
        *head,
        swaps=tuple(read_swap(swap) for swap in fields["swaps"]),
        parts_before=fields["parts_before"],
        parts_after=fields["parts_after"],
        infeasible=tuple(fields["infeasible"]),
        precision=tuple(fields.get("precision", ())),
        designs=tuple(fields["designs"]),
        history=tuple(fields.get("history", ())),
        forecast={name: fields[name] for name in FORECAST},
        limits={name: fields[name] for name in LIMITS},
    )
