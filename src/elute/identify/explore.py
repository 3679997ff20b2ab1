"""Which bias column breaks identifiability: the check for every subset of the bias columns.

The question behind Table 5 of the identifiability paper. The log is not read again: a factor of a subset
is a group of factors, so the same cells answer for every subset.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.counts import Counts
from elute.errors import EluteError
from elute.identify.components import order
from elute.progress import Progress, silent
from elute.rankable import rankable
from elute.structure import connect

MAX_COLUMNS = 12


class Subset(NamedTuple):
    """The verdict for one choice of bias columns."""

    bias: tuple[str, ...]
    factors: int
    components: int
    rankable_share: float | None

    @property
    def recoverable(self) -> bool:
        return self.components == 1


def explore(counts: Counts, progress: Progress = silent) -> list[Subset]:
    """Every non-empty subset, smallest first, in the order of the columns."""
    columns = counts.factors.column_names
    if len(columns) > MAX_COLUMNS:
        raise EluteError(f"--explore takes at most {MAX_COLUMNS} bias columns, not {len(columns)}: name fewer")
    subsets = [chosen for size in range(1, len(columns) + 1) for chosen in combinations(columns, size)]
    verdicts = []
    for done, chosen in enumerate(subsets):
        progress("trying subsets of the bias columns", done, len(subsets))
        verdicts.append(_verdict(counts, chosen))
    return verdicts


def _verdict(counts: Counts, chosen: Sequence[str]) -> Subset:
    group = grouped(counts.factors, chosen)
    found = order(connect(counts, group), np.zeros(int(group.max()) + 1, np.int64))
    share = None
    if counts.membership is not None:
        of_item = found.of_factor[group[counts.factor[counts.offsets[:-1]]]]
        share = rankable(counts.membership, of_item, len(found)).share
    return Subset(tuple(chosen), int(group.max()) + 1, len(found), share)


def grouped(factors: pa.Table, columns: Sequence[str]) -> NDArray[np.int32]:
    """Number the distinct combinations of `columns`; equal values get equal numbers, without gaps."""
    group = np.zeros(factors.num_rows, np.int64)
    for column in columns:
        codes = pc.dictionary_encode(factors[column]).combine_chunks().indices.to_numpy()
        _, group = np.unique(group * (int(codes.max()) + 1) + codes, return_inverse=True)
    return group.astype(np.int32)
