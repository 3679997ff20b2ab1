"""`elute explain`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from elute.cli.text import print_json

_EPILOG = """\b
Examples:
  elute explain
  elute explain thin_factors
  elute explain not_rankable --json
"""


def _complete_codes(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """For completion in a shell: the codes that begin so, with what they mean."""
    from elute.results.explanations import EXPLANATIONS

    return [CompletionItem(code, help=text.meaning) for code, text in EXPLANATIONS.items() if code.startswith(typed)]


@click.command(epilog=_EPILOG)
@click.argument("code", required=False, shell_complete=_complete_codes)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def explain(code: str | None, as_json: bool) -> None:
    """What a code in a warning, a finding or a summary means, why it matters and what to do.

    Without a CODE, list them all.
    """
    import json

    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from elute.results.explanations import EXPLANATIONS
    from elute.results.explanations import explain as look_up

    console = Console()
    if code is not None:
        name, found = look_up(code)
        if as_json:
            print_json(json.dumps({"code": name, **found._asdict()}, ensure_ascii=False))
            return
        head = Text.assemble((name, "bold yellow"), (f"  (elute {found.verb})", "dim"))
        grid = Table.grid(padding=(0, 2))
        for label, text in (("What", found.meaning), ("Why it matters", found.why), ("What to do", found.do)):
            grid.add_row(Text(label, style="bold"), Text(text))
        console.print(Padding(head, (1, 2)))
        console.print(Padding(grid, (0, 2)))
        console.print(Text.assemble(("\n  Example: ", "bold"), found.example), soft_wrap=True)
        return
    if as_json:
        listed = {name: found._asdict() for name, found in EXPLANATIONS.items()}
        print_json(json.dumps(listed, ensure_ascii=False))
        return
    for verb in dict.fromkeys(found.verb.split()[0] for found in EXPLANATIONS.values()):
        table = Table(title=f"elute {verb}", title_justify="left", title_style="bold", box=None, show_header=False)
        for name, found in EXPLANATIONS.items():
            if found.verb.split()[0] == verb:
                table.add_row(Text(name, style="yellow", no_wrap=True), Text(found.meaning))
        console.print(Padding(table, (1, 2, 0, 2)))
