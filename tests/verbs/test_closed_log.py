"""What is asked of results once their log is closed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import elute


def test_a_fit_outlives_its_log(tmp_path: Path) -> None:
    """The names of its items are read before the log is closed, and only where somebody can still ask for them."""
    number = np.arange(400)
    table = pa.table({"query_id": number % 4, "doc_id": number % 5, "position": number % 3, "click": number % 7 == 0})
    with elute.read_log(table) as log:
        fit = elute.fit(log, allow_unidentified=True)
        counts = log.counts()
        assert "items" not in vars(counts)
    assert fit.relevance.num_rows == counts.n_items == 20
    assert sorted(fit.relevance["doc_id"].unique().to_pylist()) == [0, 1, 2, 3, 4]
    with elute.read_log(table) as log:
        read: list[int] = []
        object.__setattr__(log.counts(), "read_items", lambda: read.append(1))
    assert not read
    with elute.read_log(table, memory=1 << 29, spill=tmp_path) as log:
        spilled = elute.fit(log, allow_unidentified=True)
    with pytest.raises(elute.EluteError, match="the log is closed and its cells are gone; save the fit before"):
        _ = spilled.relevance
    log = elute.read_log(table)
    log.close()
    with pytest.raises(elute.EluteError, match="the table is closed; ask before it is, or keep it open"):
        elute.check(log)
