"""`elute demo`: the main job on logs whose truth is known."""

from __future__ import annotations

from pathlib import Path

import click

_SESSIONS, _QUERIES, _SEED = 20_000, 120, 7


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="demo",
    show_default=True,
    help="Where to write.",
)
def demo(out: Path) -> None:
    """Simulate a sound and a broken log, check both, and say what to try next."""
    from rich.console import Console

    from elute.cli import check_page
    from elute.cli.options import Invocation
    from elute.files import write_parquet
    from elute.identify.check import check
    from elute.log import read_log
    from elute.simulate import toy

    console = Console()
    stories = {
        "sound": "A sound log: documents change places with their neighbours, all over the page",
        "broken": "A broken log: positions 1–4 and 5–10 are filled by two systems that share no document",
    }
    for name, story in stories.items():
        path = out / f"{name}.parquet"
        write_parquet(path, toy.simulate(_SESSIONS, _QUERIES, broken=name == "broken", seed=_SEED))
        console.rule(story, style="dim")
        with read_log(path) as log:
            check_page.show(console, check(log), Invocation((str(path),), {}))
    console.print(f"Both logs are in {out}: try the commands above on them, or on yours.")
