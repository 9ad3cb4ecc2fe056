"""Clients that are slow on purpose, tokens that change, and encryption."""

import contextlib
import http.client
import json
import socket
import ssl
import time
from pathlib import Path

import pytest

from likewise.errors import LikewiseError, ParameterError
from likewise.serve import settings as settings_module
from likewise.serve.server import Gate, TlsFiles, room_for
from likewise.serve.settings import READ, WRITE, TokenRoles
from service_process import TOKEN, Served

TLS = Path(__file__).parent / "tls"
HEAD = b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
OTHER = "another-token-of-the-tests"


def status(port, path="/health", method="GET", body=None, token=None, **more):
    """Send a request on a connection of its own; return the status."""
    kind = http.client.HTTPSConnection if more else http.client.HTTPConnection
    connection = kind("127.0.0.1", port, timeout=20, **more)
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    found = connection.getresponse()
    found.read()
    connection.close()
    return found.status


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A service with a second for everything and room for eight connections."""
    from likewise import Index

    folder = tmp_path_factory.mktemp("slow") / "index"
    with Index.create(folder, shingle="words:2", threshold=0.3) as index:
        index.add(None, [f"some text of the number {i} and more" for i in range(300)])
    running = Served(folder, "--timeout", "1", "--max-connections", "8")
    yield running
    assert running.stop()[0] == 0


def seconds_until_closed(port, data, again=b""):
    """Send bytes, then the others again and again; return how long the connection was open, and what came."""
    begun, answer = time.monotonic(), b""
    with socket.create_connection(("127.0.0.1", port), timeout=0.2) as raw:
        raw.sendall(data)
        while time.monotonic() - begun < 30:
            try:
                part = raw.recv(1 << 16)
                answer += part
                if not part:
                    break
            except TimeoutError:
                if again:
                    raw.sendall(again)
            except OSError:
                break
    return time.monotonic() - begun, answer


@pytest.mark.parametrize(
    ("data", "again"),
    [
        (b"", b""),
        (HEAD[:30], b"x"),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" + HEAD[:30], b"x"),
        (HEAD, b" "),
    ],
    ids=["nothing", "a head", "a second head", "a body"],
)
def test_a_request_that_does_not_arrive_is_given_up(small, data, again):
    """The second kept its connection for ever."""
    try:
        seconds, answer = seconds_until_closed(small.port, data, again)
    except BrokenPipeError:
        return
    assert seconds < 6  # a second for a head, another for the body, and what a busy machine takes
    assert b" 5" not in answer[:20]


def test_an_answer_that_is_not_read_is_given_up(small):
    body = json.dumps({"items": ["some text of the number and more"] * 300, "k": 300, "threshold": 0.3}).encode()
    head = HEAD.replace(b"99", str(len(body)).encode())
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", small.port))
        raw.sendall(head + body)
        time.sleep(7)
        raw.settimeout(5)
        got = 0
        with contextlib.suppress(ConnectionResetError):
            while part := raw.recv(1 << 16):
                got += len(part)
    assert 0 < got < 2 << 20, "the whole answer, three megabytes, was kept for seven seconds"


@pytest.mark.parametrize("data", [b"", HEAD[:30], HEAD], ids=["idle", "heads", "bodies"])
def test_slow_clients_keep_nobody_out(small, data):
    """520 such connections had every other answered with 503, for as long as they liked."""
    held = []
    try:
        for _ in range(100):
            held.append(socket.create_connection(("127.0.0.1", small.port), timeout=20))
            held[-1].sendall(data)
            if len(held) % 10 == 0:
                assert status(small.port) == 200
                assert status(small.port, "/query", "POST", {"text": "some text"}) == 200
    finally:
        for one in held:
            one.close()


class Held:
    """A connection without a network."""

    def __init__(self, address, *, waits=True, between=True):
        self.address, self.waits, self.between = address, waits, between
        self.since, self.unread, self.open, self.left = 0.0, None, True, 0
        self.transport = self

    def drop(self):
        self.open = False

    def is_closing(self):
        return False

    def get_write_buffer_size(self):
        return self.left


def test_the_oldest_of_the_client_that_has_the_most_makes_room():
    gate = Gate(most=5, each=9, seconds=1)
    friend, busy, *hostile = [Held("10.0.0.1"), Held("10.0.0.2", waits=False), *(Held("10.0.0.2") for _ in range(5))]
    for one in (friend, busy, *hostile):
        gate.admit(one)
    assert [one.open for one in (friend, busy, *hostile)] == [True, True, False, False, True, True, True]
    assert gate.told() == {"shed": 2, "late": 0, "open": 5}
    assert gate.told() is None


def test_a_client_has_its_share_and_this_machine_all():
    gate = Gate(most=9, each=2, seconds=1)
    some, here = [Held("10.0.0.1") for _ in range(4)], [Held("127.0.0.1") for _ in range(4)]
    for one in (*some, *here):
        gate.admit(one)
    assert [one.open for one in (*some, *here)] == [False, False, True, True, True, True, True, True]
    full = Gate(most=2, each=9, seconds=1)
    answered = [Held("10.0.0.1", waits=False) for _ in range(3)]
    for one in answered:
        full.admit(one)
    assert [one.open for one in answered] == [True, True, False]


def test_late_connections_are_closed():
    gate = Gate(most=9, each=9, seconds=2)
    head, rest, idle, unread = Held("a"), Held("a", between=False), Held("a"), Held("a")
    idle.since, unread.since, unread.left = None, None, 9
    for one in (head, rest, idle, unread):
        gate.admit(one)
    gate.sweep(1.9)
    assert all(one.open for one in (head, rest, idle, unread))
    gate.sweep(2.1)
    assert [one.open for one in (head, rest, idle, unread)] == [False, True, True, True]
    unread.left = 0
    gate.sweep(4.0)
    unread.left = 9
    gate.sweep(4.5)
    gate.sweep(6.4)
    assert [one.open for one in (rest, idle, unread)] == [True, True, True]
    gate.sweep(6.6)
    assert [one.open for one in (rest, idle, unread)] == [True, True, False]
    gate.sweep(8.1)
    assert [one.open for one in (rest, idle)] == [False, True]
    assert gate.count == 1


def test_the_limit_of_open_files_is_kept_to(monkeypatch):
    resource = pytest.importorskip("resource")
    limits = [(300, 400)]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: limits.append(pair))
    assert room_for(10) == 10
    assert len(limits) == 1
    assert room_for(4096) == 400 - 256
    assert limits[-1] == (400, 400)


def test_tokens_have_roles_and_change_while_the_service_runs(index, client_of, tmp_path, monkeypatch):
    monkeypatch.setattr(settings_module, "LOOK_AGAIN", 0.0)
    path, log = tmp_path / "tokens", []
    path.write_text(f"# ours\nread {TOKEN}\n\nwrite {OTHER}\n")
    client = client_of(index, token=None, token_file=path, private=True, log=log.append)

    def may(token, method="GET", path="/info"):
        return client.request(method, path, headers={"Authorization": f"Bearer {token}"}).status_code

    assert [may(TOKEN), may(OTHER), may("a-token-of-nobody-here")] == [200, 200, 401]
    assert may(TOKEN, "DELETE", "/items/rose") == 403
    assert may(OTHER, "DELETE", "/items/rose") == 200
    path.write_text("write short\n")
    assert may(OTHER) == 200
    assert "tokens:1: The token of serve must have" in log[-2]["error"]
    path.write_text(f"{TOKEN}\n")
    assert [may(OTHER), may(TOKEN, "DELETE", "/items/roses")] == [401, 200]
    path.write_text(f"read {TOKEN}\n")
    assert may(TOKEN, "DELETE", "/items/roses") == 403
    assert client.get("/info", headers={"Authorization": f"Bearer {TOKEN}"}).json()["writable"] is False
    path.unlink()
    assert may(TOKEN) == 200
    assert "cannot be read" in log[-2]["error"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no token"),
        ("# nothing\n", "there is no token"),
        ("short", "tokens:1"),
        (f"{TOKEN}\nadmin {OTHER}", "tokens:2: a line is"),
        (f"read {TOKEN} {OTHER}", "tokens:1: a line is"),
    ],
)
def test_wrong_files_of_tokens(tmp_path, text, message):
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(ParameterError, match=message):
        TokenRoles(None, tmp_path / "tokens")


def test_one_token_may_do_everything(tmp_path):
    given = TokenRoles(TOKEN, None)
    assert (given.role(TOKEN), given.role(OTHER), given.role("")) == (WRITE, None, None)
    (tmp_path / "tokens").write_text(f"read {TOKEN}\n")
    assert TokenRoles(None, tmp_path / "tokens").role(TOKEN) == READ
    assert not TokenRoles(None, None).any


def test_https(index, served, tmp_path):
    index.close()
    words = ["--certificate", str(TLS / "certificate.pem"), "--key", str(TLS / "key.pem")]
    service = served(tmp_path / "index", *words)
    assert service.url.startswith("https://127.0.0.1:")
    known = ssl.create_default_context(cafile=TLS / "certificate.pem")
    assert status(service.port, context=known) == 200
    with pytest.raises((OSError, http.client.HTTPException)):
        status(service.port)


@pytest.mark.parametrize(
    ("certificate", "key", "message"),
    [
        ("missing.pem", "key.pem", "missing.pem: cannot be read"),
        ("certificate.pem", "missing.pem", "missing.pem: cannot be read"),
        ("key.pem", "key.pem", "not a certificate"),
        ("certificate.pem", "certificate.pem", "not a certificate and its key"),
        ("certificate.pem", "encrypted.pem", "encrypted"),
    ],
)
def test_wrong_certificates(certificate, key, message):
    with pytest.raises(LikewiseError, match=message):
        TlsFiles(TLS / certificate, TLS / key)
