"""`elute export`."""

from __future__ import annotations

from pathlib import Path

import click

from elute.cli.text import print_json
from elute.cli.types import PathType

_EPILOG = """\b
Examples:
  elute simulate --data docs/data/letor.txt --sessions 5000 --out clicks.parquet
  elute train clicks.parquet --features docs/data/letor.txt --model lightgbm --steps 50 --out ranker
  elute export ranker --out ranker.onnx
"""


@click.command(epilog=_EPILOG)
@click.argument("folder", metavar="DIR", type=PathType(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=PathType(dir_okay=False), required=True, help="ONNX file to write.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def export(folder: Path, out: str, as_json: bool) -> None:
    """Write a ranker that `elute train` left in DIR as ONNX, for search engines and model servers.

    The file takes raw features, a row a document, in the order of the field 'features', and gives the
    scores of 'elute rank'. Needs elute[onnx], and neither JAX nor LightGBM.
    """
    from elute.verbs.export import export as run

    found = run(folder, out)
    if as_json:
        print_json(found.to_json())
    else:
        click.echo(found.sentence)
