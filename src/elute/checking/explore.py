"""Which bias column breaks identifiability: the check for every subset of the bias columns.

The question behind Table 5 of the identifiability paper. The log is not read again: a factor of a subset
is a group of factors, so the log's own forest answers for every subset.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elute.errors import EluteError
from elute.identify.components import number_components
from elute.kernels.forest import merge_edges, spanning_edges
from elute.kernels.unionfind import singletons
from elute.log import ClickLog
from elute.progress import Progress, silent

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


def explore(log: ClickLog, progress: Progress = silent) -> list[Subset]:
    """Every non-empty subset, smallest first, in the order of the columns."""
    columns = log.survey.factors.column_names
    if len(columns) > MAX_COLUMNS:
        raise EluteError(f"`explore=True` takes at most {MAX_COLUMNS} bias columns, not {len(columns)}; name fewer")
    subsets = [chosen for size in range(1, len(columns) + 1) for chosen in combinations(columns, size)]
    links = spanning_edges(log.structure(progress).root)
    verdicts = []
    for done, chosen in enumerate(subsets):
        progress("trying subsets of the bias columns", done, len(subsets))
        verdicts.append(_judge_subset(log, links, chosen, progress))
    return verdicts


def _judge_subset(log: ClickLog, links: NDArray[np.int32], chosen: Sequence[str], progress: Progress) -> Subset:
    """Factors that become one keep their links; a forest of them says as much as all cells would."""
    group = group_factors(log.survey.factors, chosen)
    factors = int(group.max()) + 1
    found = number_components(merge_edges(singletons(factors), group[links]), np.zeros(factors, np.int64))
    share = None
    if log.roles.query is not None:
        share = log.count_rankable(found.of_factor[group], len(found), progress).share
    return Subset(tuple(chosen), factors, len(found), share)


def group_factors(factors: pa.Table, columns: Sequence[str]) -> NDArray[np.int32]:
    """Number the distinct combinations of `columns`; equal values get equal numbers, without gaps."""
    group = np.zeros(factors.num_rows, np.int64)
    for column in columns:
        codes = pc.dictionary_encode(factors[column]).combine_chunks().indices.to_numpy()
        _, group = np.unique(group * (int(codes.max()) + 1) + codes, return_inverse=True)
    return group.astype(np.int32)
