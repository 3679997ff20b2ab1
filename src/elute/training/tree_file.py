"""A file of LightGBM's trees, read before LightGBM reads it: on one that is cut short or does not fit together it does
not fail but ends the process.

The file has a header, then for every tree a block of lines `name=values`, then what training was told, which no score
needs. `tree_sizes` gives the bytes of the blocks, by which LightGBM finds them. Only what elute grows passes: one tree
a step, without categories and without linear leaves.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elute.door.fields import Damaged

Ints = NDArray[np.int64]

_MOST = 2**30
"""Bytes of a file."""
_END = b"end of trees"
_NUMBER = r"-?\d{1,40}(\.\d{1,400})?(e[-+]?\d{1,3})?"
_NUMBERS = re.compile(f"{_NUMBER}( {_NUMBER})*")
_WHOLE = re.compile(r"-?\d{1,9}( -?\d{1,9})*")
_RANGE = re.compile(f"none|\\[{_NUMBER}:{_NUMBER}\\]")

_HEADER = {
    *("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx"),
    *("feature_names", "feature_infos", "tree_sizes"),
}
_OF_SPLITS = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child")
_ALSO_OF_SPLITS = ("internal_value", "internal_weight", "internal_count")
_ALSO_OF_LEAVES = ("leaf_weight", "leaf_count")
_OF_TREE = ("num_leaves", "num_cat", "leaf_value", "is_linear", "shrinkage")
_TREE = {*_OF_TREE, *_OF_SPLITS, *_ALSO_OF_SPLITS, *_ALSO_OF_LEAVES}
_CODES = ("split_feature", "decision_type", "left_child", "right_child")


class TreeRows(NamedTuple):
    """A split a row, the first being the root; children below 0 are leaves, −1 the first."""

    feature: Ints
    threshold: NDArray[np.float64]
    kind: Ints
    """LightGBM's `decision_type`, of bits: 2, what is missing goes left; 4, zeros are missing; 8, NaN is."""
    left: Ints
    right: Ints
    leaf: NDArray[np.float64]


