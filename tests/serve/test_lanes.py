"""Short queries are answered by the event loop, until one takes longer."""

from __future__ import annotations

import asyncio
import time

import pytest

from likewise.serve import lanes
from likewise.serve.lanes import Lane


@pytest.fixture
def lane():
    made = Lane("query", 2, 2, 10.0, "ask for less")
    yield made
    made.close()


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_quick_work_is_done_at_once(lane):
    assert lane.quick
    assert lane.run_here(lambda a, b: a + b, 1, 2) == 3
    assert lane.quick
    with pytest.raises(ZeroDivisionError):
        lane.run_here(lambda: 1 // 0)
    assert lane.quick


@pytest.mark.parametrize("slow", [lambda: spin(2 * lanes.A_MOMENT), lambda: time.sleep(2 * lanes.A_WHILE)])
def test_after_slow_work_threads_work_for_a_while(lane, slow, monkeypatch):
    monkeypatch.setattr(lanes, "FOR_NOW", 3)
    lane.run_here(slow)
    for _ in range(3):
        assert not lane.quick
        assert asyncio.run(lane.run(int, "7")) == 7
    assert lane.quick


def test_while_a_thread_works_others_go_to_threads(lane):
    async def both():
        waiting = asyncio.ensure_future(lane.run(time.sleep, 0.05))
        await asyncio.sleep(0)
        assert not lane.quick
        await waiting

    asyncio.run(both())
    assert lane.inside == 0
