"""The command line: parse, call, print. One module a verb."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from elute.cli.commands import BESIDE, DEBUG, FLOW, VERBS, LazyCommands, make_debug_option
from elute.cli.ending import LONGEST, end, in_one_line, leave_if_interrupted
from elute.cli.kernels import announce_compiling
from elute.cli.text import make_streams_plain, to_one_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

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
    """Lists the verbs by their place in the flow, importing none, and ends in one line and an exit code whatever
    happens."""

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

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *more: Any, **extra: Any) -> Any:
        if not extra.get("standalone_mode", True):
            return super().main(args, prog_name, *more, **extra)
        try:
            with in_one_line(DEBUG in (sys.argv[1:] if args is None else args)):
                make_streams_plain()
                return super().main(args, prog_name, *more, **extra)
        except SystemExit as left:
            if args is None:  # a process of its own, not a call from Python
                leave_if_interrupted(left)
            raise

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with announce_compiling():
                return super().invoke(ctx)
        except (click.MissingParameter, click.exceptions.Exit, BrokenPipeError):
            raise
        except click.UsageError as error:  # all others hold what was typed
            raise click.UsageError(to_one_line(error.format_message(), LONGEST), error.ctx) from None
        except (Exception, KeyboardInterrupt) as error:
            end(error, bool(ctx.meta.get(DEBUG)))


@click.group(
    cls=_Elute,
    commands=LazyCommands(),
    epilog=_EPILOG,
    params=[make_debug_option()],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="elute", prog_name="elute")
def main() -> None:
    """Separate relevance from bias in click logs; first find out whether that can be done at all.

    \b
    log → check → repair → fit → audit → judge → report

    A log is touched once and counted; everything after works on the counts. Each step prints a verdict, the
    evidence and the next command.
    """
