"""What is special about the shared store: round trips, dead writers, lost connections, restarts, passwords, TLS."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time

import pytest
from redis_process import RedisProcess

import forks
from likewise import DamagedError, Index, LikewiseError, OutputError, ParameterError
from likewise.index import redis_server as servers
from likewise.index import redis_store as module
from likewise.index.redis_server import RedisAddress, ValueCache, as_bytes, as_words
from likewise.index.redis_store import RedisStore

SECRET = "s3cret"


@pytest.fixture
def server(redis_server):
    """The server of all tests."""
    return redis_server


def put(store, **values):
    store.write(lambda transaction: [transaction.put(name, value) for name, value in values.items()])


def content(store):
    with store.read(fresh=True) as snapshot:
        return {name: bytes(snapshot.get(name)) for name in snapshot.names()}


def keys_of(store):
    return {
        key.decode().removeprefix(store.keys.prefix) for key in store.server.client.scan_iter(f"{store.keys.prefix}*")
    }


def listed(store):
    """The keys that a store has if nothing was left behind."""
    catalogue = store.current()
    parts = [store.keys.parts(id, size, catalogue.part) for id, size in catalogue.values.values()]
    return {"version", "catalogue"} | {key.removeprefix(store.keys.prefix) for some in parts for key in some}


@pytest.fixture
def trips(monkeypatch):
    """A list that grows with every round trip to a server by this thread: the lock of a writer is renewed by another,
    which may be at it when the change is done."""
    connections = pytest.importorskip("redis").connection
    counted, mine = [], threading.get_ident()
    send = connections.AbstractConnection.send_packed_command

    def counting(self, command, *args, **more):
        if threading.get_ident() == mine:
            counted.append(command)
        return send(self, command, *args, **more)

    monkeypatch.setattr(connections.AbstractConnection, "send_packed_command", counting)
    return counted


def sets_of(numbers):
    return [[f"{number}.{i}" for i in range(40)] for number in numbers]


def test_a_batch_of_queries_takes_one_round_trip(redis_url, trips, monkeypatch):
    with Index.create(redis_url, shingle=None) as writer, Index.open(redis_url) as reader:
        writer.add(range(50), sets_of(range(50)))
        monkeypatch.setattr(module, "SHARED", ValueCache())  # the reader is another process
        assert reader.query(sets_of(range(50)))["id_b"].to_pylist() == list(range(50))
        trips.clear()
        assert reader.query(sets_of(range(50)))["id_b"].to_pylist() == list(range(50))
        assert len(trips) == 1
        assert 7 in reader
        trips.clear()
        assert 7 in reader
        assert len(trips) == 1
        writer.add([77], sets_of([77]))
        monkeypatch.setattr(module, "SHARED", ValueCache())
        trips.clear()
        assert reader.query(sets_of([77]))["id_b"].to_pylist() == [77]
        assert len(trips) == 3, "the version, the catalogue, the manifest with the new values"
        writer.add([78], sets_of([78]))
        monkeypatch.setattr(module, "SHARED", ValueCache())
        trips.clear()
        assert reader.query(sets_of([78]))["id_b"].to_pylist() == [78]
        assert len(trips) == 2, "of an index that changes all the time, version and catalogue together"
        for _ in range(2):  # it has not changed any more, and the second query asks for the version alone
            trips.clear()
            assert reader.query(sets_of([78]))["id_b"].to_pylist() == [78]
            assert len(trips) == 1
        assert len(trips[0]) < 200


def test_queries_and_additions_fetch_what_they_need(redis_url, monkeypatch):
    texts = [" ".join(f"w{i}.{j}" for j in range(40)) for i in range(300)]
    with Index.create(redis_url, shingle="words:2") as index:
        index.add(None, texts)
        names = {id: name.rpartition("/")[2] for name, (id, _) in index._store.current().values.items()}
        fetched = []
        fetch = RedisStore.fetch

        def noted(self, wanted, *more):
            fetched.extend(names.get(id) for id, _ in wanted)
            return fetch(self, wanted, *more)

        monkeypatch.setattr(RedisStore, "fetch", noted)
        monkeypatch.setattr(module, "SHARED", ValueCache())
        with Index.open(redis_url) as other:
            fetched.clear()
            other.add([1000], ["another text of a few words"])
            assert set(fetched) <= {"manifest", "id_hashes", "id_rows"}
            fetched.clear()
            other.query(texts[:5])
            assert {"keys", "sets", "elements"} <= set(fetched)
            assert "texts" not in fetched
            assert other.get([7]) == [texts[7]]
            assert "texts" not in fetched, "a range of them is enough"


def test_large_values_are_stored_in_parts(redis_url):
    store = RedisStore(redis_url, create=True)
    large = os.urandom(20_000_003)
    put(store, large=large, small=b"s")
    assert len([key for key in keys_of(store) if key.startswith("v:")]) == 4
    assert content(store) == {"large": large, "small": b"s"}
    store.close()


def test_ranges_of_parts_are_fetched(redis_url, monkeypatch):
    store = RedisStore(redis_url, create=True)
    large = os.urandom(20_000_003)
    put(store, large=large)
    part = store.current().part
    monkeypatch.setattr(module, "SHARED", ValueCache())
    monkeypatch.setattr(RedisStore, "fetch", None)
    with store.read() as snapshot:
        for begin, end in [(0, 1), (5, 5), (part - 3, part + 2), (part, 2 * part), (1, len(large))]:
            assert snapshot.get_range("large", begin, end) == large[begin:end]
        assert snapshot.get_range("large", len(large) - 1, len(large) + 1) is None
        assert snapshot.get_range("nothing", 0, 1) is None
    store.close()


def test_a_snapshot_ends_with_its_grace(redis_url, monkeypatch):
    store = RedisStore(redis_url.replace("lease", "grace=0.05&lease"), create=True)
    put(store, a=b"old", b=b"b")
    with store.read(fresh=True) as snapshot:
        put(store, a=b"new")
        time.sleep(0.1)
        assert bytes(snapshot.get("b")) == b"b"
        with pytest.raises(LikewiseError, match=r"changed more than 0\.05 seconds ago"):
            snapshot.get("a")
    assert keys_of(store) == listed(store), "what was replaced has expired"
    store.close()


KILLED = """
import os, signal, sys
from likewise.index.redis_store import RedisStore
store = RedisStore(sys.argv[1])
def change(transaction):
    transaction.put("a", b"half")
    transaction.put("big", bytes(40_000_000))
    os.kill(os.getpid(), signal.SIGKILL)
