"""The command line: parse, call, print. One module a verb."""

from __future__ import annotations

from typing import Any

import click

from elute import __version__
from elute.cli.audit import audit
from elute.cli.check import check
from elute.cli.convert import convert
from elute.cli.count import count
from elute.cli.demo import demo
from elute.cli.explain import explain
from elute.cli.fit import fit
from elute.cli.judge import judge
from elute.cli.rank import rank
from elute.cli.repair import repair
from elute.cli.report import report
from elute.cli.reproduce import reproduce
from elute.cli.simulate import simulate
from elute.cli.text import plain
from elute.cli.train import train
from elute.errors import EluteError
from elute.urls import censored

_LONGEST = 2000
"""Characters of an error; names from a log may be of any length."""

_SHORT = 200
"""Characters of a verb's line in the list: all of its first sentence."""


_FLOW = ("check", "repair", "fit", "audit", "judge", "report")
"""The verbs in the order in which a log passes through them; the others stand beside them."""

_EPILOG = """\b
Examples:
  elute demo
  elute check demo/broken.parquet
  elute explain thin_factors

\b
Every verb has its own help with examples: elute check --help
Completion in bash (zsh, fish: likewise): eval "$(_ELUTE_COMPLETE=bash_source elute)"
"""


class _Elute(click.Group):
    """Lists the verbs by their place in the flow, and turns errors that are a user's to mend into one line and exit
    code 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_FLOW, *(verb for verb in self.commands if verb not in _FLOW)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        verbs = self.list_commands(ctx)
        for title, part in (("The flow", verbs[: len(_FLOW)]), ("Beside it", verbs[len(_FLOW) :])):
            with formatter.section(title):
                formatter.write_dl([(verb, self.commands[verb].get_short_help_str(_SHORT)) for verb in part])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (EluteError, OSError) as error:
            click.echo(f"elute: {plain(censored(str(error)), _LONGEST)}", err=True)
            ctx.exit(1)


@click.group(cls=_Elute, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="elute")
def main() -> None:
    """Separate relevance from bias in click logs; first find out whether that can be done at all.

    \b
    log → check → repair → fit → audit → judge → report

    A log is touched once and counted; everything after works on the counts. Each step prints a verdict, the
    evidence and the next command.
    """


main.add_command(convert)
main.add_command(check)
main.add_command(count)
main.add_command(repair)
main.add_command(fit)
main.add_command(train)
main.add_command(rank)
main.add_command(audit)
main.add_command(judge)
main.add_command(report)
main.add_command(simulate)
main.add_command(reproduce)
main.add_command(demo)
main.add_command(explain)
