"""The folder of a trained ranker: the ranker itself, `train.json`, and the checkpoint that training goes on from.

`settings.json` is written first and says what the checkpoint belongs to; `train.json` is written last: a folder with it
is complete.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute._util.files import write_text
from elute._util.npz import write_npz
from elute.errors import EluteError, MissingExtra
from elute.ranking.network import Arrays, numpy_scores

NETWORK = "ranker.npz"
TREES = "ranker.txt"
SUMMARY = "train.json"
CHECKPOINT = "checkpoint.npz"
SETTINGS = "settings.json"


class Ranker(NamedTuple):
    """What scores documents."""

    features: tuple[str, ...]
    key: tuple[str, ...]
    """The columns that name a document."""
    score: Callable[[NDArray[np.float32]], NDArray[Any]]


def prepare(folder: Path, settings: dict[str, Any], resume: bool) -> Path:
    """Make the folder ready and give the path of its checkpoint.

    Training that was broken off is never thrown away, and never gone on with under other settings."""
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint, known = folder / CHECKPOINT, folder / SETTINGS
    if checkpoint.exists() and resume:
        _require_same(checkpoint, json.loads(known.read_text()) if known.exists() else {}, settings)
    elif checkpoint.exists() and not (folder / SUMMARY).exists():
        raise EluteError(
            f"{checkpoint} is left from a training that did not finish; add `resume=True` to continue, or delete it"
        )
    else:
        checkpoint.unlink(missing_ok=True)
    for old in (SUMMARY, NETWORK, TREES):
        (folder / old).unlink(missing_ok=True)
    write_text(known, json.dumps(settings, indent=1) + "\n")
    return checkpoint


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


def load(folder: Path) -> Ranker:
    """The ranker in a folder; a network needs numpy alone, trees need LightGBM."""
    try:
        fields = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        return load_ranker(folder, fields)
    except FileNotFoundError:
        raise EluteError(f"{folder} has no {SUMMARY}; train a ranker into it with `elute.train`") from None
    except (ValueError, KeyError, TypeError) as error:
        raise EluteError(f"{folder / SUMMARY} is not what `elute.train` writes ({error}); train again") from error


def load_ranker(folder: Path, fields: dict[str, Any]) -> Ranker:
    """The ranker that these fields of `train.json` describe."""
    features, key = tuple(fields["features"]), tuple(fields["key"])
    trees = fields["model"] == "lightgbm"
    return Ranker(
        features, key, _load_trees(folder / TREES) if trees else _load_network(folder / NETWORK, len(features))
    )


def _load_network(path: Path, n_features: int) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as saved:
            arrays = {name: saved[name] for name in saved.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise EluteError(f"{path} cannot be read ({error}); train again") from error
    if "weight_0" not in arrays or len(arrays["weight_0"]) != n_features:
        raise EluteError(f"{path} is not a network of the {n_features} features that {SUMMARY} lists; train again")
    return lambda features: numpy_scores(arrays, features)


def _load_trees(path: Path) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    try:
        import lightgbm
    except ImportError as error:
        raise MissingExtra("this ranker", "LightGBM", "trees") from error
    try:
        model = lightgbm.Booster(model_file=str(path))
    except lightgbm.basic.LightGBMError as error:
        raise EluteError(f"{path} cannot be read ({error}); train again") from error
    return lambda features: np.asarray(model.predict(features))
