"""Real clicks: what ranking by fitted relevance would earn on the Yandex log, against the order that was shown."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elute.errors import EluteError
from elute.fits.fit import Fit
from elute.verbs.fit import fit
from elute.verbs.value import value
from elute_reproduce.result import Claim, ComparedValue
from elute_reproduce.study import Study

_FEWEST = 20
"""Impressions of a document that is ranked: of one shown less often nothing is known, and it is left out."""


class YandexValue(NamedTuple):
    """What was measured, and what it says."""

    compared: list[ComparedValue]
    claims: list[Claim]
    reading: list[str]


def run_yandex(study: Study) -> YandexValue | None:
    """None without the data. Relevance is learnt from one half of the pages and valued on the other; and, to see what
    that is for, on the same half."""
    folder = None if study.data is None else study.data / "yandex" if (study.data / "yandex").exists() else study.data
    path = None if folder is None else folder / "train.parquet"
    if path is None or not path.exists():
        return None
    study.progress("yandex", 0, 1)
    halves = _split(pq.read_table(path))
    with TemporaryDirectory(prefix="elute-") as scratch:
        files = [Path(scratch) / f"half{at}.parquet" for at in range(2)]
        for table, file in zip(halves, files, strict=True):
            pq.write_table(table, file)
        fits = [fit(str(file)) for file in files]
        ranking = _rank(fits[0])
        found = {
            name: value(
                str(files[at]),
                fits[at],
                ranking,
                missing="logged",
                cluster="session_id",
                under=_sessions(files[at]) if at else (),
            )
            for at, name in ((1, "the other half of the pages"), (0, "the same half"))
        }
    compared = [
        ComparedValue({"world": f"Yandex, {name}", "by": one["estimator"], "figure": figure}, (float(one[key]),))
        for name, result in found.items()
        for one in result.to_dict()["rankings"][1]["estimators"]
        for figure, key in (("difference", "difference"), ("low", "difference_low"), ("high", "difference_high"))
    ]
    return YandexValue(compared, _judge(found), _read(found))


def _split(table: pa.Table) -> list[pa.Table]:
    """Pages by the parity of a hash of their number."""
    session = np.unique(table["session_id"].to_numpy(zero_copy_only=False), return_inverse=True)[1]
    half = np.random.default_rng(0).integers(2, size=session.max() + 1)[session]
    return [table.filter(pa.array(half == at)) for at in range(2)]


def _rank(found: Fit) -> pa.Table:
    """Documents by the mean of their posterior, of those shown often enough."""
    table = found.relevance
    if not {"shape", "rate"} <= set(table.column_names):
        raise EluteError("the fit has no posteriors to rank by; fit with pbm")
    score = table["shape"].to_numpy() / table["rate"].to_numpy()
    kept = np.isfinite(score) & (table["impressions"].to_numpy() >= _FEWEST)
    return table.select(found.provenance.item).append_column("score", pa.array(score)).filter(pa.array(kept))


def _sessions(path: Path) -> list[Fit]:
    """Users of other kinds, where jax is there to fit them."""
    try:
        import jax  # noqa: F401
    except ImportError:
        return []
    return [fit(str(path), name, session="session_id") for name in ("ubm", "dbn")]


def _judge(found: dict[str, Any]) -> list[Claim]:
    other, same = (one.to_dict() for one in found.values())
    row, again = other["rankings"][1], same["rankings"][1]
    lost = ", ".join(
        f"{reason} {part['queries']} queries ({part['pages_share']:.1%})" for reason, part in row["unvalued"].items()
    )
    return [
        Claim(
            "On Yandex's log, ranking by fitted relevance is told from the order shown, on pages that it was not "
            "learnt from.",
            row["verdict"] != "cannot tell",
            f"{row['difference']:+.4f} clicks a page [{row['difference_low']:+.4f}, {row['difference_high']:+.4f}] of "
            f"{other['rankings'][0]['value']:.4f}, {row['verdict']}; {other['valued_share']:.1%} of the pages "
            "valued; over all "
            f"pages {row['difference_worst']:+.4f} to {row['difference_best']:+.4f}; not valued: {lost or 'none'}; "
            f"{row['by_query']['winners']} queries win and {row['by_query']['losers']} lose of "
            f"{row['by_query']['tested']} tested",
        ),
        Claim(
            "Valued on the pages that it was learnt from, the same ranking looks better than it is.",
            again["difference"] > row["difference"],
            f"{again['difference']:+.4f} [{again['difference_low']:+.4f}, {again['difference_high']:+.4f}] on the "
            "same half",
        ),
    ]


def _read(found: dict[str, Any]) -> list[str]:
    under = next(iter(found.values())).to_dict()["under"]
    if not under:
        return []
    each = "; ".join(
        f"by {one['model']} {one['rankings'][0]['difference']:+.4f} of {one['logged']:.4f}" for one in under
    )
    return [f"The same ranking on the other half, by session models of other users: {each}."]
