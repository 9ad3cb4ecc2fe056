"""Work ahead on threads: results in order, the first error wins, nothing is left running."""

import subprocess
import sys
import threading
import time

import pytest

from likewise.base.parallel import run_ahead


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_run_ahead(threads):
    def slow(i):
        time.sleep((i * 7 % 5) / 1000)
        return i

    assert list(run_ahead((lambda i=i: slow(i) for i in range(50)), threads)) == list(range(50))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_first_error_wins(threads):
    def tasks():
        yield lambda: 0
        yield lambda: time.sleep(0.05) or 1 / 0
        yield lambda: [][1]
        raise KeyError

    results = run_ahead(tasks(), threads)
    assert next(results) == 0
    with pytest.raises(ZeroDivisionError):
        next(results)


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_of_the_drawer_come_after_what_was_drawn(threads):
    def tasks():
        yield lambda: 0
        yield lambda: 1
        raise KeyError("drawn")

    results = run_ahead(tasks(), threads)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(KeyError, match="drawn"):
        next(results)


def test_no_more_than_allowed_is_under_way():
    drawn = []

    def tasks():
        for i in range(100):
            drawn.append(i)
            yield lambda i=i: i

    results = run_ahead(tasks(), 2)
    next(results)
    time.sleep(0.1)
    assert len(drawn) <= 4
    results.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("likewise")]


def test_closing_closes_the_tasks():
    closed = []

    def tasks():
        try:
            for i in range(100):
                yield lambda i=i: i
        finally:
            closed.append(True)

    results = run_ahead(tasks(), 2)
    next(results)
    results.close()
    assert closed == [True]


LEFT_BEHIND = """
import time
from likewise.base.parallel import run_ahead

def tasks():
    try:
        while True:
            time.sleep(0.05)
            yield lambda: 1
    finally:
        print("closed", flush=True)

kept = run_ahead(tasks(), 2)
next(kept)
raise SystemExit(1)
"""


def test_threads_left_behind_end_before_the_interpreter_does():
    """An error keeps the iterator alive until the end, and a thread inside a C++ library would abort the process."""
    found = subprocess.run([sys.executable, "-c", LEFT_BEHIND], capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (1, "closed\n", "")
