"""`elute rank`."""

from __future__ import annotations

from pathlib import Path

import click

from elute.cli.options import FILES
from elute.cli.text import print_json
from elute.cli.types import PathType

_EPILOG = """\b
Examples:
  elute simulate --data docs/data/letor.txt --sessions 5000 --out clicks.parquet
  elute train clicks.parquet --features docs/data/letor.txt --model lightgbm --steps 50 --out ranker
  elute rank ranker --features docs/data/letor.txt --out scores.parquet
  elute simulate --data docs/data/letor.txt --policy scores --scores scores.parquet --sessions 1000 --out ranked.parquet
"""


@click.command(epilog=_EPILOG)
@click.argument("folder", metavar="DIR", type=PathType(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--features", multiple=True, required=True, type=FILES, help="Features of the documents: Parquet, or LETOR files."
)
@click.option("--out", type=PathType(dir_okay=False), required=True, help="Parquet file to write the scores to.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def rank(folder: Path, features: tuple[str, ...], out: str, as_json: bool) -> None:
    """Score documents with a ranker that `elute train` left in DIR; a higher score ranks higher.

    The scores come with the columns that name a document, in the order of the features. A network
    needs nothing but numpy; trees need elute[trees].
    """
    from elute.verbs.rank import rank as run

    found = run(folder, features, out)
    if as_json:
        print_json(found.to_json())
    else:
        click.echo(found.sentence)
