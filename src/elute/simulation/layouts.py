"""Logs with several bias columns at once, which effects that multiply explain and single combinations do not.

Every device and every layout starts the page at another result: what is first on one is fourth on another. So a result
meets each combination of device and layout at one position only, and no chain of results leads from one position of a
combination to another: position × device × layout falls into as many components as there are positions. Each column's
effect is there to be seen all the same.

On phones, in the other log, an advertisement comes first and results start one lower. What a position less and what a
desktop do then look the same: of the effects one comparison is missing, and of the combinations all but one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

DEVICES = ("desktop", "phone", "tablet")
LAYOUTS = ("ads", "cards", "gallery", "grid", "list", "map", "news", "plain")
POSITIONS = 10

DEVICE_EFFECTS = np.array([0.0, -0.35, -0.1])
LAYOUT_EFFECTS = np.array([-0.5, -0.15, -0.3, -0.1, 0.0, -0.4, -0.2, -0.05])
POSITION_EFFECTS = -0.6 * np.log(np.arange(1, POSITIONS + 1))
"""Logarithms of what each multiplies propensities by."""


def simulate_layouts(pages: int, queries: int, seed: int, interaction: NDArray[np.float64] | None = None) -> pa.Table:
    """A log of so many pages. `interaction`: added to log propensities by position and device."""
    rng = np.random.default_rng(seed)
    relevance = rng.beta(1.0, 1.5, (queries, POSITIONS))
    query = rng.integers(queries, size=pages)
    device, layout = rng.integers(len(DEVICES), size=pages), rng.integers(len(LAYOUTS), size=pages)
    doc = np.tile(np.arange(POSITIONS), pages)
    page = np.repeat(np.arange(pages), POSITIONS)
    position = (doc + 3 * device[page] + layout[page]) % POSITIONS
    log_o = POSITION_EFFECTS[position] + DEVICE_EFFECTS[device[page]] + LAYOUT_EFFECTS[layout[page]]
    if interaction is not None:
        log_o = log_o + interaction[position, device[page]]
    clicked = rng.random(len(page)) < relevance[query[page], doc] * np.exp(log_o)
    return pa.table(
        {
            "session_id": page,
            "query_id": query[page],
            "doc_id": doc,
            "position": position + 1,
            "device": pa.DictionaryArray.from_arrays(device[page], list(DEVICES)).cast(pa.string()),
            "layout": pa.DictionaryArray.from_arrays(layout[page], list(LAYOUTS)).cast(pa.string()),
            "click": clicked.astype(np.int8),
        }
    )


def simulate_phones(pages: int, queries: int, seed: int) -> pa.Table:
    """A log of so many pages, on phones one lower."""
    rng = np.random.default_rng(seed)
    docs = POSITIONS - 1
    relevance = rng.beta(1.0, 1.5, (queries, docs))
    query, phone = rng.integers(queries, size=pages), rng.integers(2, size=pages)
    doc, page = np.tile(np.arange(docs), pages), np.repeat(np.arange(pages), docs)
    position = doc + phone[page]
    log_o = POSITION_EFFECTS[position] + DEVICE_EFFECTS[phone[page]]
    clicked = rng.random(len(page)) < relevance[query[page], doc] * np.exp(log_o)
    return pa.table(
        {
            "session_id": page,
            "query_id": query[page],
            "doc_id": doc,
            "position": position + 1,
            "device": pa.DictionaryArray.from_arrays(phone[page], list(DEVICES[:2])).cast(pa.string()),
            "click": clicked.astype(np.int8),
        }
    )
