"""What all models say of themselves: their parameters, and that they are not fitted yet."""

from __future__ import annotations

import inspect
from typing import NoReturn

from elute.errors import NotFitted

_LONGEST = 80


def describe_parameters(model: object) -> str:
    """`PBM(seed=0, …)`: the constructor's parameters as they stand; what only watches a fit is left out."""
    names = (name for name in inspect.signature(type(model)).parameters if name != "progress")
    return f"{type(model).__name__}({', '.join(f'{name}={_abridge(getattr(model, name))}' for name in names)})"


def refuse_attribute(model: object, name: str, first: str) -> NoReturn:
    """The error for an attribute that a model does not have; one that ends in `_` comes with the fit. `first`: what to
    call before."""
    if name.endswith("_") and not name.startswith("_"):
        raise NotFitted(f"{type(model).__name__} has no '{name}' before it is fitted; call {first} first")
    raise AttributeError(f"'{type(model).__name__}' object has no attribute '{name}'")


def _abridge(value: object) -> str:
    """A parameter in few words: a table or an array by its size."""
    rows, shape = getattr(value, "num_rows", None), getattr(value, "shape", None)
    if rows is not None:
        return f"<table of {rows:,} rows>"
    if shape:
        return f"<array of {' × '.join(f'{length:,}' for length in shape)}>"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