def read_trees(path: Path, n_features: int) -> str:
    """The trees of a file, which fit together and split by features below `n_features`."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST + 1)
        data.decode("ascii")
    except FileNotFoundError:
        raise Damaged("there is no such file") from None
    except IsADirectoryError:
        raise Damaged("it is a folder") from None
    except UnicodeError:
        raise Damaged("it is not text") from None
    if len(data) > _MOST:
        raise Damaged(f"it has more than {_MOST:,} bytes")
    head, found, rest = data.partition(b"Tree=0\n")
    if not head.startswith(b"tree\n") or not found:
        raise Damaged("it has no trees")
    header, trees = _split(head[len(b"tree\n") :], _HEADER), found + rest
    _check_header(header, n_features)
    end = _check_blocks(trees, header["tree_sizes"], n_features)
    return (head + trees[:end] + _END + b"\n").decode("ascii")


def split_trees(written: str) -> list[TreeRows]:
    """The trees of what `read_trees` gave."""
    blocks = written.removesuffix(_END.decode() + "\n").split("Tree=")[1:]
    return [_parse_tree(dict(line.partition("=")[::2] for line in block.split("\n")[1:])) for block in blocks]


def _parse_tree(lines: dict[str, str]) -> TreeRows:
    def row(name: str) -> NDArray[np.float64]:
        return np.array(lines[name].split(" ") if lines.get(name) else [], np.float64)

    feature, kind, left, right = (row(name).astype(np.int64) for name in _CODES)
    return TreeRows(feature, row("threshold"), kind, left, right, row("leaf_value"))


def _check_header(lines: dict[str, str], n_features: int) -> None:
    if lines.keys() != _HEADER or lines["version"] not in ("v3", "v4") or lines["label_index"] != "0":
        raise Damaged("its header is not LightGBM's")
    if lines["num_class"] != "1" or lines["num_tree_per_iteration"] != "1":
        raise Damaged("it has several trees a step")
    width, ranges = len(lines["feature_names"].split(" ")), lines["feature_infos"].split(" ")
    if width != n_features or lines["max_feature_idx"] != str(width - 1) or len(ranges) != width:
        raise Damaged(f"its trees are not of the {n_features} features of the ranker")
    if not all(_RANGE.fullmatch(one) for one in ranges):
        raise Damaged("its header is not LightGBM's")


def _check_blocks(data: bytes, sizes: str, width: int) -> int:
    """Where the trees end."""
    at = 0
    for number, size in enumerate(_read_row(sizes, "tree_sizes", _WHOLE).astype(np.int64).tolist()):
        block, title = data[at : at + max(size, 0)], b"Tree=%d\n" % number
        if not block.startswith(title) or not block.endswith(b"\n"):
            raise Damaged(f"tree {number} is cut short")
        try:
            _check_tree(_split(block[len(title) :], _TREE), width)
        except Damaged as problem:
            raise Damaged(f"tree {number}: {problem}") from None
        at += size
    if not at or not data[at:].startswith(_END):
        raise Damaged("it is cut short")
    return at


def _check_tree(lines: dict[str, str], width: int) -> None:
    rows = {name: _read_row(values, name, _NUMBERS) for name, values in lines.items()}
    missing = [name for name in _OF_TREE if name not in rows]
    if missing:
        raise Damaged(f"it has no {missing[0]}")
    if lines["num_cat"] != "0" or lines["is_linear"] != "0" or not _WHOLE.fullmatch(lines["num_leaves"]):
        raise Damaged("it is of another kind than elute grows")
    leaves = int(rows["num_leaves"][0])
    lengths = dict.fromkeys(("num_leaves", "num_cat", "is_linear", "shrinkage"), 1)
    lengths |= dict.fromkeys(("leaf_value", *_ALSO_OF_LEAVES), leaves)
    lengths |= dict.fromkeys((*_OF_SPLITS, *_ALSO_OF_SPLITS), leaves - 1)
    for name, row in rows.items():
        if len(row) != lengths[name]:
            raise Damaged(f"{name} has {len(row):,} values, not {lengths[name]:,}")
    if leaves > 1:
        missing = [name for name in _OF_SPLITS if name not in rows]
        if missing:
            raise Damaged(f"it has no {missing[0]}")
        _check_splits(width, *(_read_row(lines[name], name, _WHOLE).astype(np.int64) for name in _CODES))


def _check_splits(width: int, feature: Ints, kind: Ints, left: Ints, right: Ints) -> None:
    """Each has a feature and two ways on. Every split but the first, and every leaf (written as −1, −2, …), is reached
    once, from a split that comes before: so every way down ends."""
    if feature.min() < 0 or feature.max() >= width or not np.isin(kind, (0, 2, 4, 6, 8, 10)).all():
        raise Damaged("it splits by what is no feature")
    reached = np.sort(np.concatenate((left, right)))
    if not np.array_equal(reached, np.concatenate((np.arange(-len(left) - 1, 0), np.arange(1, len(left))))):
        raise Damaged("its branches do not fit together")
    if any((child[child >= 0] <= np.flatnonzero(child >= 0)).any() for child in (left, right)):
        raise Damaged("its branches lead back")


def _split(block: bytes, known: set[str]) -> dict[str, str]:
    """Lines by name; each is known and there once."""
    found: dict[str, str] = {}
    for line in block.decode("ascii").split("\n"):
        name, mark, values = line.partition("=")
        if not line:
            continue
        if not mark or name not in known or name in found:
            raise Damaged(f"'{name[:40]}' does not belong there")
        found[name] = values
    return found


def _read_row(values: str, name: str, pattern: re.Pattern[str]) -> NDArray[np.float64]:
    if not pattern.fullmatch(values):
        raise Damaged(f"{name} are not numbers")
    row = np.array(values.split(" "), np.float64)
    if not np.isfinite(row).all():
        raise Damaged(f"{name} are not numbers")
    return row
