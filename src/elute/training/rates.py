"""A search for the learning rate: one training a rate, and the one that validates best is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from elute.errors import Diverged
from elute.progress import Progress


class Trial(NamedTuple):
    """A finished training: the fields of `train.json` that it decides, and what writes its ranker."""

    fields: dict[str, Any]
    write: Callable[[], None]

    @property
    def value(self) -> float:
        """The best that it had at a validation, by nDCG or by held-out clicks."""
        found = (row.get("click_dcg", row["ndcg"]) for row in self.fields["history"])
        return max(float(value) for value in found if value is not None)


def search_rates(rates: Sequence[float], run: Callable[[float, Progress], Trial], progress: Progress) -> Trial:
    """The best trial, the first of equals. A rate at which the loss runs away has lost, unless all do."""
    if len(rates) == 1:
        return run(rates[0], progress)
    best: Trial | None = None
    chosen, tried, problem = 0.0, [], None
    for rate in rates:
        try:
            trial = run(rate, name_stages(progress, f"rate {rate:g}"))
        except Diverged as error:
            problem = error
            tried.append({"rate": rate, "validation": None})
            continue
        tried.append({"rate": rate, "validation": trial.value})
        if best is None or trial.value > best.value:
            best, chosen = trial, rate
    if best is None:
        raise problem or ValueError("no rate")
    return Trial(best.fields | {"rate": chosen, "rates": tried}, best.write)


def name_stages(progress: Progress, name: str) -> Progress:
    """The same progress, of stages of something with this name."""
    return lambda stage, done, total: progress(f"{name}, {stage}", done, total)
