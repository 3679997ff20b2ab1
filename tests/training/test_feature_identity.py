"""Items by features: keys that tell exactly unequal rows apart, counts as dictionaries make them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elute.io.features import Features
from elute.log import read_log
from elute.training import weights
from elute.training.identity import hash_features, make_feature_log
from elute.training.pages import TrainingPages
from elute.training.task import Inputs, build_task
from elute.training.weights import Weighing

ROWS = st.lists(st.tuples(*[st.sampled_from([-1.5, -0.0, 0.0, 1e-30, 2.0, 3e38])] * 3), min_size=1, max_size=30)


@settings(max_examples=100, deadline=None)
@given(ROWS)
def test_keys_are_equal_where_features_are(rows: list[tuple[float, ...]]) -> None:
    keys = hash_features(np.array(rows, np.float32))
    for a, one in zip(keys, rows, strict=True):
        assert [a == b for b in keys] == [one == other for other in rows]


def test_many_rows_that_differ_little_have_keys_of_their_own() -> None:
    """More than a block of them; also where the same numbers stand in another order."""
    rows = np.stack(np.meshgrid(*[np.arange(42, dtype=np.float32)] * 3), axis=-1).reshape(-1, 3)
    assert len(np.unique(hash_features(rows))) == len(rows) == 42**3


def some_pages(seed: int) -> tuple[np.ndarray, TrainingPages]:
    """Pages of 4 places over 30 documents, of which many have the same features."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, (30, 2)).astype(np.float32)
    documents = np.array([rng.choice(30, 4, replace=False) for _ in range(200)], np.int32)
    documents[np.arange(4) >= rng.integers(1, 5, 200)[:, None]] = -1
    clicks = ((rng.random(documents.shape) < 0.4) & (documents >= 0)).astype(np.float32)
    return values, TrainingPages(documents, clicks, np.where(documents >= 0, np.arange(4), 0).astype(np.int32), None)


def test_cells_are_those_that_dictionaries_count() -> None:
    values, pages = some_pages(0)
    shown: Counter[tuple[tuple[float, ...], int]] = Counter()
    clicked: Counter[tuple[tuple[float, ...], int]] = Counter()
    for page, clicks in zip(pages.documents, pages.clicks, strict=True):
        for place, (document, click) in enumerate(zip(page, clicks, strict=True)):
            if document >= 0:
                cell = (tuple(values[document]), place + 1)
                shown[cell] += 1
                clicked[cell] += int(click)
    with make_feature_log(values, pages, pa.table({"position": [1, 2, 3, 4]})) as log:
        counts = log.counts()
        assert counts.n_items == len({item for item, _ in shown})
        place = counts.factors["position"].to_numpy()[counts.factor]
        found = Counter(zip(place.tolist(), counts.impressions.tolist(), counts.clicks.tolist(), strict=True))
    assert found == Counter((place, n, clicked[item, place]) for (item, place), n in shown.items())


def fitted(
    pages: TrainingPages, values: np.ndarray, apart: bool, items: str | None = None, text: bool = False
) -> Weighing:
    """What `elute` weighs by. `apart`: a document has another id at every place. Positions are 9 to 12."""
    page, place = np.nonzero(pages.documents >= 0)
    document = pages.documents[page, place]
    named = document * 4 + place if apart else document
    columns = {"session_id": page, "query_id": np.zeros(len(page), int), "doc_id": named}
    position = pa.array(place + 9).cast(pa.string() if text else pa.int64())
    table = pa.table({**columns, "position": position, "click": pages.clicks[page, place].astype(np.int8)})
    every = np.arange(30 * (4 if apart else 1))
    key = pa.table({"query_id": np.zeros(len(every), int), "doc_id": every})
    features = Features(key, ("a", "b"), values[every // 4 if apart else every], "features")
    with read_log(table) as log:
        found = build_task(log, features, Inputs("elute", items=items)).weighing  # type: ignore[arg-type]
    assert found is not None
    return found


def by_position(weighing: Weighing) -> dict[int, tuple[float, float]]:
    return {int(row["position"]): (row["propensity"], row["log_se"]) for row in weighing.to_list()}


def test_what_an_item_is_decides_what_is_fitted() -> None:
    """Ids where these join the log, features where only those do: here that is the same but for the ids."""
    values, pages = some_pages(1)
    by_ids = fitted(pages, values, apart=False)
    assert by_ids.note == ""
    by_features = fitted(pages, values, apart=False, items="features")
    assert "items are documents with equal features, which leaves 1 of 1 components" in by_features.note
    assert by_position(by_ids) != by_position(by_features)
    found = fitted(pages, values, apart=True)
    assert "which leaves 1 of 4 components" in found.note
    assert "not recoverable" not in found.note
    assert by_position(found) == by_position(by_features)
    merged = fitted(pages, values, apart=True, items="ids")
    assert "the log is not recoverable (4 components)" in merged.note
    assert {chance for chance, _ in by_position(merged).values()} == {1.0}


def test_propensities_are_found_by_value_whatever_order_factors_come_in() -> None:
    values, pages = some_pages(1)
    numbers, text = (fitted(pages, values, apart=True, text=text) for text in (False, True))
    for position, wanted in by_position(numbers).items():
        assert by_position(text)[position] == pytest.approx(wanted, rel=1e-6)
    assert len({chance for chance, _ in by_position(text).values()}) == 4


def test_documents_that_features_do_not_join_are_merged() -> None:
    """Every document has features of its own, so that ids are as good, and neither joins positions."""
    _, pages = some_pages(1)
    values = np.arange(240, dtype=np.float32).reshape(120, 2)
    page, place = np.nonzero(pages.documents >= 0)
    apart = pages.documents.copy()
    apart[page, place] = pages.documents[page, place] * 4 + place
    with make_feature_log(values, pages._replace(documents=apart), pa.table({"position": [1, 2, 3, 4]})) as log:
        found = weights.weigh_by_fit(log, lambda: log)
    assert "items are" not in found.note
    assert "the log is not recoverable (4 components)" in found.note
