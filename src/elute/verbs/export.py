"""`elute.export`."""

from __future__ import annotations

from pathlib import Path

from elute._util.paths import refuse_harm
from elute.errors import EluteError
from elute.options.takes import takes
from elute.results.base import Fields, Recorded
from elute.results.card import Card
from elute.training.folder import read_ranker, read_summary
from elute.training.onnx_file import INPUT, OPSET, OUTPUT, write_onnx
from elute.verbs.rank import list_read
from elute.verbs.train import Trained

_ABOUT = ("features", "key", "learner", "model")


class Exported(Recorded):
    """A ranker in a file that others run. Fields are attributes."""

    @classmethod
    def describe(cls, fields: Fields) -> Card:
        what = f"{fields['learner']} ({fields['model']}), {len(fields['features']):,} features"
        return Card("calm", "Exported", f"{what}: written to {fields['onnx']} ({fields['bytes']:,} bytes)")


@takes()
def export(ranker: Trained | str | Path, out: str | Path) -> Exported:
    """Write a ranker of `elute.train`, or of its folder, as the ONNX file `out`, for whatever runs such files.

    Its input `features` is float32, a row a document and a column a feature, raw, in the order of the field `features`;
    its output `scores` has a number a document, those of `elute.rank`. The names of the features and of the columns
    that name a document are in the file's metadata, as JSON.
    """
    folder = ranker.folder if isinstance(ranker, Trained) else Path(ranker)
    if folder is None:
        raise EluteError("this is only the summary of a ranker; load it from its folder")
    refuse_harm(out, list_read(folder))
    fields = read_summary(folder)
    about = {name: fields[name] for name in _ABOUT}
    size = write_onnx(Path(out), read_ranker(folder, fields), about)
    return Exported({**about, "input": INPUT, "output": OUTPUT, "opset": OPSET, "onnx": str(out), "bytes": size})
