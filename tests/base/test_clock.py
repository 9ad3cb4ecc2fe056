"""The seconds of a run: each moment counts once, for the stage that began last, and all of them add up."""

import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from likewise.base import clock
from likewise.base.clock import StageClock, divided, process_start, waiting_since
from likewise.base.runlog import RunLog


@pytest.fixture
def now(monkeypatch):
    """A clock that is set by hand: `now[0]` is the time."""
    moment = [100.0]
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: moment[0]))
    return moment


def spend(now, seconds):
    now[0] += seconds


def test_each_moment_counts_for_the_stage_that_began_last(now):
    stages = {}
    counted = StageClock(stages, 98.0)
    counted.begin("read")
    spend(now, 1)
    counted.begin("tune")
    spend(now, 2)
    counted.end("read")  # stages of two threads need not end in order
    spend(now, 4)
    counted.end("tune")
    spend(now, 8)
    counted.begin("read")
    spend(now, 16)
    counted.end("read")
    counted.count()
    assert stages == {"read": 17, "tune": 6}
    assert counted.around == {"start": 2}


def test_compiling_counts_for_no_stage(now):
    stages = {}
    counted = StageClock(stages, 100.0)
    counted.compiling(0, True)
    spend(now, 1)
    counted.compiling(1, False)
    counted.begin("join")
    spend(now, 2)
    counted.compiling(1, True)
    counted.compiling(1, True)  # a kernel within a kernel
    spend(now, 4)
    counted.compiling(2, True)
    spend(now, 8)
    counted.compiling(3, False)
    spend(now, 16)
    counted.end("join")
    assert stages == {"join": 18}
    assert counted.around == {"start": 0, "compile": 13}


def test_stages_of_many_threads_add_up_to_the_time_that_passed():
    begun = clock.time.perf_counter()
    stages = {}
    counted = StageClock(stages, begun)

    def work(name):
        for _ in range(200):
            counted.begin(name)
            counted.compiling(0, name == "a")
            counted.end(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(stages) == set("abcd")
    assert sum(stages.values()) + sum(counted.around.values()) <= clock.time.perf_counter() - begun


def test_what_is_between_stages_has_a_name():
    assert divided({"start": 1.0, "read": 2.0}, 4.0) == {"start": 1.0, "read": 2.0, "other": 1.0}
    assert divided({"other": 7.0, "read": 2.0}, 2.0) == {"read": 2.0, "other": 0.0}


def test_a_resumed_run_counts_what_was_done_before_once(now):
    first = RunLog()
    with first.stage("read"):
        spend(now, 1)
        one = first.snapshot()
    spend(now, 2)
    with first.stage("join"):
        spend(now, 4)
        two = first.snapshot()
    spend(now, 1000)  # killed; the next run begins
    with waiting_since(now[0]) as waited:
        spend(now, 8)
        second = RunLog()
        for step in (one, two, one):
            second.restore(step)
        with second.stage("join"):
            spend(now, 16)
        assert second.divided() == ({"start": 8, "read": 1, "join": 20, "other": 2}, 31)
        assert waited.seconds == 31


def test_a_process_knows_when_it_began():
    """It is older than what it has imported; on Linux, it knows by how much."""
    code = (
        "import time; time.sleep(0.5); from likewise.base.clock import process_start; now = time.perf_counter(); "
        "print(now - process_start(now - 0.1))"
    )
    age = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert age >= 0.5 if sys.platform == "linux" else age == pytest.approx(0.1)


@pytest.mark.parametrize(
    "content", [b"", b"1 (a) b) S 1", b"1 (a b) S" + b" 0" * 30, b"1 (a b) S" + b" 999999999999" * 30]
)
def test_a_system_that_does_not_say_when_a_process_began(monkeypatch, tmp_path, content):
    (tmp_path / "stat").write_bytes(content)
    monkeypatch.setattr(clock, "open", lambda name, mode: (tmp_path / "stat").open(mode), raising=False)
    moment = clock.time.perf_counter() - 0.2
    assert process_start(moment) == moment


def test_an_old_process_was_another_program_before(monkeypatch):
    monkeypatch.setattr(clock, "LONGEST_START", 0.0)
    moment = clock.time.perf_counter()
    assert process_start(moment) == moment
