"""Kill -9 at any moment: what was acknowledged is there, what was not is there wholly or not at all."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

import forks
import likewise
from likewise import Index, LikewiseError
from likewise.index.item_ids import as_ids

PARTS = ("indexes", "stored_index", "stored_vectors")

WORKER = """
import math, random, sys, tempfile
from likewise import Index
path, seed, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
vectors = sys.argv[5] == "vectors"
def item(id):
    return [math.sin(id + i) for i in range(40)] if vectors else [f"{id}.{i}" for i in range(40)]
kind = {"measure": "l2"} if vectors else {"shingle": None}
with tempfile.TemporaryDirectory() as folder, Index.create(folder + "/i", threads=1, **kind) as index:
    for id in range(3):  # compiled code is loaded before the clock runs
        index.add([id], [item(id)])
    index.remove([1])
    index.compact()
chance = random.Random(seed)
index = Index.open(path, threads=1)
known = set(map(int, sys.argv[4].split(","))) if sys.argv[4] else set()
print("ready", flush=True)
number = seed * 100_000
while True:
    step = what if what != "all" else chance.choice(["add", "add", "add", "remove", "replace", "compact", "parts"])
    if step == "remove" and len(known) > 10:
        gone = chance.sample(sorted(known), 5)
        print("remove", *gone, flush=True)
        index.remove(gone)
        known -= set(gone)
    elif step == "compact" and len(known) > 10:
        print("compact", flush=True)
        index.compact()
    elif step == "replace" and len(known) > 10:
        ids = chance.sample(sorted(known), 3)
        print("replace", *ids, flush=True)
        index.add(ids, [item(id) for id in ids], replace=True)
    else:
        ids = list(range(number, number + chance.choice([1, 3, 50])))
        number += len(ids)
        print("add", *ids, flush=True)
        items = [item(id) for id in ids]
        if step == "parts":
            index.add_batches([([id], [one]) for id, one in zip(ids, items)])
        else:
            index.add(ids, items)
        known |= set(ids)
    print("done", flush=True)
"""


def killed(path, seed, what, known, wait, kind):
    """Let a process change the index, kill it after a while; return what it has said."""
    worker = forks.start(WORKER, path, seed, what, ",".join(map(str, sorted(known)[-1000:])), kind, parts=PARTS)
    assert worker.stdout.readline() == "ready\n"
    time.sleep(wait)
    os.kill(worker.pid, signal.SIGKILL)
    said = worker.stdout.read().splitlines()
    worker.wait()
    worker.stdout.close()
    worker.stderr.close()
    return said


def outcomes(known, said):
    """The ids that may be there after this: two possibilities if the last change was not acknowledged."""
    sure = set(known)
    while said:
        line = said.pop(0).split()
        if not line:
            break
        after = set(sure)
        ids = set(map(int, line[1:]))
        if line[0] in ("add", "replace"):
            after |= ids
        elif line[0] == "remove":
            after -= ids
        if not said or said[0] != "done":
            return [sure, after]
        said.pop(0)
        sure = after
    return [sure]


def item(id, kind):
    return [math.sin(id + i) for i in range(40)] if kind == "vectors" else [f"{id}.{i}" for i in range(40)]


def kill_often(path, what, times, kind="sets"):
    Index.create(path, threads=1, **({"measure": "l2"} if kind == "vectors" else {"shingle": None})).close()
    chance = random.Random(times)
    known: set[int] = set()
    steps = 0
    for seed in range(1, 4 * times):
        if seed > times and steps:  # on a busy machine the first kills may come before the first change
            break
        said = killed(path, seed, what, known, chance.uniform(0, 0.4), kind)
        steps += said.count("done")
        possible = outcomes(known, said)
        with Index.open(path, threads=1) as index:
            report = index.check()
            everything = sorted(set.union(*possible))
            with index.snapshot() as view:  # all at once: one by one takes minutes when there are thousands
                rows = view.find(as_ids(everything, "kill"))
            there = {id for id, row in zip(everything, rows, strict=True) if row >= 0}
            assert there in possible
            assert all((id in index) == (id in there) for id in everything[:: max(1, len(everything) // 50)])
            assert len(index) == len(there) == report.items
            asked = sorted(there)[:: max(1, len(there) // 50)]
            if asked:
                found = index.query([item(id, kind) for id in asked], k=1)
                assert found["id_b"].to_pylist() == asked
        known = there
    return steps


@pytest.mark.parametrize("what", ["add", "all"])
def test_nothing_acknowledged_is_lost(tmp_path, what):
    assert kill_often(tmp_path / "index", what, 4) > 0


def test_nothing_acknowledged_is_lost_on_a_server(redis_url):
    assert kill_often(redis_url, "all", 3) > 0


def test_no_vector_that_was_acknowledged_is_lost(place):
    assert kill_often(place, "all", 3, "vectors") > 0


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["sets", "vectors"])
def test_nothing_acknowledged_is_lost_in_a_hundred_kills(place, kind):
    assert kill_often(place, "all", 100, kind) > 100


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("what", ["add", "remove", "compact", "parts"])
def test_a_hundred_kills_of_each_change(tmp_path, what):
    """Additions merge segments, and those of several parts do so twice."""
    assert kill_often(tmp_path / "index", what, 100) > 50


def test_a_kill_while_a_copy_is_made_leaves_the_old_one(tmp_path, monkeypatch):
    """At every step of a compaction: before the copy, after it, after the mark, while the old one is removed."""
    from likewise.index import lmdb_store

    path = tmp_path / "index"
    with Index.create(path, shingle=None) as index:
        index.add(range(20), [[f"{id}.{i}" for i in range(40)] for id in range(20)])
        index.remove([3])
    for place in ("fsync", "_remove", "rmtree"):
        child = os.fork()
        if child == 0:
            try:
                where = {"fsync": os, "_remove": lmdb_store, "rmtree": lmdb_store.shutil}[place]
                monkeypatch.setattr(where, place, lambda *args, **more: os._exit(7))
                likewise.Index.open(path).compact()
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        with Index.open(path) as index:
            assert len(index) == 19
            assert index.check().items == 19
            index.add([100], [["x"]])
            index.remove([100])
    with Index.open(path) as index:
        index.compact()
        assert len(index) == 19
        assert len([one for one in path.iterdir() if (one / "data.mdb").exists()]) == 1


READER = """
import os, sys, time
from likewise import Index
path, seconds = sys.argv[1], float(sys.argv[2])
asked = [[f"{id}.{i}" for i in range(40)] for id in range(5)]
index = Index.open(path, threads=1)
index.query(asked)
longest, blocked, worked, count, begun = 0.0, 0.0, 0.0, 0, time.monotonic()
scheduled = open("/proc/thread-self/schedstat") if os.path.exists("/proc/thread-self/schedstat") else None