store.write(change)
"""


def test_what_a_killed_writer_has_left_is_removed(redis_url):
    store = RedisStore(redis_url, create=True)
    put(store, a=b"a")
    writer = forks.start(KILLED, redis_url)
    writer.communicate(60)
    assert writer.returncode == -signal.SIGKILL
    assert content(store) == {"a": b"a"}
    assert keys_of(store) > listed(store)
    put(store, b=b"b")
    assert content(store) == {"a": b"a", "b": b"b"}
    assert {key for key in keys_of(store) if store.server.client.pttl(store.keys.prefix + key) == -1} == listed(store)
    store.close()


def test_a_lock_that_was_lost_loses_no_change(redis_url):
    """The lease of a writer ends while it works, and another one commits: the first begins again."""
    store, other = RedisStore(redis_url, create=True), RedisStore(redis_url)
    put(store, n=b"0")
    calls = []

    def change(transaction):
        calls.append(bytes(transaction.get("n")))
        transaction.put("n", calls[-1] + b"1")
        if len(calls) == 1:
            store.server.client.delete(store.keys.lock)
            other.write(lambda inner: inner.put("n", b"other"))

    store.write(change)
    assert calls == [b"0", b"other"]
    assert content(store) == {"n": b"other1"}
    store.close()
    other.close()


@pytest.mark.alone
def test_a_long_change_keeps_its_lock(redis_url):
    """The lock is renewed every few tenths of a second, which a process that is not run for longer cannot do."""
    store = RedisStore(redis_url, create=True)
    calls = []
    store.write(lambda transaction: (calls.append(1), time.sleep(1.2), transaction.put("a", b"a")))
    assert calls == [1]
    assert content(store) == {"a": b"a"}
    store.close()


@pytest.mark.parametrize("made", [True, False])
def test_a_commit_without_an_answer_is_made_once(redis_url, monkeypatch, made):
    store = RedisStore(redis_url, create=True)
    put(store, n=b"")
    commit, lost = module.RedisWriting.commit, []

    def unanswered(self, values):
        if lost:
            return commit(self, values)
        lost.append(commit(self, values) if made else None)
        return False

    monkeypatch.setattr(module.RedisWriting, "commit", unanswered)
    calls = []

    def change(transaction):
        calls.append(1)
        transaction.put("n", bytes(transaction.get("n")) + b"1")
        return len(calls)

    assert store.write(change) == (1 if made else 2)
    assert content(store) == {"n": b"1"}
    assert "lock" not in keys_of(store)
    store.close()


def test_values_that_the_server_has_lost_are_not_committed(redis_url):
    """A server that restarts while a change is made may come back without what was sent before."""
    store = RedisStore(redis_url, create=True)
    put(store, a=b"a")
    calls = []

    def change(transaction):
        calls.append(1)
        transaction.put("b", b"b")
        if len(calls) == 1:
            transaction.get("b")  # it is sent
            store.server.client.delete(*store.keys.parts(transaction.values["b"][0], 1, 8))

    store.write(change)
    assert calls == [1, 1]
    assert content(store) == {"a": b"a", "b": b"b"}
    store.close()


def test_a_replica_that_takes_over_has_a_whole_state(tmp_path):
    """Redis replicates later: what it has is a state that once was, never a part of one."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    redis = pytest.importorskip("redis")
    first = RedisProcess(tmp_path / "one", "--repl-diskless-sync-delay", "0")
    second = RedisProcess(tmp_path / "two", "--replicaof", "127.0.0.1", str(first.port))
    replica = redis.Redis(port=second.port)
    limit = time.monotonic() + 60
    while replica.info("replication")["master_link_status"] != "up" and time.monotonic() < limit:
        time.sleep(0.01)
    stop, added = threading.Event(), []
    try:
        with Index.create(first.url("library"), shingle=None, threads=1) as index:

            def work():
                while not stop.is_set():
                    ids = range(3 * len(added), 3 * len(added) + 3)
                    with contextlib.suppress(LikewiseError):
                        index.add(ids, sets_of(ids))
                    added.append(ids)

            thread = threading.Thread(target=work)
            thread.start()
            try:
                while len(added) < 10:
                    time.sleep(0.01)
                with redis.Redis(port=first.port) as origin:
                    sent = origin.info("replication")["master_repl_offset"]
                while replica.info("replication")["slave_repl_offset"] < sent and time.monotonic() < limit:
                    time.sleep(0.01)
                first.stop(signal.SIGKILL)
            finally:
                stop.set()
                thread.join()
        replica.replicaof("NO", "ONE")
        with Index.open(second.url("library"), threads=1) as index:
            there = [all(id in index for id in ids) for ids in added]
            assert index.check().items == len(index) == 3 * sum(there)
            assert sum(there) > 3
            assert there == sorted(there, reverse=True), "the first ones, none missing between them"
            index.add([10**6], [["x"]])
            assert 10**6 in index
    finally:
        replica.close()
        first.stop()
        second.stop()


