"""Sparse elimination modulo a prime.

The column with fewest rows goes first, by the shortest of these (Markowitz). What it has in other rows is taken off,
which may make them longer. Once dense elimination of what is left is quicker, that follows: of as many random sums of
the rows that are left as there are columns, and a few more, which have their rank but by chance.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elute.identify.effects.dense import reduce_rows, solve_rows
from elute.identify.generic.field import MOST_PRODUCTS, Field, invert
from elute.kernels.jit import jit

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

MOST = 6_000
"""Columns up to which dense elimination follows: a minute or so."""

_MORE = 4
"""Sums of rows beyond as many as there are columns."""

_DEAR = 20
"""How much dearer a number in a sparse row is than one in a dense row."""

WORK = 2_000_000_000
"""Numbers in sparse rows after which it is given up."""


class Echelon(NamedTuple):
    """`column` of each sparse step, in their order, and the row that gives it by others: 1 at it. `left`: columns that
    are eliminated densely, in `rows` with their `pivots`."""

    column: Ints
    starts: Ints
    place: Codes
    value: Ints
    left: Ints
    rows: Field
    pivots: Ints

    def find_free(self, columns: int) -> NDArray[np.bool_]:
        """Columns that nothing gives."""
        out = np.ones(columns, np.bool_)
        out[self.column] = False
        out[self.left[self.pivots]] = False
        return out

    def draw(self, columns: int, rng: np.random.Generator, p: int) -> Ints:
        """Values at random, on which all rows are 0."""
        out = rng.integers(0, p, columns)
        out[self.left] = solve_rows(self.rows, self.pivots, out[self.left], p)
        _follow(self.column, self.starts, self.place, self.value, out, p)
        return out


def eliminate(rows: csr_array, p: int, rng: np.random.Generator) -> Echelon | None:
    """The echelon form of rows modulo `p`, none of whose entries is 0; None where it would take too long."""
    rows.sort_indices()
    done = _eliminate(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, rows.shape[1], p, MOST, WORK
    )
    column, starts, index, value, ends, of_left, left_value, gave_up = done
    if gave_up:
        return None
    left, place = np.unique(of_left, return_inverse=True)
    number = len(ends) - 1
    dense = np.zeros((min(number, len(left) + _MORE), len(left)), np.uint32)
    if len(dense) == number:
        dense[np.repeat(np.arange(number), np.diff(ends)), place] = left_value
    else:
        for one in dense:
            _add_rows(ends, place, left_value, rng.integers(0, p, number), one, p)
    pivots = reduce_rows(dense, p)
    return Echelon(column, starts, index, value, left.astype(np.int64), dense[: len(pivots)], pivots)


@jit
def _follow(column: Ints, starts: Ints, index: Codes, value: Ints, z: Ints, p: int) -> None:
    for step in range(column.shape[0] - 1, -1, -1):
        total = 0
        for at in range(starts[step], starts[step + 1]):
            if index[at] != column[step]:
                total = (total + value[at] * z[index[at]]) % p
        z[column[step]] = (p - total) % p


@jit
def _add_rows(starts: Ints, index: Ints, value: Ints, weight: Ints, out: Field, p: int) -> None:
    """The sum of rows, each by its weight."""
    total, added = np.zeros(out.shape[0], np.uint64), 0
    for row in range(starts.shape[0] - 1):
        for at in range(starts[row], starts[row + 1]):
            total[index[at]] += np.uint64(weight[row]) * np.uint64(value[at])
        added += 1
        if added == MOST_PRODUCTS:
            total %= np.uint64(p)
            added = 0
    total %= np.uint64(p)
    for column in range(total.shape[0]):
        out[column] = total[column]


@jit
def _eliminate(
    indptr: Ints, indices: Codes, data: Ints, columns: int, p: int, most: int, most_work: int
) -> tuple[Ints, Ints, Codes, Ints, Ints, Codes, Ints, bool]:
    """Steps: their columns, and rows one after another; then the rows that are left, likewise; whether it was given
    up."""
    n = indptr.shape[0] - 1
    index, value = np.empty(2 * indices.shape[0] + 16, np.int32), np.empty(2 * indices.shape[0] + 16, np.int64)
    index[: indices.shape[0]], value[: indices.shape[0]] = indices, data
    used = indices.shape[0]
    start, length = indptr[:-1].copy(), np.diff(indptr)
    count = np.zeros(columns, np.int64)
    gone, over, stamp = np.zeros(columns, np.bool_), np.zeros(n, np.bool_), np.full(n, -1)
    head = np.empty(columns, np.int64)
    following, owner, nodes = _list_rows(index, start, length, over, head, index.shape[0])
    for column in indices:
        count[column] += 1
    heap = [(count[column], np.int64(column)) for column in range(columns)]
    heapq.heapify(heap)
    step_column, step_row = np.empty(columns, np.int64), np.empty(columns, np.int64)
    steps, left, work, gave_up = 0, columns, 0, False
    for column in range(columns):
        left -= count[column] == 0
    holding = np.empty(n, np.int64)
    while len(heap):
        key, column = heapq.heappop(heap)
        if gone[column] or key > count[column]:
            continue
        if key < count[column]:
            heapq.heappush(heap, (count[column], column))
            continue
        if key == 0:
            gone[column] = True
            continue
        found, node, pivot = 0, head[column], -1
        while node >= 0:
            row = owner[node]
            node = following[node]
            if over[row] or stamp[row] == column:
                continue
            stamp[row] = column
            if _find(index, start[row], length[row], column) >= 0:
                holding[found] = row
                found += 1
                if pivot < 0 or length[row] < length[pivot]:
                    pivot = row
        more = (found - 1) * length[pivot]
        if left <= most and _DEAR * more > left * left:
            break
        work += more
        if work > most_work:
            gave_up = True
            break
        begin, size = start[pivot], length[pivot]
        scale = np.int64(invert(np.uint64(value[_find(index, begin, size, column)]), np.uint64(p)))
        for at in range(begin, begin + size):
            value[at] = value[at] * scale % p
        for which in range(found):
            row = holding[which]
            if row == pivot:
                continue
            if used + length[row] + size > index.shape[0] or nodes + size > owner.shape[0]:
                index, value, used = _compact(index, value, start, length, length[row] + size)
                following, owner, nodes = _list_rows(index, start, length, over, head, index.shape[0])
                begin = start[pivot]
            times = p - value[_find(index, start[row], length[row], column)]
            a, a_end, b, b_end, first = start[row], start[row] + length[row], begin, begin + size, used
            while a < a_end or b < b_end:
                if b == b_end or (a < a_end and index[a] < index[b]):
                    index[used], value[used] = index[a], value[a]
                    a += 1
                    used += 1
                elif a == a_end or index[b] < index[a]:
                    other = index[b]
                    index[used], value[used] = other, times * value[b] % p
                    count[other] += 1
                    following[nodes], owner[nodes], head[other] = head[other], row, nodes
                    nodes += 1
                    b += 1
                    used += 1
                else:
                    total = (value[a] + times * value[b]) % p
                    if total:
                        index[used], value[used] = index[a], total
                        used += 1
                    else:
                        count[index[a]] -= 1
                        if index[a] != column:
                            heapq.heappush(heap, (count[index[a]], np.int64(index[a])))
                    a += 1
                    b += 1
            start[row], length[row] = first, used - first
        over[pivot] = True
        for at in range(begin, begin + size):
            count[index[at]] -= 1
            if index[at] != column:
                left -= count[index[at]] == 0
                heapq.heappush(heap, (count[index[at]], np.int64(index[at])))
        gone[column] = True
        left -= 1
        step_column[steps], step_row[steps] = column, pivot
        steps += 1
    rest = np.flatnonzero(~over & (length > 0))
    return (
        step_column[:steps].copy(),
        *_gather(index, value, start, length, step_row[:steps]),
        *_gather(index, value, start, length, rest),
        gave_up,
    )


@jit
def _find(index: Codes, start: int, length: int, column: np.int64) -> int:
    """Where a row has a column; -1 where it has not."""
    low, high = start, start + length
    while low < high:
        middle = (low + high) // 2
        if index[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low if low < start + length and index[low] == column else -1


@jit
def _gather(index: Codes, value: Ints, start: Ints, length: Ints, rows: Ints) -> tuple[Ints, Codes, Ints]:
    """These rows one after another: where each begins, and what they hold."""
    starts = np.zeros(rows.shape[0] + 1, np.int64)
    for at in range(rows.shape[0]):
        starts[at + 1] = starts[at] + length[rows[at]]
    indices, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int64)
    for at in range(rows.shape[0]):
        begin = start[rows[at]]
        indices[starts[at] : starts[at + 1]] = index[begin : begin + length[rows[at]]]
        values[starts[at] : starts[at + 1]] = value[begin : begin + length[rows[at]]]
    return starts, indices, values


@jit
def _compact(index: Codes, value: Ints, start: Ints, length: Ints, more: int) -> tuple[Codes, Ints, int]:
    """Rows without what they were before, and room for as much again and `more`."""
    live = length.sum()
    other, numbers = np.empty(2 * live + more, np.int32), np.empty(2 * live + more, np.int64)
    used = 0
    for row in range(start.shape[0]):
        begin, end = start[row], start[row] + length[row]
        other[used : used + length[row]], numbers[used : used + length[row]] = index[begin:end], value[begin:end]
        start[row] = used
        used += length[row]
    return other, numbers, used


@jit
def _list_rows(
    index: Codes, start: Ints, length: Ints, over: NDArray[np.bool_], head: Ints, room: int
) -> tuple[Ints, Ints, int]:
    """By column the rows that have it, as lists: the first is at `head`, the one after it at `following`."""
    head[:] = -1
    following, owner = np.empty(room, np.int64), np.empty(room, np.int64)
    nodes = 0
    for row in range(start.shape[0]):
        if not over[row]:
            for at in range(start[row], start[row] + length[row]):
                following[nodes], owner[nodes], head[index[at]] = head[index[at]], row, nodes
                nodes += 1
    return following, owner, nodes
