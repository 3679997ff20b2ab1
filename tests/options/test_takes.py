"""Options: what they may be, refused in one style by the library and the command line alike."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elute
from elute.cli import main
from elute.cli.commands import VERBS
from elute.cli.types import typed
from elute.options.kinds import (
    Flag,
    NamedNumbers,
    Number,
    Numbers,
    OneOf,
    OneOrMore,
    PathName,
    Text,
    Texts,
    Whole,
    WordOr,
)
from elute.options.table import OPTIONS
from elute.options.takes import declares, takes

FUNCTIONS: dict[str, Callable[..., object]] = {
    name: getattr(elute, name)
    for name in ("audit", "check", "cmip", "convert", "count", "export", "fit", "judge", "merge", "rank", "read_log")
} | {name: getattr(elute, name) for name in ("report", "simulate", "swap", "train")}

JUNK: tuple[object, ...] = (object(), b"x", 1j, float("nan"), {1: 2}, [None], 10**400, "", "\x00", "\udcff")
"""What no option may be."""


@pytest.mark.parametrize(("least", "most"), [(0, 9), (1, 2**63 - 1), (-3, 3)])
@given(value=st.one_of(st.integers(), st.floats(), st.booleans(), st.text(max_size=5)))
def test_whole_numbers(least: int, most: int, value: object) -> None:
    fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    assert accepts(Whole(least, most), value) == fits


@pytest.mark.parametrize("ends", [(False, False), (True, False), (False, True), (True, True)])
@given(value=st.one_of(st.floats(-0.5, 1.5), st.sampled_from([0, 1, 0.0, 1.0, math.inf, math.nan]), st.booleans()))
def test_numbers(ends: tuple[bool, bool], value: float) -> None:
    low = value > 0 if ends[0] else value >= 0
    high = value < 1 if ends[1] else value <= 1
    assert accepts(Number(0, 1, ends), value) == (low and high and not isinstance(value, bool))


def accepts(kind: Any, value: object) -> bool:
    try:
        taken = kind.take(value)
    except ValueError:
        return False
    assert taken == value
    return True


def test_what_numpy_makes_becomes_pythons_own() -> None:
    assert type(Whole().take(np.int64(3))) is int
    assert type(Number().take(np.float32(0.5))) is float
    assert type(Flag().take(np.bool_(True))) is bool
    assert type(Number().take(3)) is int


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (Whole(), "a whole number from 0"),
        (Whole(1, 4096), "a whole number from 1 to 4,096"),
        (Number(), "a number"),
        (Number(0), "a number from 0"),
        (Number(0, open=(True, False)), "a number above 0"),
        (Number(0, 1), "a number from 0 to 1"),
        (Number(0, 1, (True, False)), "a number above 0 and up to 1"),
        (Number(0, 1, (True, True)), "a number above 0 and below 1"),
        (WordOr("auto", Number(0, 1)), "a number from 0 to 1, or auto"),
        (OneOf(words=("a", "b", "c")), "a, b or c"),
        (Numbers(), "several numbers, each a number"),
        (OneOrMore(Whole(1, 9)), "a whole number from 1 to 9, or several"),
        (NamedNumbers(Number(0)), "names, and for each a number from 0"),
    ],
)
def test_what_is_wanted_in_words(kind: Any, wanted: str) -> None:
    assert kind.wanted == wanted


def test_words_of_the_command_line() -> None:
    assert WordOr("auto", Number(0, 1)).read("auto") == "auto"
    assert WordOr("auto", Number(0, 1)).read("0.5") == 0.5
    assert Numbers().read("1, 2.5") == [1, 2.5]
    assert (OneOrMore(Whole()).read("64,32"), OneOrMore(Whole()).read("64")) == ([64, 32], 64)
    assert (OneOrMore(Number()).take((1, 0.5)), OneOrMore(Number()).take(0.5)) == ([1, 0.5], 0.5)
    for junk in ((), (1, None), "1", {1: 2}):
        assert not accepts(OneOrMore(Number()), junk)
    assert NamedNumbers().read("a=1, b =2") == {"a": 1, "b": 2}
    for kind, text in ((NamedNumbers(), "a=1,a=2"), (NamedNumbers(), "a"), (NamedNumbers(), "=1"), (Numbers(), "1,,2")):
        with pytest.raises(ValueError):
            kind.read(text)
    assert Texts().take(("a", "b")) == ("a", "b")
    assert PathName().take(Path("a")) == Path("a")
    assert Text().take("a\nb") == "a\nb"


OWN = {("cmip", "grades"), ("value", "estimator"), ("train", "clip"), ("value", "clip"), ("value", "policy")}
"""What is called like an option and is another thing there."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_library_refuses_what_an_option_may_not_be(name: str, tmp_path: Path) -> None:
    """Before anything is looked for: none of the files is there."""
    function = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters
    required = {
        each: str(tmp_path / "nowhere")
        for each, parameter in parameters.items()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    }
    known = [option for option in parameters if option in OPTIONS and (name, option) not in OWN]
    assert known
    for option in known:
        for junk in JUNK:
            with pytest.raises(elute.EluteError) as refused:
                function(**{**required, option: junk})
            assert str(refused.value).startswith(f"`{option}=` is "), (option, junk)
            assert str(refused.value).endswith(f"; give {OPTIONS[option].wanted}")
            assert "\n" not in str(refused.value)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_command_line_reads_options_by_the_same_table(verb: str) -> None:
    for option in main.commands[verb].params:
        kind = OPTIONS.get(str(option.name))
        if (verb, option.name) in OWN:
            continue
        if isinstance(kind, Whole | Number | Numbers | OneOrMore | NamedNumbers | WordOr) and option.name != "memory":
            assert getattr(option.type, "kind", None) == kind, option.name
            if isinstance(option.default, int | float):
                assert kind.take(option.default) == option.default
        if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType):
            assert kind is not None, option.name
        if isinstance(kind, OneOf) and isinstance(option.type, click.Choice):
            assert tuple(option.type.choices) == kind.words, option.name


def test_both_say_the_same_of_a_value() -> None:
    with pytest.raises(elute.EluteError) as refused:
        elute.check("nowhere", seed=-1)
    with pytest.raises(click.BadParameter) as typed_wrong:
        typed("seed").convert("-1", None, None)
    assert str(refused.value).partition("; ")[2] == typed_wrong.value.message.partition("; ")[2]


def test_a_default_is_taken_as_it_is() -> None:
    @takes(seed=Whole(1))
    def draw(seed: int | None = None) -> int | None:
        return seed

    assert draw() is None
    assert draw(None) is None
    assert draw(2) == 2
    with pytest.raises(elute.EluteError, match="`seed=` is 0; give a whole number from 1"):
        draw(0)

    @takes(seed=None)
    def free(seed: object) -> object:
        return seed

    assert free("x") == "x"


def test_classes_declare_their_settings() -> None:
    @declares(eta=Number(0))
    class Made:
        def __init__(self, eta: float = 1.0) -> None:
            self.eta = eta

    assert Made(2).eta == 2
    assert list(inspect.signature(Made).parameters) == ["eta"]
    with pytest.raises(elute.EluteError, match="the setting 'eta' is -1; give a number from 0"):
        Made(-1)


def test_models_refuse_too() -> None:
    for call in (
        lambda: elute.PBM(seed=-1),
        lambda: elute.PBM(tolerance=math.nan),
        lambda: elute.DLA(max_iter=0),
        lambda: elute.IPW(propensities=None, clip=-1),
    ):
        with pytest.raises(elute.EluteError, match="; give a"):
            call()
