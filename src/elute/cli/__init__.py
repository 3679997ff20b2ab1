"""The command line: parse, call, print. One module a verb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elute.cli.commands import BESIDE, FLOW, VERBS, LazyCommands
from elute.cli.kernels import announce_compiling
from elute.errors import EluteError, NotRecoverable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_LONGEST = 2000
"""Characters of an error; names from a log may be of any length."""

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
    """Lists the verbs by their place in the flow, importing none, and turns errors that a user can repair into one
    line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in (("The flow", FLOW), ("Beside it", BESIDE)):
            with formatter.section(title):
                formatter.write_dl(list(verbs.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(verb, help=text) for verb, text in VERBS.items() if verb.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with announce_compiling():
                return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (EluteError, OSError) as error:
            from elute.cli.options import NOT_RECOVERABLE

            click.echo(f"elute: {_format_error(error)}", err=True)
            ctx.exit(NOT_RECOVERABLE if isinstance(error, NotRecoverable) else 1)


def _format_error(error: Exception) -> str:
    """What an error says, in the command line's words, without secrets and without end."""
    from elute._util.text import to_one_line
    from elute._util.urls import censor_urls
    from elute.cli.spelling import spell

    return to_one_line(censor_urls(spell(str(error))), _LONGEST)


@click.group(
    cls=_Elute, commands=LazyCommands(), epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="elute", prog_name="elute")
def main() -> None:
    """Separate relevance from bias in click logs; first find out whether that can be done at all.

    \b
    log → check → repair → fit → audit → judge → report

    A log is touched once and counted; everything after works on the counts. Each step prints a verdict, the
    evidence and the next command.
    """
