"""Servers on this machine for remote files: a web server that counts and fails on demand, before files or before S3."""

import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

BUCKET = "bucket"
SLOW = 1.6
"""Seconds that a slow answer takes: more than tests let a server be silent."""
HUB, HUB_FILES = "/api/datasets/owner/name", "/datasets/owner/name/resolve/main"
"""Where the Hub tells of a dataset, and where its files are."""
FAULTS = ("500", "503", "reset", "cut", "short", "slow")


@lru_cache(maxsize=100)
def tag_of(data: bytes) -> str:
    """Return the tag of a file's version; large files are asked for many times."""
    return f'"{hashlib.md5(data).hexdigest()}"'


class FaultyServer(ThreadingHTTPServer):
    """A web server with files in memory, or one that passes requests on, which counts them and can fail."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, behind: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), FaultyAnswers)
        self.behind = behind
        self.files: dict[str, bytes] = {}
        self.gone: Callable[[str], bool] = lambda path: False
        self.reset()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def reset(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.sent = 0
        self.ranges = self.sizes = self.tagged = True
        self.fault: Callable[[str, str], str | None] = lambda method, path: None
        self.held = threading.Event()
        self.change: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address) -> None:
        """Say nothing of connections that a client has given up."""


class FaultyAnswers(BaseHTTPRequestHandler):
    """One request after the other on a connection."""

    protocol_version = "HTTP/1.1"
    server: FaultyServer

    def log_message(self, *words: object) -> None:
        """Say nothing."""

    def answer(self) -> None:
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server.asked.append((self.command, self.path))
        fault = server.fault(self.command, self.path)
        if fault == "hang":
            server.held.set()
            time.sleep(60)
        if fault == "slow":
            time.sleep(SLOW)
        if fault == "changed":
            server.change()
        if fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.close_connection = True
            self.connection.close()
            return
        status, headers, data = self.behind(body) if server.behind else self.file()
        if fault in ("500", "503"):
            status, headers, data = int(fault), {}, b"<Error><Code>InternalError</Code></Error>"
        elif fault == "short" and len(data) > 1:
            data = data[: len(data) // 2]
            headers = {name: value for name, value in headers.items() if name != "Content-Length"}
        self.send_response_only(status)
        length = headers.pop("Content-Length", str(len(data)))
        if server.sizes:
            self.send_header("Content-Length", length)
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            some = data[: len(data) // 2] if fault == "cut" else data
            self.wfile.write(some)
            server.sent += len(some)
            if fault == "cut":
                self.close_connection = True

    def file(self) -> tuple[int, dict[str, str], bytes]:
        path = unquote(self.path.partition("?")[0])
        if path.startswith(HUB):
            return 200, {"Content-Type": "application/json"}, json.dumps(self.of_hub(path)).encode()
        data = self.server.files.get(path)
        if data is None:
            status = {"/forbidden": 403}.get(path, 404)
            return status, {}, b"no"
        tag = {"ETag": tag_of(data)} if self.server.tagged else {}
        asked = self.headers.get("Range")
        if not asked or not self.server.ranges:
            return 200, tag, data
        start, _, end = asked.removeprefix("bytes=").partition("-")
        if int(start) >= len(data):
            return 416, {**tag, "Content-Range": f"bytes */{len(data)}"}, b""
        piece = data[int(start) : int(end) + 1]
        told = f"bytes {start}-{int(start) + len(piece) - 1}/{len(data)}"
        return 206, {**tag, "Content-Range": told}, piece

    def of_hub(self, path: str) -> object:
        """Answer what the Hugging Face Hub says of a dataset: that it is there, and what is in a folder of it."""
        about, _, folder = path.removeprefix(HUB).lstrip("/").partition("/main")
        if about != "tree":
            return {"id": "owner/name", "sha": "0" * 40, "siblings": [], "tags": [], "private": False}
        root = f"{HUB_FILES}{folder}".rstrip("/") + "/"
        below = {name[len(root) :]: data for name, data in self.server.files.items() if name.startswith(root)}
        deep = "recursive=true" in self.path.lower()
        inside = folder.lstrip("/") + "/" if folder.strip("/") else ""
        entries: list[dict[str, object]] = []
        for name, data in below.items():
            if deep or "/" not in name:
                digest = hashlib.sha1(data).hexdigest()
                entries.append({"type": "file", "oid": digest, "size": len(data), "path": inside + name})
        folders = {name.rpartition("/")[0] if deep else name.partition("/")[0] for name in below if "/" in name}
        entries += [{"type": "directory", "oid": "1" * 40, "size": 0, "path": inside + name} for name in folders]
        return entries

    def behind(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if self.server.gone(self.path):
            return 404, {}, b""
        passed = http.client.HTTPConnection(str(self.server.behind))
        headers = {name: value for name, value in self.headers.items() if name != "Connection"}
        passed.request(self.command, self.path, body, headers)
        answer = passed.getresponse()
        data = answer.read()
        dropped = ("connection", "transfer-encoding", "server", "date")
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in (*dropped, "content-length")}
        passed.close()
        if self.command == "HEAD":
            return answer.status, {**kept, "Content-Length": answer.getheader("Content-Length", "0")}, b""
        return answer.status, kept, data

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = answer


AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key that Azurite's documentation gives for its only account."""


