"""Items by their features: documents with exactly the same features are one item, whatever their ids.

A ranker of features cannot tell them apart, so its relevance is a matter of features; where ids never repeat, that is
what joins positions (the identifiability paper's semi-synthetic study identifies items in this way).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elute.cells.roles import Roles
from elute.engines.counter import Counter, RowBatch
from elute.log import ClickLog, read_log
from elute.training.pages import TrainingPages

_BLOCK = 1 << 16
_ITEM, _SHOWN, _CLICKED = "item features", "elute_impressions", "elute_clicks"


def make_feature_log(values: NDArray[np.float32], pages: TrainingPages, factors: pa.Table) -> ClickLog:
    """The log's cells as a log of counts, with items by features."""
    keys = hash_features(values)
    roles = Roles((_ITEM,), tuple(factors.column_names), None, _CLICKED, None, None)
    counter = Counter(roles, factors.num_rows, pages.documents.size, pages.documents.size)
    for start in range(0, len(pages.documents), _BLOCK):
        some = slice(start, start + _BLOCK)
        shown = pages.documents[some] >= 0
        item, factor = keys[pages.documents[some][shown]], pages.factor[some][shown].astype(np.int32)
        counter.add(RowBatch(item, factor, clicks=pages.clicks[some][shown].astype(np.uint8)))
    counted = counter.finish()
    columns = {
        _ITEM: np.repeat(np.arange(len(counted.items)), np.diff(counted.offsets)),
        _SHOWN: counted.impressions.astype(np.int64),
        _CLICKED: counted.clicks.astype(np.int64),
    }
    table = factors.take(pa.array(counted.factor))
    for name, column in columns.items():
        table = table.append_column(name, pa.array(column))
    return read_log(table, item=_ITEM, bias=factors.column_names, click=_CLICKED, impressions=_SHOWN)


def hash_features(values: NDArray[np.float32]) -> NDArray[np.uint64]:
    """A 64-bit key for each row: equal rows have equal keys, and different rows different ones but for chance."""
    keys = np.empty(len(values), np.uint64)
    for start in range(0, len(values), _BLOCK):
        block = np.ascontiguousarray(values[start : start + _BLOCK]) + np.float32(0)  # -0 is 0
        mixed = np.zeros(len(block), np.uint64)
        for column in block.view(np.uint32).T:
            mixed = _mix(mixed + column.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
        keys[start : start + _BLOCK] = mixed
    return keys


def _mix(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A one-to-one scrambling of 64 bits (the finaliser of SplitMix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
