"""What `elute check --model` prints: the verdict on a click model, and by component what is not determined."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from elute.cli.text import format_count, to_one_line
from elute.identify.generic.identifiability import GenericIdentifiability

_COMPONENTS, _FACTORS = 8, 5


def show(console: Console, generic: GenericIdentifiability) -> None:
    """Print the verdict, and the components unless all is well."""
    mark, style = ("✓ ", "bold green") if generic.identifiable else ("✗ ", "bold red")
    console.print(Padding(Text(mark + generic.sentence, style=style), (1, 2)))
    if generic.identifiable:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    heads = ("component", "factors", "items", "null dimension", "not determined", "")
    for head in heads:
        table.add_column(head, justify="left" if head == "" else "right")
    for number, part in enumerate(generic.parts[:_COMPONENTS], start=1):
        loose = part.undetermined
        named = "; ".join(to_one_line(factor) for factor in loose[:_FACTORS]) + ("; …" if len(loose) > _FACTORS else "")
        figures = (number, len(part.factors), part.items, part.null_dimension, len(loose))
        table.add_row(*(format_count(figure) for figure in figures), Text(named))
    if len(generic.parts) > _COMPONENTS:
        table.add_row("…", f"{format_count(len(generic.parts) - _COMPONENTS)} more")
    console.print(Padding(table, (0, 2, 1, 2)))
