"""Whatever stands for a log gives the same result: a path, a table of any library, counts on disk or in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

import elute
from elute.log import LogOptions

KINDS = ("path", "text", "log", "counts", "folder", "arrow", "pandas", "polars")
_NAMED = ("log", "columns", "provenance", "seconds")
"""What may differ: how the log is named."""


@pytest.fixture(scope="module")
def sources(demo_logs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = demo_logs / "broken.parquet"
    folder = tmp_path_factory.mktemp("counts") / "counts"
    elute.count(path, folder)
    table = pq.read_table(path)
    return {
        "path": path,
        "text": str(path),
        "log": elute.read_log(path),
        "counts": elute.read_log(path).counts(),
        "folder": folder,
        "arrow": table,
        "pandas": pd.read_parquet(path),
        "polars": pl.read_parquet(path),
    }


def fields(result: Any) -> dict[str, Any]:
    return {name: value for name, value in result.to_dict().items() if name not in _NAMED}


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_same(sources: dict[str, Any], kind: str) -> None:
    given, path = sources[kind], sources["path"]
    assert fields(elute.check(given)) == fields(elute.check(path))
    assert fields(elute.merge(given)) == fields(elute.merge(path))
    assert fields(elute.swap(given)) == fields(elute.swap(path))
    plan = elute.merge(path)
    fits = [elute.fit(source, plan=plan) for source in (given, path)]
    one, other = map(fields, fits)
    assert one.pop("log_likelihood") == pytest.approx(other.pop("log_likelihood"), rel=1e-9)
    assert one == other
    errors = [elute.certify(source, plan=plan).log_se for source in (given, path)]
    np.testing.assert_array_equal(errors[0], errors[1])
    model = elute.PBM().fit(given, plan)
    assert fits[1].estimator is not None
    np.testing.assert_allclose(model.propensity_, fits[1].estimator.propensity_, rtol=1e-9)
    audits = [elute.audit(fit, source).to_dict() for fit, source in zip(fits, (given, path), strict=True)]
    assert audits[0]["models"][0]["perplexity"] == pytest.approx(audits[1]["models"][0]["perplexity"], rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_can_be_reported_and_counted(sources: dict[str, Any], kind: str, tmp_path: Path) -> None:
    pages = [elute.report(source).to_dict() for source in (sources[kind], sources["path"])]
    assert pages[0] == pages[1]
    if kind != "folder":
        counted = elute.count(sources[kind], tmp_path / "again").to_dict()
        assert counted["cells"] == elute.check(sources["path"]).structure.cells
        assert fields(elute.check(tmp_path / "again")) == fields(elute.check(sources["path"]))


@pytest.mark.parametrize("kind", ["path", "log", "arrow", "pandas", "polars"])
def test_session_models_read_pages_of_any_table(sources: dict[str, Any], kind: str) -> None:
    given = elute.read_log(sources["path"], session="session_id") if kind == "log" else sources[kind]
    options: LogOptions = {} if kind == "log" else {"session": "session_id"}
    found = elute.fit(given, "dctr", **options).to_dict()
    assert found["sessions"] == 20_000


@pytest.mark.parametrize("kind", ["log", "counts"])
@pytest.mark.parametrize("verb", [elute.check, elute.fit, elute.report, elute.merge])
def test_columns_of_an_open_log_are_its_own(sources: dict[str, Any], kind: str, verb: Callable[..., object]) -> None:
    with pytest.raises(elute.EluteError, match=r"`bias=`: the log was read already"):
        verb(sources[kind], bias="device")


def test_what_is_no_log(tmp_path: Path) -> None:
    for verb in (elute.check, elute.fit, elute.merge, elute.certify, elute.PBM().fit):
        with pytest.raises(elute.EluteError, match="no file"):
            verb(tmp_path / "nowhere.parquet")
        with pytest.raises(elute.EluteError, match="cannot read"):
            verb(12)
