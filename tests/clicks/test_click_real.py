"""Real clicks: what each model makes of them, on sessions held out."""

from __future__ import annotations

from pathlib import Path

from elute.audit.clicks import conditional_perplexity, perplexity
from elute.clicks import model_of
from elute.io.sessions import read_sessions


def test_models_that_know_more_predict_better(data: Path) -> None:
    """Given the clicks above, UBM and DBN beat PBM, PBM the click rates; without them PBM beats the click rates."""
    train, vocabulary = read_sessions(data / "yandex" / "train.parquet")
    test, _ = read_sessions(data / "yandex" / "test.parquet", vocabulary=vocabulary)
    assert (len(train), len(test)) == (35_064, 21_413)
    given, alone = {}, {}
    for name in ("dctr", "rdctr", "pbm", "ubm", "dbn"):
        model = model_of(name)(vocabulary.n_documents, 10).fit(train)
        given[name] = conditional_perplexity(model.predict_conditional_clicks(test), test.click, mask=test.mask).mean
        alone[name] = perplexity(model.predict_clicks(test), test.click, mask=test.mask).mean
    assert given["ubm"] < given["dbn"] < given["pbm"] < given["rdctr"] < given["dctr"] < 1.45
    assert alone["pbm"] < alone["rdctr"] < alone["dctr"]
    assert alone["ubm"] < alone["rdctr"]