def connection_string(url: str) -> str:
    """Return what stands in the environment for Azure's clients to find Azurite."""
    account = f"AccountName=devstoreaccount1;AccountKey={AZURITE_KEY}"
    return f"DefaultEndpointsProtocol=http;{account};BlobEndpoint={url}/devstoreaccount1;"


@contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """Start Azurite, and yield its address; skip the test where it cannot be had."""
    own, npx = shutil.which("azurite-blob"), shutil.which("npx")
    if own is None and npx is None:
        pytest.skip("there is no Azurite, and no npm to fetch it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [own] if own else [str(npx), "--yes", "--package", "azurite", "azurite-blob"]
    words += ["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence", "--blobPort"]
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen([*words, str(port)], cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if server.poll() is not None:
                    pytest.skip(f"Azurite does not start: {(folder / 'log').read_text()[-300:]}")
                time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def put_behind(server: FaultyServer, path: str, data: bytes) -> None:
    """Replace an object of a store, or a file of a web server, without a request that could fail."""
    if server.behind is None:
        server.files[path] = data
        return
    passed = http.client.HTTPConnection(server.behind)
    signed = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    passed.request("PUT", path, data, {"Authorization": signed})  # moto asks for a signature and reads none
    assert passed.getresponse().status == 200
    passed.close()


def now_and_then(rate: float, seed: int, kinds: tuple[str, ...] = FAULTS) -> Callable[[str, str], str | None]:
    """Return faults at random, and count them."""
    drawn = random.Random(seed)
    lock = threading.Lock()

    def fault(method: str, path: str) -> str | None:
        with lock:
            if drawn.random() >= rate:
                return None
            fault.count += 1  # type: ignore[attr-defined]
            return drawn.choice(kinds)

    fault.count = 0  # type: ignore[attr-defined]
    return fault


@contextmanager
def impatient() -> Iterator[None]:
    """Let web servers be silent for less than a slow answer takes; elsewhere a test that has to wait for the processor
    would take its server for a slow one."""

    from likewise.io import stores

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "SILENT_SECONDS", SLOW / 2)
        stores.system_for.cache_clear()
        yield
    stores.system_for.cache_clear()


@contextmanager
def quick_tries(folder: Path) -> Iterator[None]:
    """Let tries follow each other at once, and files that are fetched be in a folder of the test."""
    from likewise.io import disk, mirror, remote, stores

    def forget() -> None:
        stores.system_for.cache_clear()
        mirror._mirror_folder.cache_clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "FIRST_PAUSE", 0.002)
        for module in (mirror, disk):
            patch.setattr(module, "cache_folder", lambda: folder)
        forget()
        yield
        forget()