@pytest.mark.parametrize("times", [2, pytest.param(5, marks=pytest.mark.soak)])
def test_a_server_may_be_killed_and_come_back(tmp_path, server, times):
    """Every change that was acknowledged is there, and every other one wholly or not at all."""
    mine = RedisProcess(tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    acknowledged, refused, stop = set(), {}, threading.Event()
    with Index.create(mine.url("library"), shingle=None, threads=1) as index:

        def work():
            number = 0
            while not stop.is_set():
                ids = range(number, number + 3)
                number += 3
                try:
                    index.add(ids, sets_of(ids))
                    acknowledged.add(ids)
                except LikewiseError as error:
                    refused[ids] = str(error)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for _ in range(times):
                time.sleep(0.25)
                mine.stop(signal.SIGKILL)
                mine.start()
            time.sleep(0.2)
        finally:
            stop.set()
            thread.join()
        assert len(acknowledged) > 5
        assert all(id in index for ids in acknowledged for id in ids)
        assert all("cannot be reached" in said or "loading" in said for said in refused.values())
        assert all(len({id in index for id in ids}) == 1 for ids in refused)
        assert index.check().items == len(index)
        mine.stop()


def test_a_dead_server_is_a_clear_error(tmp_path, server, monkeypatch):
    mine = RedisProcess(tmp_path)
    monkeypatch.setattr(servers, "PATIENCE", 0.2)
    url = mine.url("library")
    with Index.create(url, shingle=None) as index:
        index.add([1], [["a"]])
        mine.stop()
        for work in (lambda: index.query([["a"]]), lambda: index.add([2], [["b"]]), lambda: Index.open(url)):
            with pytest.raises(
                LikewiseError, match=rf"127\.0\.0\.1:{mine.port}/0\?name=library: the server cannot be reach"
            ):
                work()
        mine.start()
        with pytest.raises(LikewiseError, match="there is no index of this name on the server"):
            index.query([["a"]])
        mine.stop()


def test_passwords_are_needed_and_never_shown(tmp_path, server, typed, monkeypatch):
    mine = RedisProcess(tmp_path, "--requirepass", SECRET, "--unixsocket", str(tmp_path / "socket"))
    try:
        with Index.create(mine.url("library", user=f":{SECRET}@"), shingle="words:1") as index:
            index.add(["x"], ["a text"])
            assert SECRET not in repr(index)
            assert index.where == f"redis://127.0.0.1:{mine.port}/0?name=library"
        for user in ("", ":wr0ng@", "nobody:wr0ng@"):
            with pytest.raises(LikewiseError, match="the server refuses this user or password") as caught:
                Index.open(mine.url("library", user=user))
            assert "wr0ng" not in str(caught.value)
        done = typed("index", "info", mine.url("library", user=":wr0ng@"))
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
        assert "wr0ng" not in done.stderr
        with Index.open(f"unix://{tmp_path}/socket?db=0&name=library&password={SECRET}") as index:
            assert index.where == f"unix://{tmp_path}/socket?db=0&name=library"
            assert len(index) == 1
        monkeypatch.setenv("REDISCLI_AUTH", SECRET)
        with Index.open(mine.url("library")) as index:
            assert len(index) == 1
    finally:
        mine.stop()


READS = "+get +getrange +select"
WRITES = "+set +del +unlink +exists +pexpire +sadd +srem +smembers +watch +unwatch +multi +exec"


def test_users_need_few_commands(redis_url):
    """Those that docs/persistent-index.md lists."""
    with Index.create(redis_url, shingle=None) as index:
        client = index._store.server.client
        try:
            for name, commands in (("reader", READS), ("writer", f"{READS} {WRITES}")):
                rules = f"on >pass ~likewise:* {commands}".split()
                assert client.execute_command("ACL", "SETUSER", name, *rules)
            with Index.open(redis_url.replace("127", "writer:pass@127", 1)) as writer:
                writer.add(range(9), sets_of(range(9)))
                with pytest.raises(LikewiseError):
                    writer.add(range(9), sets_of(range(9)))
                writer.remove([3])
                writer.compact()
                assert writer.check().items == 8
            with Index.open(redis_url.replace("127", "reader:pass@127", 1)) as reader:
                assert reader.query(sets_of(range(4)))["id_b"].to_pylist() == [0, 1, 2]
                assert reader.check().items == 8
                with pytest.raises(OutputError, match="this user lacks the permission"):
                    reader.add([11], sets_of([11]))
        finally:
            client.execute_command("ACL", "DELUSER", "reader", "writer")


def test_a_full_server_changes_nothing(redis_url):
    with Index.create(redis_url, shingle=None) as index:
        index.add([1], [["a"]])
        client = index._store.server.client
        client.config_set("maxmemory", client.info("memory")["used_memory"])
        try:
            with pytest.raises(OutputError, match="the server has no memory left"):
                index.add([2], [["b"]])
            assert index.query([["a"], ["b"]])["id_b"].to_pylist() == [1]
        finally:
            client.config_set("maxmemory", 0)
        index.add([2], [["b"]])
        assert index.check().items == 2


def test_damage_on_the_server_is_found_and_mended(redis_url, monkeypatch):
    with Index.create(redis_url, shingle=None) as index:
        index.add(range(30), sets_of(range(30)))
        store = index._store
        found = {name.rpartition("/")[2]: place for name, place in store.current().values.items()}
        (key,) = store.keys.parts(*found["keys"], 1 << 23)
        store.server.client.setrange(key, 5, b"#")
        with pytest.raises(DamagedError, match=r"1 value of \d+ damaged"):
            index.check()
        (key,) = store.keys.parts(*found["sets"], 1 << 23)
        store.server.client.delete(key)
        monkeypatch.setattr(module, "SHARED", ValueCache())
        with Index.open(redis_url) as other, pytest.raises(DamagedError, match="/keys of the index is damaged"):
            other.query(sets_of([1]))
        assert index.check(repair=True).lost == 0
        assert index.check().items == 30
        assert index.query(sets_of(range(30)))["id_b"].to_pylist() == list(range(30))


def test_an_interrupted_creation_is_no_obstacle(redis_url):
    RedisStore(redis_url, create=True).close()
    with Index.create(redis_url) as index:
        assert len(index) == 0
    with pytest.raises(OutputError, match="there is an index already"):
        Index.create(redis_url)


def test_the_command_line_takes_urls(redis_url, typed, tmp_path):
    (tmp_path / "docs.csv").write_text("key,text\na,one two three\nb,four five six\n")
    for words, said in [
        (["create", redis_url, "--shingle", "words:1"], "0 items"),
        (["add", redis_url, "docs.csv", "--id", "key"], "added 2 items; redis://127.0.0.1"),
        (["query", redis_url, "docs.csv", "--id", "key", "--out", "found.csv"], "2 items: 2 answers"),
        (["remove", redis_url, "a"], "removed 1 item; redis://127.0.0.1"),
        (["check", redis_url], "1 item: "),
        (["compact", redis_url], "1 item, 1 different"),
    ]:
        done = typed("index", *words)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout + done.stderr


def test_tls(tmp_path, server):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here")
    words = (
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert -days 2 -subj /CN=localhost"
    )
    more = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", *words.split(), *more], cwd=tmp_path, check=True, capture_output=True)
    files = ["--tls-cert-file", f"{tmp_path}/cert", "--tls-key-file", f"{tmp_path}/key", "--tls-auth-clients", "no"]
    plain = RedisProcess(tmp_path)
    plain.stop()
    mine = RedisProcess(tmp_path, *files, "--tls-ca-cert-file", f"{tmp_path}/cert", "--tls-port", str(plain.port))
    try:
        url = f"rediss://127.0.0.1:{plain.port}/0?name=library"
        with Index.create(f"{url}&ssl_ca_certs={tmp_path}/cert", shingle=None) as index:
            index.add([1], [["a"]])
            assert index.where == url
            assert index.query([["a"]])["id_b"].to_pylist() == [1]
        with pytest.raises(LikewiseError, match=r"the server cannot be reached: .*certificate"):
            Index.open(url)
    finally:
        mine.stop()


@pytest.mark.parametrize(
    ("url", "where", "options"),
    [
        ("redis://h", "redis://h:6379/0?name=index", {"host": "h", "db": 0}),
        ("REDIS://h:1/2?name=a.b-c", "redis://h:1/2?name=a.b-c", {"host": "h", "port": 1, "db": 2}),
        ("redis://u:p%2Fq@h", "redis://u@h:6379/0?name=index", {"username": "u", "password": "p/q"}),
        ("redis://:pass@[::1]:7/1", "redis://[::1]:7/1?name=index", {"password": "pass", "host": "::1"}),
        (
            "rediss://h/3?ssl_cert_reqs=none&ssl_ca_certs=/x",
            "rediss://h:6379/3?name=index",
            {"ssl_cert_reqs": "none", "ssl_ca_certs": "/x", "db": 3},
        ),
        ("unix:///run/r.sock?db=4&name=n", "unix:///run/r.sock?db=4&name=n", {"path": "/run/r.sock", "db": 4}),
    ],
)
def test_what_a_url_means(url, where, options):
    address = RedisAddress.of("test", url)
    assert address.where == where
    server = servers.RedisServer(address)
    given = server.client.connection_pool.connection_kwargs
    assert {name: given[name] for name in options} == options
    assert "SSL" in server.client.connection_pool.connection_class.__name__ or not url.startswith("rediss")


@pytest.mark.parametrize(
    "url",
    [
        "http://h/0", "redis://", "redis://h/x", "redis://h:x/0", "redis://h/0?name=a b", "redis://h/0?name=",
        "redis://h/0?other=1", "redis://h/0?name", "redis://:s3/cret@h/0", "redis://:s3#cret@h/0", "redis://:s3?cret@h/0",
        "redis://u:12/s3cret@h/0", "redis://u:12?s3cret@h=1", "redis://h/0?lease=0", "redis://h?grace=x", "unix://",
        "redis://h/0/1", "redis://h/0?db=x", "redis://[::1/0",
    ],
)  # fmt: skip
def test_what_is_no_url_is_said(url):
    with pytest.raises(ParameterError) as caught:
        Index.open(url)
    assert "cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_path_is_no_url(tmp_path):
    with pytest.raises(ParameterError, match="must be a string if it is a URL"):
        Index.create(tmp_path.__class__("redis://h/0"))


def test_the_cache_holds_what_is_used_and_little_else():
    cache = ValueCache(room=100)
    used = cache.put("used", as_words(80, [bytes(80)]))
    for number in range(5):
        cache.put(f"v{number}", as_words(48, [bytes([number]) * 48]))
    assert cache.get("used") is used
    assert cache.get("v4") is None, "the one that is used has taken its place"
    assert bytes(as_bytes(as_words(5, [b"ab", b"cde"]), 5)) == b"abcde"
    assert bytes(as_bytes(as_words(0, []), 0)) == b""
    cache.forget(["used", "none"])
    assert cache.get("used") is used
