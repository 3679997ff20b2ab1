"""The value of a ranking from rows, told plainly: every page is filled anew, every click is weighed by itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

Row = tuple[str, str, int, str, int]
"""Of an impression: query, document, position (from 1), context, click."""

Look = Mapping[tuple[int, str], float]
"""How likely a position is looked at in a context."""


def count_pages(rows: Sequence[Row]) -> dict[str, int]:
    """By query: pages, each of which has a result at the position that most have."""
    at = Counter((query, position) for query, _, position, _, _ in rows)
    out: dict[str, int] = {}
    for (query, _), number in at.items():
        out[query] = max(out.get(query, 0), number)
    return out


def weigh(rows: Sequence[Row], look: Look, kind: str, clip: float) -> dict[tuple[str, str], float]:
    """Relevance by query and document: ips, ips-clipped or snips."""
    found: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    for query, doc, position, context, click in rows:
        found[query, doc].append((look[position, context], click))
    out = {}
    for item, shown in found.items():
        least = 0.0 if kind == "ips" else clip
        weights = [1.0 / max(o, least) for o, _ in shown]
        total = sum(w * click for w, (_, click) in zip(weights, shown, strict=True))
        if kind == "snips":
            out[item] = total / sum(w * o for w, (o, _) in zip(weights, shown, strict=True))
        else:
            out[item] = total / len(shown)
    return out


def value(
    rows: Sequence[Row],
    look: Look,
    ranking: Mapping[str, Sequence[str]],
    kind: str,
    clip: float = 0.0,
    relevance: Callable[[str, str], float] | None = None,
) -> float:
    """Clicks a page if every impression had shown what the ranking puts at its position."""
    known = weigh(rows, look, kind, clip)
    total = 0.0
    for query, _, position, context, _ in rows:
        documents = ranking[query]
        if position <= len(documents):
            doc = documents[position - 1]
            r = known[query, doc] if relevance is None else relevance(query, doc)
            total += look[position, context] * r
    return total / sum(count_pages(rows).values())
