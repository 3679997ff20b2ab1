"""The command line: parse, call, print. One module a verb."""

from __future__ import annotations

from typing import Any

import click

from elute import __version__
from elute.cli.audit import audit
from elute.cli.check import check
from elute.cli.demo import demo
from elute.cli.fit import fit
from elute.cli.rank import rank
from elute.cli.repair import repair
from elute.cli.reproduce import reproduce
from elute.cli.simulate import simulate
from elute.cli.text import plain
from elute.cli.train import train
from elute.errors import EluteError

_LONGEST = 2000
"""Characters of an error; names from a log may be of any length."""


class _Elute(click.Group):
    """Turns errors that are a user's to mend into one line and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (EluteError, OSError) as error:
            click.echo(f"elute: {plain(error, _LONGEST)}", err=True)
            ctx.exit(1)


@click.group(cls=_Elute, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="elute")
def main() -> None:
    """Separate relevance from bias in click logs; first find out whether that can be done at all.

    \b
    check     Can relevance be recovered from this log, and for which queries?
    repair    What is the cheapest thing that makes it recoverable?
    fit       Propensities and relevance, with standard errors.
    train     A ranker of features, learnt from clicks.
    rank      Scores of documents, by such a ranker.
    audit     Is the fit debiased, and which of several is to be trusted?
    simulate  A log whose truth is known.
    reproduce Published tables and figures, run again.
    demo      See it on two logs that elute simulates.
    """


main.add_command(check)
main.add_command(repair)
main.add_command(fit)
main.add_command(train)
main.add_command(rank)
main.add_command(audit)
main.add_command(simulate)
main.add_command(reproduce)
main.add_command(demo)
