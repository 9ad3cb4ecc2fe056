"""The service as a process: how it starts, what it reads, and how it stops."""

import contextlib
import http.client
import json
import signal
import socket
import threading
import time

import pytest

from likewise import Index
from service_process import BEARER, TOKEN, Served

JSON = {"Content-Type": "application/json"}


def asked(port, method, path, body=None, headers=None):
    """Send a request; return the status and the JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, None if body is None else json.dumps(body), {**JSON, **(headers or {})})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


@pytest.fixture
def folder(index, tmp_path):
    index.close()
    return tmp_path / "index"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A service with small limits, for tests that only ask."""
    folder = tmp_path_factory.mktemp("small") / "index"
    Index.create(folder, shingle="words:2").close()
    running = Served(folder, "--max-body", "10kB", "--timeout", "1")
    yield running
    assert running.stop()[0] == 0


def test_it_serves_and_stops(folder, served):
    service = served(folder, new=True)
    assert service.start["items"] == 3
    assert service.start["writable"] is True
    assert service.url.startswith("http://127.0.0.1:")
    added = asked(service.port, "POST", "/items", {"ids": ["x"], "items": ["one two three"]}, BEARER)
    assert added == (200, {"added": 1, "items": 4})
    found = asked(service.port, "POST", "/query", {"text": "one two three"})
    assert found == (200, {"answers": [[{"id": "x", "similarity": 1.0}]]})
    code, lines = service.stop()
    assert code == 0
    assert [line["event"] for line in lines] == ["request", "request", "stop"]
    assert all(line["time"].endswith("Z") for line in lines)


def test_a_large_body_is_refused_before_it_is_sent(small):
    with socket.create_connection(("127.0.0.1", small.port), timeout=60) as raw:
        raw.sendall(
            b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000000000000\r\n\r\n"
        )
        answer = b""
        while part := raw.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()
    with socket.create_connection(("127.0.0.1", small.port), timeout=60) as raw:
        raw.sendall(
            b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 1 << 28:  # a body without end: it is not read for long
                raw.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
                sent += 4096
        assert sent < 1 << 28
    assert asked(small.port, "GET", "/health") == (200, {"status": "ok"})


def test_a_body_that_does_not_arrive_is_given_up(small):
    with socket.create_connection(("127.0.0.1", small.port), timeout=60) as raw:
        raw.sendall(
            b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        answer = b""
        while part := raw.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_finishes_a_request_that_has_begun(folder, served, number):
    service = served(folder)
    assert asked(service.port, "GET", "/health")[0] == 200  # it accepts connections now
    body = json.dumps({"text": "one two three"}).encode()
    head = f"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as raw:
        raw.sendall(head.encode() + b"\r\n\r\n" + body[:5])
        time.sleep(0.5)  # the service reads the body now
        stopped = []
        stopping = threading.Thread(target=lambda: stopped.append(service.stop(number)))
        stopping.start()
        time.sleep(0.5)
        with pytest.raises(OSError, match=r"refused"):
            socket.create_connection(("127.0.0.1", service.port), timeout=5).close()
        raw.sendall(body[5:])
        answer = b""
        while part := raw.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b'{"answers": [[]]}')
    stopping.join()
    code, lines = stopped[0]
    assert code == 0
    assert [line.get("status") for line in lines] == [200, 200, None]


def test_garbage_on_the_wire(small):
    for garbage in (b"\x00" * 100, b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n", b"A" * 100_000 + b"\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", small.port), timeout=60) as raw:
            try:
                raw.sendall(garbage)
                raw.shutdown(socket.SHUT_WR)
                answer = raw.recv(65536)
            except OSError:
                continue
            assert not answer or answer.startswith(b"HTTP/1.1 4")
    assert asked(small.port, "GET", "/health")[0] == 200


def test_other_machines_need_a_token(folder, typed):
    done = typed("serve", str(folder), "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert "token" in done.stderr
    assert done.stderr.count("\n") == 1


def test_where_other_machines_can_connect_queries_need_the_token(folder, served):
    service = served(folder, "--host", "0.0.0.0")
    assert asked(service.port, "GET", "/info")[0] == 401
    assert asked(service.port, "GET", "/info", headers=BEARER)[0] == 200
    assert asked(service.port, "GET", "/info", headers={**BEARER, "Host": "any.example"})[0] == 200


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere"], 1, "nowhere"),
        (["index", "--host", "no.such.host.invalid"], 1, "cannot listen"),
        (["index", "--port", "70000"], 2, "--port"),
        (["index", "--token-file", "missing"], 1, "missing"),
        (["index", "--token-file", "short"], 2, "16 characters"),
        (["index", "--private"], 2, "token"),
        (["index", "--max-body", "much"], 2, "--max-body"),
        (["index", "--timeout", "0"], 2, "--timeout"),
        (["index", "--certificate", "some.pem"], 2, "--key"),
        (["index", "--certificate", "short", "--key", "short"], 2, "not a certificate"),
        (["index", "--max-connections", "0"], 2, "--max-connections"),
    ],
)
def test_wrong_calls_are_one_line(folder, typed, tmp_path, monkeypatch, words, code, message):
    monkeypatch.delenv("LIKEWISE_TOKEN", raising=False)
    (tmp_path / "short").write_text("short\n")
    done = typed("serve", *words)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert message in done.stderr


def test_the_token_of_a_file(folder, served, tmp_path):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    service = served(folder, "--token-file", str(tmp_path / "token"), token=None)
    assert asked(service.port, "DELETE", "/items/rose", headers=BEARER) == (200, {"removed": 1, "items": 2})
    assert asked(service.port, "DELETE", "/items/roses")[0] == 401


def test_a_port_that_is_taken(folder, typed):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = typed("serve", str(folder), "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "cannot listen" in done.stderr
