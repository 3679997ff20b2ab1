"""What a formula determines, by dense elimination over the rationals: obvious rather than fast."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Row = list[Fraction]


def find_rank(rows: Sequence[Row]) -> int:
    return len(reduce_rows(rows))


def reduce_rows(rows: Sequence[Row]) -> list[Row]:
    """Reduced echelon form, without rows of zeros."""
    work = [list(row) for row in rows]
    done = 0
    for column in range(len(work[0]) if work else 0):
        pivot = next((at for at in range(done, len(work)) if work[at][column]), None)
        if pivot is None:
            continue
        work[done], work[pivot] = work[pivot], work[done]
        work[done] = [x / work[done][column] for x in work[done]]
        for at in range(len(work)):
            if at != done and work[at][column]:
                times = work[at][column]
                work[at] = [x - times * y for x, y in zip(work[at], work[done], strict=True)]
        done += 1
    return work[:done]


def lies_in(echelon: Sequence[Row], row: Row) -> bool:
    """Whether a row is a combination of those of a reduced echelon form."""
    left = list(row)
    for one in echelon:
        lead = next(at for at, x in enumerate(one) if x)
        times = left[lead]
        left = [x - times * y for x, y in zip(left, one, strict=True)]
    return not any(left)


def subtract(a: Row, b: Row) -> Row:
    return [x - y for x, y in zip(a, b, strict=True)]


def find_differences(shown: Sequence[set[int]], design: Sequence[Row]) -> list[Row]:
    """Of every two factors that an item was shown under."""
    return [subtract(design[a], design[b]) for factors in shown for a in factors for b in factors if a < b]


def code_overcomplete(values: Sequence[Sequence[object]], terms: Sequence[Sequence[int]]) -> list[Row]:
    """The design without any reference: one column for every value of every term that a factor has. `terms`: the places
    of a term's columns in a factor."""
    columns = [(term, tuple(value[at] for at in term)) for term in terms for value in values]
    names = list(dict.fromkeys((tuple(term), value) for term, value in columns))
    return [[Fraction(int(tuple(factor[at] for at in term) == value)) for term, value in names] for factor in values]
