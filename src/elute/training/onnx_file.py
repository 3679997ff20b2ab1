"""A ranker as ONNX, which search engines and model servers run without elute, JAX or LightGBM.

One input, `features`: float32, a row a document, the ranker's features in their order and as they are, since the scale
they are put on is part of the graph. One output, `scores`, a number a document.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elute._util.atomic import write_atomically
from elute.errors import EluteError, MissingExtra
from elute.ranking.network import Arrays
from elute.training.tree_file import TreeRows, split_trees

INPUT, OUTPUT = "features", "scores"
OPSET = 17
_TREE_OPSET = 3
_TREE_DOMAIN = "ai.onnx.ml"
_FORMAT = 8
"""Of the file: with these opsets, what runtimes read since 2022."""
_MOST = 2**31 - 1
"""Bytes of a message of protobuf."""

Nodes = list[tuple[str, tuple[str, ...], str, dict[str, Any]]]
"""Operator, inputs, output, attributes."""


def write_onnx(path: Path, ranker: Arrays | str, about: dict[str, Any]) -> int:
    """Write a network's arrays, or trees as LightGBM has them, and give the bytes written.

    `about`: fields of `train.json` that the file carries too; `features` is one of them."""
    try:
        import onnx
    except ImportError as error:
        raise MissingExtra("`elute.export`", "onnx", "onnx") from error
    if isinstance(ranker, str):
        nodes, constants = _describe_trees(split_trees(ranker))
    else:
        nodes, constants = _describe_network(ranker)
    if sum(array.nbytes for array in constants.values()) > _MOST:
        raise EluteError(f"the ranker has more than the {_MOST:,} bytes that ONNX can hold; train a smaller one")
    made = onnx.helper
    kind, width = onnx.TensorProto.FLOAT, len(about["features"])
    graph = made.make_graph(
        [
            made.make_node(what, taken, [given], domain=_TREE_DOMAIN if what.startswith("Tree") else None, **settings)
            for what, taken, given, settings in nodes
        ],
        "ranker",
        [made.make_tensor_value_info(INPUT, kind, ["documents", width])],
        [made.make_tensor_value_info(OUTPUT, kind, ["documents"])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [made.make_opsetid("", OPSET), made.make_opsetid(_TREE_DOMAIN, _TREE_OPSET)]
    model = made.make_model(graph, producer_name="elute", opset_imports=opsets, ir_version=_FORMAT)
    made.set_model_props(model, {name: json.dumps(value, ensure_ascii=False) for name, value in about.items()})
    data: bytes = model.SerializeToString()
    with write_atomically(path) as temporary:
        temporary.write_bytes(data)
    return len(data)


def _describe_network(network: Arrays) -> tuple[Nodes, dict[str, NDArray[Any]]]:
    """The steps of `elute.ranking.network.numpy_scores`: as there, the scale is in float64 and the rest in float32."""
    constants: dict[str, NDArray[Any]] = {
        name: np.ascontiguousarray(array, np.float32) for name, array in network.items() if name not in ("mean", "sd")
    }
    nodes: Nodes = []
    x = INPUT
    if "mean" in network:
        constants |= {name: network[name].astype(np.float64) for name in ("mean", "sd")}
        constants["one"] = np.ones(1)
        nodes += [
            ("Cast", (INPUT,), "wide", {"to": _type_of(np.float64)}),
            ("Sign", ("wide",), "sign", {}),
            ("Abs", ("wide",), "size", {}),
            ("Add", ("size", "one"), "more", {}),
            ("Log", ("more",), "log", {}),
            ("Mul", ("sign", "log"), "signed", {}),
            ("Sub", ("signed", "mean"), "centred", {}),
            ("Div", ("centred", "sd"), "standard", {}),
            ("Cast", ("standard",), "scaled", {"to": _type_of(np.float32)}),
        ]
        x = "scaled"
    layers = sum(name.startswith("weight_") for name in network)
    for number in range(layers):
        nodes.append(("Gemm", (x, f"weight_{number}", f"bias_{number}"), f"layer_{number}", {}))
        x = f"layer_{number}"
        if number < layers - 1:
            nodes.append(("Elu", (x,), f"active_{number}", {}))
            x = f"active_{number}"
    if "base" in network:
        nodes += [("Softplus", (x,), "vector", {}), ("MatMul", ("vector", "base"), OUTPUT, {})]
    else:
        nodes.append(_flatten(x, constants))
    return nodes, constants


def _describe_trees(trees: Sequence[TreeRows]) -> tuple[Nodes, dict[str, NDArray[Any]]]:
    """One operator for all. Splits come first in a tree, then its leaves."""
    if any((tree.kind & 4).any() for tree in trees):
        raise EluteError("the ranker's trees take zeros for gaps, which elute grows none of; train again")
    splits = [len(tree.feature) for tree in trees]
    sizes = [2 * count + 1 for count in splits]
    parts = [_describe_tree(tree) for tree in trees]
    leaves = [np.arange(count, size) for count, size in zip(splits, sizes, strict=True)]
    settings: dict[str, Any] = {
        "n_targets": 1,
        "nodes_treeids": np.repeat(np.arange(len(trees)), sizes).tolist(),
        "nodes_nodeids": np.concatenate([np.arange(size) for size in sizes]).tolist(),
        "nodes_modes": [mode for n in splits for mode in ("BRANCH_LEQ",) * n + ("LEAF",) * (n + 1)],
        **{f"nodes_{name}": np.concatenate([part[name] for part in parts]).tolist() for name in parts[0]},
        "target_treeids": np.repeat(np.arange(len(trees)), [count + 1 for count in splits]).tolist(),
        "target_nodeids": np.concatenate(leaves).tolist(),
        "target_ids": [0] * (sum(splits) + len(splits)),
        "target_weights": np.concatenate([tree.leaf for tree in trees]).astype(np.float32).tolist(),
    }
    constants: dict[str, NDArray[Any]] = {}
    return [("TreeEnsembleRegressor", (INPUT,), "summed", settings), _flatten("summed", constants)], constants


def _describe_tree(tree: TreeRows) -> dict[str, NDArray[Any]]:
    """By attribute, its nodes; in leaves there is 0. NaN goes where LightGBM sends it: to the side of what is missing,
    or, where nothing is missing, to that of 0."""
    gap_is_missing, missing_goes_left = (tree.kind & 12) == 8, (tree.kind & 2) > 0
    columns: dict[str, NDArray[Any]] = {
        "featureids": tree.feature,
        "values": _round_down(tree.threshold),
        "truenodeids": _number_nodes(tree.left),
        "falsenodeids": _number_nodes(tree.right),
        "missing_value_tracks_true": np.where(gap_is_missing, missing_goes_left, tree.threshold >= 0).astype(np.int64),
    }
    return {name: np.pad(column, (0, len(tree.leaf))) for name, column in columns.items()}


def _number_nodes(children: NDArray[np.int64]) -> NDArray[np.int64]:
    """LightGBM writes the leaves as −1, −2, …"""
    return np.where(children >= 0, children, len(children) - 1 - children)


def _round_down(threshold: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above: every float32 then falls on the side it has with the float64."""
    with np.errstate(over="ignore"):
        near = threshold.astype(np.float32)
    return np.where(near.astype(np.float64) > threshold, np.nextafter(near, np.float32(-np.inf)), near)


def _flatten(column: str, constants: dict[str, NDArray[Any]]) -> tuple[str, tuple[str, ...], str, dict[str, Any]]:
    """(documents, 1) to (documents)."""
    constants["flat"] = np.array([-1])
    return "Reshape", (column, "flat"), OUTPUT, {}


def _type_of(kind: type[np.floating[Any]]) -> int:
    import onnx

    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
