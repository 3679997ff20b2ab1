"""Options checked where a function is called: before anything is read, written or deleted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from elute._util.text import to_one_line
from elute.errors import EluteError
from elute.options.kinds import Kind
from elute.options.table import OPTIONS

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., object])


_SETTING = "the setting '{}'"


def takes(**own: Kind | None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the arguments that `OPTIONS` knows, or that are declared here, and refuse in one style:
    `` `seed=` is -1; give a whole number from 0 ``. None: what is called like an option and is another thing."""
    return _check({name: kind for name, kind in {**OPTIONS, **own}.items() if kind is not None}, "`{}=`")


def declares(**own: Kind) -> Callable[[F], F]:
    """The same for a class, or what makes one, with settings of its own (users, policies, learners), which no flag is
    called by: `the setting 'eta' is -1; give a number from 0`."""
    check = _check({"seed": OPTIONS["seed"], **own}, _SETTING)

    def wrap(made: F) -> F:
        if not isinstance(made, type):
            return cast(F, check(made))
        made.__init__ = check(made.__init__)  # type: ignore[misc]
        return made

    return wrap


def take_option(name: str, value: object) -> Any:
    """One option by itself."""
    return _take("`{}=`", name, OPTIONS[name], value)


def take_setting(name: str, kind: Kind, value: object) -> Any:
    """One setting by itself, as `declares` checks it."""
    return _take(_SETTING, name, kind, value)


def _check(kinds: Mapping[str, Kind], called: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        known = {name: kinds[name] for name in signature.parameters if name in kinds}
        defaults = {name: signature.parameters[name].default for name in known}

        @wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(*args, **kwargs)
            for name in known.keys() & bound.arguments.keys():
                value = bound.arguments[name]
                if value is not defaults[name]:
                    bound.arguments[name] = _take(called, name, known[name], value)
            return function(*bound.args, **bound.kwargs)

        return wrapped

    return wrap


def _take(called: str, name: str, kind: Kind, value: object) -> object:
    try:
        return kind.take(value)
    except ValueError:
        raise EluteError(f"{called.format(name)} is {to_one_line(repr(value), 60)}; give {kind.wanted}") from None
