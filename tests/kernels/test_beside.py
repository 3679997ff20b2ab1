"""Work beside other work."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from elute._util.threads import run_ahead, run_beside, use_threads
from elute.kernels.blocks import join_blocks, map_blocks


@pytest.fixture(params=[1, 2, 5], autouse=True)
def threads(request: pytest.FixtureRequest):
    use_threads(request.param)
    yield request.param
    use_threads(None)


def test_both_are_done(threads: int) -> None:
    here = threading.get_ident()
    first, others = run_beside(threading.get_ident, (lambda: 1, threading.get_ident))
    assert first == here
    assert others[0] == 1
    assert (others[1] == here) == (threads == 1)


def test_an_error_of_the_others_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_beside(lambda: 1, (lambda: 1 / 0,))


def test_after_an_error_nothing_else_begins(threads: int) -> None:
    begun, goes_on, done = threading.Event(), threading.Event(), []

    def fail() -> None:
        if threads > 1:
            begun.wait(10)
        raise KeyboardInterrupt

    def wait() -> None:
        begun.set()
        goes_on.wait(0.2)

    with pytest.raises(KeyboardInterrupt):
        run_beside(fail, (wait, lambda: done.append(1)))
    assert not done


def test_blocks_within_blocks_do_not_wait_for_each_other() -> None:
    offsets = np.arange(0, 12_000_001, 4, dtype=np.int64)

    def count(own: np.ndarray) -> np.ndarray:
        return np.array([sum(map_blocks(lambda _, inner: len(inner) - 1, offsets))])

    found = join_blocks(count, offsets)
    assert len(found) > 1
    assert (found == len(offsets) - 1).all()


def test_parts_come_in_order_and_errors_with_them(threads: int) -> None:
    def make():
        yield from range(5)
        raise ZeroDivisionError

    found = []
    with pytest.raises(ZeroDivisionError):
        for part in run_ahead(make()):
            found.append(part)  # noqa: PERF402 (the error comes amid)
    assert found == [0, 1, 2, 3, 4]
    assert list(run_ahead([])) == []
