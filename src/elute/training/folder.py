"""The folder of a trained ranker: the ranker itself, `train.json`, and the checkpoint that training goes on from.

`settings.json` is written first and says what the checkpoint belongs to; `train.json` is written last: a folder with it
is complete.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.files import write_text
from elute._util.npz import write_npz
from elute.door.arrays import read_arrays
from elute.door.fields import Damaged, anything, choice, each, flag, mapping, maybe, number, record, scalar, text, whole
from elute.door.json_file import read_json
from elute.door.seals import SEALS, Seals, require_sealed, seal
from elute.errors import EluteError, MissingExtra
from elute.ranking.network import Arrays, numpy_scores, require_network
from elute.results.provenance import PROVENANCE
from elute.training.tree_file import read_trees

NETWORK = "ranker.npz"
TREES = "ranker.txt"
SUMMARY = "train.json"
CHECKPOINT = "checkpoint.npz"
SETTINGS = "settings.json"
NAIVE = "naive"
"""The folder, in that of a ranker, of the one trained beside it on clicks as they are."""
_AGAIN = "train again"

_MOMENT = record(
    {"step": whole(1), "loss": number(), "ndcg": maybe(number(0, 1))}, {"click_dcg": number(0, 1)}
)  # fmt: skip
_FIGURE = record({"estimate": number(-1, 1), **dict.fromkeys(("se", "low", "high"), maybe(number()))})
HOLDOUT = record(
    {
        "share": number(0, 1),
        "by": choice("session", "query", "time"),
        "chose_ranker": flag,
        **dict.fromkeys(("pages", "clicks", "unweighted_clicks"), whole()),
        "over": choice("queries", "pages"),
        **dict.fromkeys(("dcg@10", "as_shown", "against_shown"), _FIGURE),
        "sentence": text,
    }
)
_METRICS, _ERRORS = mapping(number()), mapping(maybe(number(0)))
_BESIDE = ("logged", "ranker_less_logged", "naive", "ranker_less_naive")
BASELINE = record(
    {"queries": whole(), "of_queries": whole()},
    {**dict.fromkeys(_BESIDE, _METRICS), **{f"{name}_se": _ERRORS for name in _BESIDE}},
)
TRAINED = record(
    {
        "learner": text,
        "model": choice("mlp", "linear", "lightgbm"),
        "features": each(text, least=1, unique=True),
        "key": each(text, least=1, unique=True),
        "steps": whole(1),
        "pages": whole(),
        "positions": whole(),
        "loss": number(),
        "ndcg": maybe(number(0, 1)),
        "history": each(_MOMENT, least=1),
        "metrics": mapping(mapping(number())),
        "propensities": each(mapping(scalar)),
        "seconds": number(0),
        "provenance": PROVENANCE,
    },
    {
        "note": maybe(text),
        "trees": whole(1),
        "files": SEALS,
        "metrics_se": mapping(mapping(maybe(number(0)))),
        "holdout": maybe(HOLDOUT),
        "baselines": mapping(BASELINE),
        "rates": each(record({"rate": number(0), "validation": maybe(number(0, 1))}), least=1),
    },
)
"""What `train.json` may hold."""


class Ranker(NamedTuple):
    """What scores documents."""

    features: tuple[str, ...]
    key: tuple[str, ...]
    """The columns that name a document."""
    score: Callable[[NDArray[np.float32]], NDArray[Any]]


def prepare(folder: Path, settings: dict[str, Any], resume: bool) -> Path:
    """Make the folder ready and give the path of its checkpoint.

    Training that was broken off is never thrown away, and never gone on with under other settings."""
    checkpoint, known = folder / CHECKPOINT, folder / SETTINGS
    if checkpoint.exists() and resume:
        _require_same(checkpoint, _read_settings(known), settings)
    elif checkpoint.exists() and not (folder / SUMMARY).exists():
        raise EluteError(
            f"{checkpoint} is left from a training that did not finish; add `resume=True` to continue, or delete it"
        )
    else:
        checkpoint.unlink(missing_ok=True)
    write_text(known, json.dumps(settings, indent=1) + "\n")
    return checkpoint


def clear(folder: Path) -> None:
    """Remove an earlier ranker: once this training has come somewhere, and before its first checkpoint."""
    for old in (SUMMARY, NETWORK, TREES):
        (folder / old).unlink(missing_ok=True)


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = read_json(
            path, mapping(anything), "what `elute.train` writes", "delete it and the checkpoint"
        )
    except FileNotFoundError:
        return {}
    return found


def _require_same(checkpoint: Path, was: dict[str, Any], now: dict[str, Any]) -> None:
    for name, value in now.items():
        if was.get(name) != value:
            other = f"other {name}" if isinstance(value, list) else f"{name} {was.get(name)}, not {value}"
            raise EluteError(f"{checkpoint} was made with {other}; use what it was made with, or delete it")


def save_network(folder: Path, arrays: Arrays) -> None:
    """Write a network."""
    write_npz(folder / NETWORK, arrays)


def save_summary(folder: Path, fields: dict[str, Any]) -> None:
    """Write what is known of the ranker."""
    write_text(folder / SUMMARY, json.dumps(fields, indent=1, allow_nan=False) + "\n")


def seal_ranker(folder: Path) -> Seals:
    """Of the ranker's own file, for `files` of `train.json`."""
    return seal(folder, (NETWORK, TREES))


def load(folder: Path) -> Ranker:
    """The ranker in a folder; a network needs numpy alone, trees need LightGBM."""
    return load_ranker(folder, read_summary(folder))


def read_summary(folder: Path) -> dict[str, Any]:
    """The fields of `train.json`, beside which the ranker is as it was written."""
    try:
        fields: dict[str, Any] = read_json(folder / SUMMARY, TRAINED, "what `elute.train` writes", _AGAIN)
    except FileNotFoundError:
        raise EluteError(f"{folder} has no {SUMMARY}; train a ranker into it with `elute.train`") from None
    require_sealed(folder, fields.get("files"), SUMMARY, _AGAIN)
    return fields


def read_ranker(folder: Path, fields: dict[str, Any]) -> Arrays | str:
    """The network that these fields of `train.json` describe, as arrays, or its trees, as LightGBM writes them."""
    trees = fields["model"] == "lightgbm"
    path = folder / (TREES if trees else NETWORK)
    try:
        return read_trees(path, len(fields["features"])) if trees else _read_network(path, len(fields["features"]))
    except Damaged as problem:
        raise _refuse(path, problem) from None


def load_ranker(folder: Path, fields: dict[str, Any]) -> Ranker:
    """What scores by the ranker that these fields of `train.json` describe."""
    found = read_ranker(folder, fields)
    score = _run_trees(found, folder / TREES) if isinstance(found, str) else partial(numpy_scores, found)
    return Ranker(tuple(fields["features"]), tuple(fields["key"]), score)


def _read_network(path: Path, n_features: int) -> Arrays:
    arrays = read_arrays(path)
    require_network(arrays, n_features)
    return arrays


def _run_trees(written: str, path: Path) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    try:
        import lightgbm
    except ImportError as error:
        raise MissingExtra("this ranker", "LightGBM", "trees") from error
    try:
        model = lightgbm.Booster(model_str=written)
    except lightgbm.basic.LightGBMError as error:
        raise _refuse(path, error) from None
    return lambda features: np.asarray(model.predict(features))


def _refuse(path: Path, problem: Exception) -> EluteError:
    return EluteError(f"{path} is not a ranker that elute wrote ({problem}); {_AGAIN}")