def busy():  # the seconds that this thread has run, or has waited for a core that others use
    if scheduled is None:
        return 0.0
    scheduled.seek(0)
    return sum(map(int, scheduled.read().split()[:2])) / 1e9

while time.monotonic() - begun < seconds:
    start, before, own = time.monotonic(), busy(), time.thread_time()
    found = index.query(asked)
    took, worked = time.monotonic() - start, max(worked, time.thread_time() - own)
    longest, blocked = max(longest, took), max(blocked, took - (busy() - before))
    assert found["id_b"].to_pylist() == [0, 1, 2, 3, 4] and found["similarity"].to_pylist() == [1.0] * 5
    assert len(index) >= 5
    count += 1
print(count, longest, blocked, worked)
"""


def read_and_write(path, readers, seconds):
    """Many processes ask while one changes the index; return how often they asked, and of all their queries the
    longest, the longest time that one neither ran nor waited for a core, and the longest that one ran."""
    with Index.create(path, shingle=None, threads=1) as index:
        index.add(range(5), [[f"{id}.{i}" for i in range(40)] for id in range(5)])
        running = [forks.start(READER, path, seconds, parts=PARTS) for _ in range(readers)]
        number = 5
        while any(one.poll() is None for one in running):
            ids = range(number, number + 50)
            index.add(ids, [[f"{id}.{i}" for i in range(40)] for id in ids])
            number += 50
            if number % 500 == 5:
                index.remove(range(number - 400, number))
            if number % 1500 == 5:
                index.compact()
            time.sleep(0.001)
        ended = [one.communicate() for one in running]
        assert [one.returncode for one in running] == [0] * readers, ended
        assert index.check().items == len(index)
    said = [output.split() for output, _ in ended]
    return sum(int(one[0]) for one in said), *(max(float(one[place]) for one in said) for place in (1, 2, 3))


def test_processes_read_while_one_writes(place):
    count, *_ = read_and_write(place, 2, 1)
    assert count > 10


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_eight_readers_and_a_writer_for_a_minute(place, request):
    if not isinstance(place, Path):  # as if the server had a core to itself, which nine busy processes leave it not
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, request.getfixturevalue("redis_server").process.pid, -10)
    others = os.getloadavg()[0]
    count, *seconds = read_and_write(place, 8, 60)
    longest, blocked, worked = (round(1000 * one) for one in seconds)
    print(
        f"{count} queries of five, at most: {longest} ms, {blocked} ms blocked, {worked} ms at work; load {others:.1f}"
    )
    assert count > 1000
    assert worked < 100
    if others < 1:  # else a reader also waits for whoever holds a lock, and waits for a core
        assert blocked < 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_while_other_threads_read_and_write(tmp_path):
    stop = threading.Event()
    with Index.create(tmp_path / "ix", shingle=None, threads=1) as index:
        index.add([1, 2], [["a", "b"], ["c"]])

        def write():
            for number in itertools.count(10):
                index.add([number], [[str(number)]])
                if stop.is_set():
                    return

        def read():
            while not stop.is_set():
                index.query([["c"]])

        threads = [threading.Thread(target=work) for work in (write, read)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    signal.alarm(60)  # a child that hangs is ended
                    code = 1
                    try:
                        code = 0 if index.query([["c"]])["id_b"].to_pylist() == [2] else 2
                    except LikewiseError as error:
                        code = 0 if "was at work in this index" in str(error) else 3
                    finally:
                        os._exit(code)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            stop.set()
            for thread in threads:
                thread.join()
