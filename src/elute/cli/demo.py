"""`elute demo`: the main job on logs whose truth is known."""

from __future__ import annotations

from pathlib import Path

import click

_SESSIONS, _QUERIES, _SEED = 20_000, 120, 7


@click.command()
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default="demo", show_default=True, help="Where to write."
)
def demo(out: Path) -> None:
    """Simulate a sound and a broken log, check both, mend the broken one."""
    from rich.console import Console

    from elute.cli import check_page, repair_page
    from elute.cli.options import Invocation
    from elute.files import write_parquet
    from elute.identify.check import check
    from elute.log import read_log
    from elute.repair.merging import merge
    from elute.simulate import toy

    console = Console()
    for name in ("sound", "broken"):
        write_parquet(out / f"{name}.parquet", toy.simulate(_SESSIONS, _QUERIES, broken=name == "broken", seed=_SEED))

    console.rule("A sound log: documents change places all over the page", style="dim")
    with read_log(out / "sound.parquet") as log:
        check_page.show(console, check(log), Invocation((str(out / "sound.parquet"),), {}))

    console.rule("A broken log: positions 1–4 and 5–10 share no document", style="dim")
    call = Invocation((str(out / "broken.parquet"),), {})
    with read_log(out / "broken.parquet") as log:
        verdict = check(log)
        check_page.show(console, verdict, call)

        console.rule("The cheapest mend without new traffic", style="dim")
        plan = merge(verdict)
        plan.save(out / "merge.json")
        repair_page.show(console, plan, call, str(out / "merge.json"))
    console.print(f"\nBoth logs and the plan are in {out}: try the commands above on them, or on your own log.")
