"""`elute repair --continue`: a look at a swap plan instead of a new plan. LOG and --method are then not needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from elute.cli.options import FILES
from elute.cli.text import print_json
from elute.cli.types import PathType
from elute.results.invocation import DEFAULTS

_NOT_NEEDED = ("sources", "method")

_OPTIONS = (
    click.option(
        "--continue",
        type=PathType(dir_okay=False),
        metavar="PLAN",
        help="Look at a swap plan while it is carried out: what is learnt, what is left, whether to stop. LOG is then "
        "the log it was made for.  [default: the one that it names]",
    ),
    click.option(
        "--log",
        multiple=True,
        type=FILES,
        help="With --continue: what users were shown since the plan was made, or since it was last continued.",
    ),
)


def continues_plan(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that plans the options above."""
    required = [parameter for parameter in command.__click_params__ if parameter.name in _NOT_NEEDED]  # type: ignore[attr-defined]
    for parameter in required:
        parameter.required = False

    @wraps(command)
    def wrapped(**given: Any) -> None:
        context = click.get_current_context()
        plan, new = given.pop("continue"), given.pop("log")
        if plan is None and new:
            raise click.UsageError(
                "--log goes with --continue; the log to plan for is named without an option", context
            )
        if plan is None:
            for parameter in required:
                if not given[parameter.name]:
                    raise click.MissingParameter(ctx=context, param=parameter)
            command(**given)
            return
        if not new:
            raise click.UsageError("--continue needs --log: what users were shown since the plan was made", context)
        _continue(plan, new, given)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def _continue(plan: str, new: tuple[str, ...], given: dict[str, Any]) -> None:
    """A look; --out is where the plan for what is left goes."""
    from rich.console import Console

    from elute._util.paths import refuse_harm
    from elute.cli.pages import following as page
    from elute.cli.progress import Reporter
    from elute.verbs.follow import follow
    from elute.verbs.source import as_plan

    refuse_harm(given["out"], [as_plan(plan).provenance.log])
    columns = {name: given[name] for name in DEFAULTS}
    with Reporter() as progress:
        found = follow(plan, new, given["sources"] or None, date=given["date"], progress=progress, **columns)
    out = given["out"]
    if out is not None:
        found.rest.save(out)
    if given["as_json"]:
        print_json(found.to_json())
    else:
        page.show(Console(), found, out)
