"""Counts in memory, in partitions of the items: what an engine does with files or executors."""

from __future__ import annotations

import pickle
from functools import reduce

import numpy as np
import pyarrow as pa

from elute.cells.counts import Cells, Counts
from elute.cells.partitions import Partition


class MemoryPartitions:
    """`owner`: the partition of every item. Works and answers are pickled on the way, as they would be; `largest`: the
    most bytes an answer took."""

    def __init__(self, counts: Counts, owner: np.ndarray) -> None:
        self.factors = counts.factors
        self.largest, self.dense_limit, self.memory = 0, 5_000, 1 << 40
        item = np.repeat(np.arange(counts.n_items), np.diff(counts.offsets))
        self._names, self._partitions = [], []
        for number in np.unique(owner):
            mine = np.flatnonzero(owner == number)
            at = np.isin(item, mine)
            sizes = np.diff(counts.offsets)[mine]
            offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
            cells = Cells(offsets, counts.factor[at], counts.impressions[at], counts.clicks[at])
            self._partitions.append(Partition(int(number), cells))
            self._names.append(counts.items.take(pa.array(mine)))

    def map_reduce(self, work, merge):
        sent = pickle.dumps(work)
        answers = [pickle.dumps(pickle.loads(sent)(partition)) for partition in self._partitions]  # noqa: S301
        self.largest = max(self.largest, *map(len, answers))
        return reduce(merge, map(pickle.loads, answers))

    def stream_items(self, work, schema):
        for partition, names in zip(self._partitions, self._names, strict=True):
            for name, values in work(partition).items():
                names = names.append_column(name, pa.array(values, schema.field(name).type))
            yield names
