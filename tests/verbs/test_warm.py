"""A fit that starts from an earlier one: the same maximum, in fewer rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import elute
from conftest import call_elute


def write_day(path: Path, seed: int, queries: int, rows: int) -> None:
    """Repeated users of few queries, or most items shown once or twice."""
    rng = np.random.default_rng([seed, queries])
    query, doc, position = rng.integers(0, queries, rows), rng.integers(0, 15, rows), rng.integers(1, 11, rows)
    relevance = np.random.default_rng(queries).beta(1, 3, (queries, 15))[query, doc]
    click = rng.random(rows) < relevance / position**0.8
    pq.write_table(pa.table({"query_id": query, "doc_id": doc, "position": position, "click": click}), path)


def read_propensities(fit: elute.Fit) -> NDArray[np.float64]:
    assert fit.propensities is not None
    return np.asarray(fit.propensities["propensity"].to_numpy())


@pytest.mark.parametrize(
    ("queries", "options"),
    [
        (20, {"relevance_prior": "none", "tolerance": 1e-7}),
        (400, {"relevance_prior": "beta", "tolerance": 1e-7}),
        (20, {"model": "em", "tolerance": 1e-9, "max_iter": 200_000}),
    ],
)
def test_the_same_maximum_in_no_more_rounds(tmp_path: Path, queries: int, options: dict[str, Any]) -> None:
    """Newton's method takes a few rounds from anywhere; EM as many more as its start is further away."""
    for day in range(5):
        write_day(tmp_path / f"{day}.parquet", day, queries, 4_000)
        elute.count(tmp_path / f"{day}.parquet", tmp_path / "days", append=True, key=f"day={day}")
    elute.fit(tmp_path / "days", drop="day = 4", **options).save(tmp_path / "before")
    cold, warm = (elute.fit(tmp_path / "days", last=4, warm=start, **options) for start in (None, tmp_path / "before"))
    one, other = (read_propensities(fit) for fit in (cold, warm))
    assert np.abs(np.log(one / other)).max() < 1e-6
    rounds = [fit.summary["iterations"] for fit in (cold, warm)]
    assert rounds[1] < rounds[0] if "model" in options else rounds[1] <= rounds[0]
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    said = call_elute("fit", tmp_path / "days", "--last", 4, *words, "--warm", tmp_path / "before", "--json")
    assert said.json["iterations"] == warm.summary["iterations"]


def test_factors_that_are_new_are_fitted_too_and_other_fits_refused(tmp_path: Path) -> None:
    write_day(tmp_path / "log.parquet", 0, 20, 4_000)
    elute.fit(tmp_path / "log.parquet", max_position=6).save(tmp_path / "before")
    cold, warm = (
        elute.fit(tmp_path / "log.parquet", warm=start, tolerance=1e-7) for start in (None, tmp_path / "before")
    )
    one, other = (read_propensities(fit) for fit in (cold, warm))
    assert np.abs(np.log(one / other)).max() < 1e-6
    refused: list[tuple[dict[str, Any], str]] = [
        ({"model": "naive"}, "model 'naive' has no `warm=`"),
        ({"bias": "doc_id", "item": "query_id"}, "has no column 'doc_id'"),
    ]
    for options, said in refused:
        with pytest.raises(elute.EluteError, match=said):
            elute.fit(tmp_path / "log.parquet", warm=tmp_path / "before", **options)
