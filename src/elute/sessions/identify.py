"""Whether a log's pages determine a session click model: `elute check --model ubm --session COL`.

UBM's P(click | clicks above) is attraction times the examination of (rank, distance to the last click): these cells are
factors as any, and the check is the graph's. Chains (DBN, CCM, …) have no factors; see
`elute.identify.generic.chains`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from elute.clicks.exact.tally import browsing_cells, tally
from elute.clicks.sessions import Sessions
from elute.identify.generic.chains import SHARED, count_chain_null
from elute.identify.generic.identifiability import GenericComponent, GenericIdentifiability, judge_cells
from elute.log import ClickLog
from elute.sessions.log import iterate_parts, open_pages, read_pages

SESSION_MODELS = ("ubm", *SHARED)


def judge_pages(log: ClickLog, model: str, *, seed: int = 0) -> GenericIdentifiability:
    """The verdict for the pages of a log."""
    with open_pages(log, log.roles.session) as (path, columns):
        source, vocabulary = read_pages(path, columns)
        parts = list(iterate_parts(source))
    return (_judge_browsing if model == "ubm" else _judge_chain)(parts, len(vocabulary.documents), model, seed)


def _judge_browsing(parts: list[Sessions], documents: int, model: str, seed: int) -> GenericIdentifiability:
    ranks = max(part.longest for part in parts)
    names = [
        f"rank={rank}, " + ("nothing clicked above" if distance == rank else f"last click {distance} above")
        for rank in range(1, ranks + 1)
        for distance in range(1, rank + 1)
    ]
    cells = tally(parts, documents, len(names), browsing_cells)
    seen, factor = np.unique(cells.cell, return_inverse=True)
    some = np.flatnonzero(np.diff(cells.offsets))
    offsets = np.append(cells.offsets[some], cells.offsets[-1]).astype(np.int64)
    found = judge_cells(offsets, factor.astype(np.int32), [names[cell] for cell in seen], "pbm", seed=seed)
    return replace(found, model=model)


def _judge_chain(parts: list[Sessions], documents: int, model: str, seed: int) -> GenericIdentifiability:
    width = max(part.width for part in parts)
    doc = np.concatenate([np.pad(part.doc, ((0, 0), (0, width - part.width))) for part in parts])
    length = np.concatenate([part.length for part in parts])
    null = count_chain_null(model, doc, length, seed)
    shown = len(np.unique(doc[np.arange(width) < length[:, None]]))
    return GenericIdentifiability(
        model=model,
        null_dimension=null.dimension,
        gauge=0,
        parts=[GenericComponent(list(SHARED[model]), shown, null.dimension, list(null.open))],
        loose_items=null.loose,
        item_null_dimension=null.loose,
        error_bound=0.0,
    )
