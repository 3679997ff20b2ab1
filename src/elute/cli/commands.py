"""The verbs by name and by what they say of themselves, so that help, completion and typos need not import them.

A verb's module, in `elute.cli.verbs`, is imported when the verb is asked for. Its line stands here a second time;
tests/cli/test_help.py compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import cast

import click

from elute.cli.outputs import guard

FLOW = {
    "check": "Can relevance be recovered from this log, for which queries, and how much of it is known?",
    "repair": "What is the cheapest thing that makes this log recoverable?",
    "fit": "Propensities of factors and relevance of items, with standard errors.",
    "audit": "Is a fit debiased, which of several is to be trusted, and do their assumptions hold?",
    "judge": "Export what 'elute fit' left in FIT: judgments with grades, or click data to train a ranker on.",
    "report": "One page on a log, for people: the verdict, the graph, propensities, relevance against clicks.",
}
"""The verbs in the order in which a log passes through them."""

BESIDE = {
    "value": "What would another ranking earn: expected clicks a page, with error bars, and what cannot be told.",
    "convert": "Write a log of another format as the Parquet that the other commands read: a row for every result "
    "shown.",
    "count": "Count a log once; then give the folder of counts to the other verbs in its place.",
    "sql": "Print the statement that counts a log's cells in the warehouse where it is.",
    "watch": "What changed in a folder of parts, period by period, and is it more than chance?",
    "train": "Learn a ranker from the clicks of a log and features of its documents.",
    "rank": "Score documents with a ranker that `elute train` left in DIR; a higher score ranks higher.",
    "export": "Write a ranker that `elute train` left in DIR as ONNX, for search engines and model servers.",
    "simulate": "A click log whose truth is known: real documents and grades, a policy that ranks, a user who clicks.",
    "reproduce": "Run a published table or figure again: published and measured values side by side.",
    "demo": "Simulate a sound and a broken log, check both, repair the broken one by a merge and by swaps that are "
    "shown, fit, audit and judge, and report.",
    "explain": "What a code in a warning, a finding or a summary means, why it matters and what to do.",
}

VERBS = FLOW | BESIDE

_COUNTING = ("count", "sql", "watch")
"""Verbs that lie in a folder of that name."""

DEBUG = "--debug"


def make_debug_option() -> click.Option:
    """Every verb has it, and so has `elute` itself: whoever needs it adds it to the command that failed."""

    def remember(context: click.Context, _: click.Parameter, given: bool) -> None:
        if given:
            context.meta[DEBUG] = True

    shows = "Show where an error comes from."
    return click.Option([DEBUG], is_flag=True, expose_value=False, is_eager=True, callback=remember, help=shows)


def _load(verb: str) -> click.Command:
    """What all commands have is added to each once."""
    home = f"counting.{verb}" if verb in _COUNTING else verb
    found = cast(click.Command, getattr(import_module(f"elute.cli.verbs.{home}"), verb))
    if any(DEBUG in parameter.opts for parameter in found.params):
        return found
    found.params.append(make_debug_option())
    return guard(found)


class LazyCommands(Mapping[str, click.Command]):
    """The verbs' commands, each imported when it is looked up."""

    def __getitem__(self, verb: str) -> click.Command:
        if verb not in VERBS:
            raise KeyError(verb)
        return _load(verb)

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)
