"""What every store must do: large values, snapshots, transactions. A store is tested by being listed here."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

import forks
from likewise.errors import DamagedError, MissingInput, OutputError
from likewise.index import lmdb_database, lmdb_store
from likewise.index.create import store_at
from likewise.index.lmdb_store import LmdbStore


@pytest.fixture
def opened(place):
    """A function that opens the store, and makes it at first."""
    stores = []

    def call():
        stores.append(store_at("test", place, create=not stores))
        return stores[-1]

    yield call
    for store in stores:
        store.close()


def put(store, **values):
    def change(transaction):
        for name, value in values.items():
            transaction.put(name, value)

    store.write(change)


def content(store):
    with store.read() as snapshot:
        return {name: bytes(snapshot.get(name)) for name in snapshot.names()}


def test_some_bytes_of_a_value(opened):
    store = opened()
    put(store, a=b"0123456789")
    with store.read() as snapshot:
        assert snapshot.get_range("a", 3, 7) == b"3456"
        assert snapshot.get_range("a", 0, 0) == b""
        assert snapshot.get_range("b", 0, 1) is None
    store.write(lambda transaction: (transaction.put("b", b"xyz"), check(transaction.get_range("b", 1, 3) == b"yz")))


def check(right):
    assert right


def test_values_come_back_and_can_be_deleted(opened):
    store = opened()
    large = np.arange(1 << 20, dtype=np.uint64)
    put(store, a=b"1", b=large.data, empty=b"")
    with store.read() as snapshot:
        assert list(snapshot.names()) == ["a", "b", "empty"]
        assert (np.frombuffer(snapshot.get("b"), np.uint64) == large).all()
        assert bytes(snapshot.get("empty")) == b""
        assert snapshot.get("c") is None
    store.write(lambda transaction: (transaction.delete("b"), transaction.delete("c")))
    assert content(store) == {"a": b"1", "empty": b""}
    assert content(opened()) == {"a": b"1", "empty": b""}


def test_values_are_aligned(opened):
    """Kernels read numbers of eight bytes where a value begins."""
    store = opened()
    put(store, **{f"v{i}": bytes([i]) * i for i in range(40)}, large=bytes(5001))
    with store.read() as snapshot:
        values = {name: np.frombuffer(snapshot.get(name), np.uint8) for name in snapshot.names() if name != "v0"}
        assert {value.ctypes.data % 8 for value in values.values()} == {0}
        assert all(values[f"v{i}"].tolist() == [i] * i for i in range(1, 40))


def test_the_place_of_a_snapshot_changes_with_its_content(opened):
    store, other = opened(), opened()
    put(store, a=b"a")
    with store.read() as first, other.read() as second:
        assert first.place == second.place
        place = first.place
    put(other, b=b"b")
    with store.read() as third:
        assert third.place != place


def test_a_snapshot_stays_as_it_is(opened):
    store, other = opened(), opened()
    put(store, a=b"old", gone=b"x" * 100_000)
    with other.read() as snapshot:
        store.write(lambda transaction: (transaction.put("a", b"new"), transaction.delete("gone")))
        for number in range(5):
            put(store, **{f"more{number}": bytes(200_000)})
        assert bytes(snapshot.get("a")) == b"old"
        assert bytes(snapshot.get("gone")) == b"x" * 100_000
    assert content(other)["a"] == b"new"


def test_a_change_that_fails_is_not_made(opened):
    store = opened()
    put(store, a=b"old")

    def change(transaction):
        transaction.put("a", b"new")
        assert bytes(transaction.get("a")) == b"new"
        transaction.put("b", bytes(1 << 20))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write(change)
    assert content(store) == {"a": b"old"}


def test_writers_wait_for_each_other(opened):
    store, other = opened(), opened()
    put(store, n=b"0")

    def count(mine):
        for _ in range(25):
            mine.write(lambda transaction: transaction.put("n", str(int(bytes(transaction.get("n"))) + 1).encode()))

    threads = [threading.Thread(target=count, args=(one,)) for one in (store, other, store)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert content(store)["n"] == b"75"


def test_rewriting_replaces_everything(opened):
    store, other = opened(), opened()
    put(store, a=b"a", b=bytes(5_000_000))
    before = store.size()

    def change(old, write):
        kept = bytes(old.get("a"))
        write(lambda transaction: transaction.put("a", kept))
        write(lambda transaction: transaction.put("c", b"c"))
        return "done"

    with other.read() as snapshot:
        assert store.rewrite(change) == "done"
        assert len(snapshot.get("b")) == 5_000_000
    for one in (store, other, opened()):
        assert content(one) == {"a": b"a", "c": b"c"}
    assert store.size() < before / 10
    put(other, d=b"d")
    assert content(store)["d"] == b"d"


def test_rewriting_that_fails_changes_nothing(opened):
    store = opened()
    put(store, a=b"a")

    def change(old, write):
        write(lambda transaction: transaction.put("a", b"other"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.rewrite(change)
    assert content(store) == content(opened()) == {"a": b"a"}


def test_a_closed_store_opens_again(opened):
    store = opened()
    put(store, a=b"a")
    store.close()
    store.close()
    assert content(store) == {"a": b"a"}


def test_a_store_that_is_destroyed_is_gone(opened, tmp_path):
    store = opened()
    put(store, a=b"a")
    store.destroy()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(MissingInput, match="there is no index"):
        opened()


def test_values_are_read_together_and_late(opened):
    """What a snapshot calls lasting is read when it has ended, as long as nothing is changed."""
    store = opened()
    put(store, a=b"a", b=b"b" * 9, empty=b"")
    with store.read() as snapshot:
        found = snapshot.get_many(["a", "empty", "none", "b"])
        assert {name: None if value is None else bytes(value) for name, value in found.items()} == {
            "a": b"a", "empty": b"", "none": None, "b": b"b" * 9
        }  # fmt: skip
        assert bytes(snapshot.known("a")) == b"a"
        assert snapshot.known("none") is None
    if snapshot.lasting:
        assert bytes(snapshot.get("b")) == b"b" * 9


def test_who_waits_to_rewrite_leaves_the_new_one_alone(opened):
    """Two want to compact at once: the second finds that the first has done it, whatever happens to it then."""
    first, second = opened(), opened()
    put(first, a=b"a")

    def change(old, write):
        write(lambda transaction: transaction.put("n", bytes(old.get("n") or b"") + b"+"))

    threads = [threading.Thread(target=store.rewrite, args=(change,)) for store in (first, second, first)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert content(first) == content(second) == {"n": b"+++"}


# What follows is about LMDB only.


def ended(process):
    process.communicate(60)
    return process.returncode


def test_the_map_grows_with_what_it_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(lmdb_database, "FIRST_MAP", 1 << 20)
    store, other = LmdbStore(tmp_path / "store", create=True), LmdbStore(tmp_path / "store")
    code = (
        "import sys; from likewise.index.lmdb_store import LmdbStore; s = LmdbStore(sys.argv[1]);"
        "s.write(lambda t: t.put('big', bytes(30_000_000)))"
    )
    put(store, a=bytes(3_000_000))
    place = None
    with other.read() as snapshot:
        place = snapshot.place
    assert ended(forks.start(code, tmp_path / "store")) == 0
    assert len(content(other)["big"]) == 30_000_000
    with other.read() as snapshot:
        assert snapshot.place != place, "addresses may have changed"
    put(store, b=bytes(90_000_000))
    assert len(content(other)["b"]) == 90_000_000
    store.close()
    other.close()


def test_a_reader_that_was_killed_holds_no_place(tmp_path, monkeypatch):
    monkeypatch.setattr(lmdb_database, "READERS", 4)
    store = LmdbStore(tmp_path / "store", create=True)
    put(store, a=b"a")
    code = (
        "import sys, os, signal; from likewise.index.lmdb_store import LmdbStore; s = LmdbStore(sys.argv[1]);"
        "r = s.read(); r.__enter__(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    codes = [ended(forks.start(code, tmp_path / "store")) for _ in range(6)]
    assert codes[:4] == [-signal.SIGKILL] * 4, "each held one of four places"
    assert content(store) == {"a": b"a"}
    store.close()


def test_what_is_no_store_is_said(tmp_path):
    with pytest.raises(MissingInput, match="there is no index in this folder"):
        LmdbStore(tmp_path)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "data.mdb").write_bytes(b"something else" * 1000)
    with pytest.raises(DamagedError, match="is damaged or not a database"):
        LmdbStore(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        LmdbStore(tmp_path / "file", create=True)


def test_a_copy_that_was_not_finished_is_overwritten(tmp_path):
    store = LmdbStore(tmp_path / "store", create=True)
    put(store, a=b"a")
    (tmp_path / "store" / "2").mkdir()
    (tmp_path / "store" / "2" / "data.mdb").write_bytes(b"begun")
    assert content(LmdbStore(tmp_path / "store")) == {"a": b"a"}
    store.rewrite(lambda old, write: write(lambda transaction: transaction.put("b", b"b")))
    assert content(store) == {"b": b"b"}
    store.close()


def test_who_opens_a_store_that_is_being_removed_makes_no_empty_one(tmp_path, monkeypatch):
    """LMDB creates a database where it finds a folder without one: nobody may see such a folder."""
    store = LmdbStore(tmp_path / "store", create=True)
    put(store, a=b"a")
    seen = []
    remove = lmdb_store.shutil.rmtree

    def watched(folder, **options):
        seen.extend(one.name for one in (tmp_path / "store").iterdir() if not (one / "data.mdb").exists())
        remove(folder, **options)

    monkeypatch.setattr(lmdb_store.shutil, "rmtree", watched)
    store.rewrite(lambda old, write: write(lambda transaction: transaction.put("b", b"b")))
    assert seen == []
    assert [one.name for one in (tmp_path / "store").iterdir()] == ["2"]
    assert content(LmdbStore(tmp_path / "store")) == {"b": b"b"}
    store.close()


LIMITED = """
import resource, signal, sys
from likewise.errors import OutputError
from likewise.index.lmdb_store import LmdbStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = LmdbStore(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, resource.RLIM_INFINITY))
try:
    store.write(lambda transaction: transaction.put("big", bytes(9_000_000)))
except OutputError as error:
    print(error)
store.write(lambda transaction: transaction.put("small", b"s"))
"""


def test_a_file_that_may_not_grow_is_a_clear_error(tmp_path):
    store = LmdbStore(tmp_path / "store", create=True)
    put(store, a=b"a")
    process = forks.start(LIMITED, tmp_path / "store")
    said, errors = process.communicate(60)
    assert process.returncode == 0, errors
    assert "nothing was changed" in said
    assert content(store) == {"a": b"a", "small": b"s"}
    store.close()


@pytest.mark.alone
def test_a_snapshot_is_quick(tmp_path):
    store = LmdbStore(tmp_path / "store", create=True)
    put(store, a=b"a")
    begun = time.process_time()
    for _ in range(1000):
        with store.read() as snapshot:
            snapshot.get("a")
    assert time.process_time() - begun < 0.5
    store.close()
