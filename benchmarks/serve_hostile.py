"""The service and requests that are wrong: no answer is a fault of the server, it does not crash, its memory is flat.

    python benchmarks/serve_hostile.py                  10,000 requests of schemathesis, 10,000 of raw bytes
    python benchmarks/serve_hostile.py --requests 1000
    python benchmarks/serve_hostile.py --slow 600       only slow clients, 5,000 connections, for ten minutes

Schemathesis reads the OpenAPI document of the service and makes requests from it, good ones and bad ones; it has an
environment of its own (runs.py). Raw bytes are requests that were changed, cut or made of anything; then there are
bodies as large as the service takes that are made to be costly.

Slow clients send a byte of a head or of a body every five seconds, or ask for much and read the answers as slowly; each
connects again a second after it was closed. Meanwhile another process asks for /health ten times a second, each time on
a new connection, and once a second for a query, and a third asks a second service, which nobody attacks: what that
takes is the machine's. All come from one address, as the clients of a proxy do.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import multiprocessing
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import likewise
from corpus import DATA
from runs import python_of
from serve import TOKEN, served

RESULTS = Path(__file__).parent / "results" / "serve-hostile.json"
SLOW_RESULTS = RESULTS.with_name("serve-slow.json")
OUT = DATA / "out" / "serve-hostile"
LARGEST = 16 << 20
CONNECTIONS = 32
REQUESTS = [
    b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n"
    b'{"text": "a b"}',
    b"GET /items/7 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"DELETE /items/7 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n\r\n",
    b"POST /items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\n[1,2]\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
]


def resident(pid: int) -> dict[str, float]:
    """The resident memory of the service now, and its largest, in megabytes."""
    sizes = {"now": 0.0, "peak": 0.0}
    for process in [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            for name, key in (("now", "VmRSS"), ("peak", "VmHWM")):
                if line.startswith(key):
                    sizes[name] = max(sizes[name], int(line.split()[1]) * 1024 / 1e6)
    return {name: round(size) for name, size in sizes.items()}


def by_schemathesis(port: int, requests: int) -> dict[str, object]:
    """Let schemathesis make requests until there are as many as wanted; return the statuses of the answers."""
    log = OUT / "requests.ndjson"
    command = str(Path(python_of("schemathesis")).with_name("schemathesis"))
    statuses: Counter[int] = Counter()
    said: list[str] = []
    seed = 0
    while sum(statuses.values()) < requests:
        seed += 1
        log.unlink(missing_ok=True)
        words = [
            command, "run", f"http://127.0.0.1:{port}/openapi.json", "--checks", "not_a_server_error", "--mode", "all",
            "--max-examples", "600", "--seed", str(seed), "--phases", "examples,coverage,fuzzing", "--no-color",
            "--generation-database", "none", "--report", "ndjson", "--report-ndjson-path", str(log),
            "--header", f"Authorization: Bearer {TOKEN}", "--suppress-health-check", "all", "--request-timeout", "60",
        ]  # fmt: skip
        environment = {**os.environ, "COLUMNS": "200"}
        done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=OUT)  # it leaves files there
        if done.returncode not in (0, 1):
            sys.exit(f"schemathesis failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        said.append("passed" if done.returncode == 0 else done.stdout[-3000:])
        before = sum(statuses.values())
        for found in re.finditer(r'"status_code":\s*(\d+)', log.read_text()):
            statuses[int(found[1])] += 1
        if sum(statuses.values()) == before:
            sys.exit(f"schemathesis made no request:\n{done.stdout[-3000:]}")
    return {"statuses": dict(sorted(statuses.items())), "runs": said}


def costly() -> Iterator[bytes]:
    """Yield bodies of the largest size that are made to take memory or time."""
    for part in (
        b"[],",
        b"1,",
        b'"",',
        b"{},",
        b"[",
        b'{"a":',
        b'"',
        b',\\"',
        b"\\",
        b"1",
        b"1e9,",
        b'"\\ud800",',
        b"\x00",
    ):
        for head in (b'{"items":[', b'{"text":"', b""):
            yield (head + part * (LARGEST // len(part)))[:LARGEST]


def raw(chance: random.Random) -> bytes:
    """A request that was changed, cut or repeated, or bytes of any kind."""
    data = bytearray(chance.choice(REQUESTS))
    kind = chance.randrange(6)
    if kind == 0:
        return chance.randbytes(chance.randrange(1, 2000))
    if kind == 1:
        return bytes(data[: chance.randrange(len(data))])
    if kind == 2:
        at = chance.randrange(len(data))
        data[at:at] = chance.randbytes(chance.randrange(1, 50))
    if kind == 3:
        head = b"X-%d: %s\r\n" % (chance.randrange(99), b"a" * chance.choice([1, 1000, 100_000]))
        return bytes(data).replace(b"\r\n", b"\r\n" + head * chance.choice([1, 50]), 1)
    if kind == 4:
        length = chance.choice([b"-1", b"0", b"99999999999999999999", b"abc", b"16777217", b"1e3", b"15, 15"])
        return re.sub(rb"Content-Length: \d+", b"Content-Length: " + length, bytes(data))
    for _ in range(chance.randrange(1, 9)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def sent(port: int, data: bytes, wait: float) -> str:
    """Send bytes on a connection of their own; return the status of the first answer, or what came instead.

    A request that is not complete has no answer: after `wait` seconds the connection is closed.
    """
    answer = b""
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.settimeout(wait)
        with contextlib.suppress(OSError):
            connection.sendall(data)
        try:
            while b"\r\n" not in answer and (part := connection.recv(4096)):
                answer += part
        except TimeoutError:
            return "no answer"
        except OSError:
            return "closed"
    found = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return found[1].decode() if found else "closed"


def posted(body: bytes) -> bytes:
    """A query."""
    head = "POST /query HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def by_bytes(port: int, requests: int) -> dict[str, int]:
    """Send raw bytes; return what came back, by status."""
    chance = random.Random(1)
    made = [raw(chance) for _ in range(requests)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        seen = Counter(pool.map(lambda data: sent(port, data, 1), made))
    return dict(sorted(seen.items()))


def by_bodies(port: int) -> dict[str, int]:
    """Send the costly bodies; return what came back, by status."""
    seen: Counter[str] = Counter()
    for body in costly():
        seen[sent(port, posted(body), 120)] += 1
    return dict(sorted(seen.items()))


async def slow_client(port: int, kind: int, end: float, seen: Counter[str]) -> None:
    """Be slow until the end; count what came back, by the kind of client and the status."""
    name = ("heads", "bodies", "readers", "idle")[kind]
    asked = posted(
        json.dumps({"items": ["the quick brown fox jumps over"] * 100, "k": 1000, "threshold": 0.0}).encode()
    )
    data = (REQUESTS[0][:60] + b"X" * 99, REQUESTS[0][:-9] + b" " * 99, asked, b"")[kind]
    while time.monotonic() < end:
        writer = None
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 10)
            seen[f"{name}: connected"] += 1
            whole = len(data) if kind == 2 else max(0, len(data) - 99)
            writer.write(data[:whole])
            place = whole
            while time.monotonic() < end:
                answer = asyncio.ensure_future(reader.read(1 if kind == 2 else 100))
                done, _ = await asyncio.wait([answer], timeout=5)
                if done:
                    got = answer.result()
                    found = re.match(rb"HTTP/1\.[01] (\d{3})", got)
                    if found:
                        seen[f"{name}: {found[1].decode()}"] += 1
                    if not got:
                        break
                    await asyncio.sleep(5 if kind == 2 else 0)
                else:
                    answer.cancel()
                writer.write(data[place : place + 1])
                place += 1
            seen[f"{name}: closed"] += 1
        except OSError:
            seen[f"{name}: closed"] += 1
        finally:
            if writer is not None:
                writer.transport.abort()
        await asyncio.sleep(1)


def slow_clients(port: int, count: int, seconds: float) -> Counter[str]:
    """Be many slow clients."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    seen: Counter[str] = Counter()
    end = time.monotonic() + seconds

    async def all_of_them() -> None:
        async def later(place: int) -> None:
            await asyncio.sleep(place / count * 10)
            await slow_client(port, place % 4, end, seen)

        await asyncio.gather(*(later(place) for place in range(count)))

    asyncio.run(all_of_them())
    return seen


def probes(port: int, path: str, body: dict[str, object] | None, pause: float, seconds: float) -> dict[str, object]:
    """Ask again and again, each time on a new connection; return statuses and milliseconds."""
    times, statuses = [], Counter[str]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.perf_counter()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            headers = {"Content-Type": "application/json", "Connection": "close"}
            connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            answer.read()
            statuses[str(answer.status)] += 1
            connection.close()
        except OSError as error:
            statuses[type(error).__name__] += 1
        times.append((time.perf_counter() - begun) * 1000)
        time.sleep(max(0.0, pause - (time.perf_counter() - begun)))
    times.sort()
    shown = {name: round(times[int(share * (len(times) - 1))], 1) for name, share in (("p50", 0.5), ("p99", 0.99))}
    return {"statuses": dict(statuses), "ms": {**shown, "max": round(times[-1], 1)}}


def stolen() -> float:
    """Return the seconds that the host of a virtual machine has taken from its cores."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) / os.sysconf("SC_CLK_TCK")


def by_slow_clients(folder: Path, count: int, seconds: float) -> dict[str, object]:
    """Serve while there are slow clients; return what happened to them, and to others."""
    spawn = multiprocessing.get_context("spawn")
    with served(folder) as (port, pid), served(folder) as (other, _), ProcessPoolExecutor(4, spawn) as pool:
        memory = {"at the start": resident(pid)}
        calm = pool.submit(probes, port, "/health", None, 0.1, 5).result()
        asks: dict[str, object] = {"text": "the quick brown fox"}
        health = pool.submit(probes, port, "/health", None, 0.1, seconds)
        control = pool.submit(probes, other, "/health", None, 0.1, seconds)
        before = stolen()
        query = pool.submit(probes, port, "/query", asks, 1.0, seconds)
        slow = pool.submit(slow_clients, port, count, seconds)
        time.sleep(seconds * 0.9)
        memory["near the end"] = resident(pid)
        found = dict(sorted(slow.result().items()))
        share = round((stolen() - before) / (seconds * (os.cpu_count() or 1)), 3)
        return {
            "connections": count, "seconds": seconds, "slow clients": found, "health before": calm,
            "health": health.result(), "queries": query.result(), "memory_mb": memory,
            "health of a service that nobody attacks": control.result(), "share of the cores that the host took": share,
        }  # fmt: skip


def faults_of_slow(found: dict[str, Any]) -> list[str]:
    """Say what is not as promised: health at once, and no answer of 500 or more but 503 to the slow."""
    wrong = [
        f"{who}: {status}" for who in ("health", "queries") for status in found[who]["statuses"] if status != "200"
    ]
    wrong += [who for who in found["slow clients"] if re.search(r": 5\d\d", who) and not who.endswith("503")]
    calm = found["health of a service that nobody attacks"]["ms"]["p99"]
    if found["health"]["ms"]["p99"] > 100 + calm:
        wrong.append(f"health: {found['health']['ms']}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000, help="of each kind")
    parser.add_argument("--slow", type=float, metavar="SECONDS", help="only slow clients, for so long")
    parser.add_argument("--connections", type=int, default=5_000, help="of slow clients")
    given = parser.parse_args()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    folder = Path(tempfile.mkdtemp(dir=OUT)) / "index"
    with likewise.Index.create(folder, shingle="words:2", threshold=0.5) as index:
        index.add(None, [f"the quick brown fox number {i} jumps over {i * 7} lazy dogs" for i in range(1000)])
    if given.slow:
        slow = by_slow_clients(folder, given.connections, given.slow)
        print(json.dumps(slow, indent=2))
        SLOW_RESULTS.write_text(json.dumps(slow, indent=2) + "\n")
        sys.exit("\n".join(faults_of_slow(slow)) or None)
    results: dict[str, object] = {"requests": given.requests, "memory_mb": {}}
    memory: dict[str, dict[str, float]] = {}
    begun = time.perf_counter()
    with served(folder) as (port, pid):
        for body in ('{"text": "the quick brown fox"}', '{"items": ["a", "b"]}'):
            assert sent(port, posted(body.encode()), 120) == "200"
        memory["at the start"] = resident(pid)
        results["raw bytes, half"] = by_bytes(port, given.requests // 2)
        memory["after half of the raw bytes"] = resident(pid)
        results["raw bytes"] = by_bytes(port, given.requests)
        memory["after the raw bytes"] = resident(pid)
        results["schemathesis"] = by_schemathesis(port, given.requests)
        memory["after schemathesis"] = resident(pid)
        results["large bodies"] = by_bodies(port)
        memory["after large bodies"] = resident(pid)
        data = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        results["alive"] = sent(port, data, 60) == "200"
    results["memory_mb"] = memory
    results["seconds"] = round(time.perf_counter() - begun)
    with likewise.Index.open(folder) as index:
        results["items at the end"] = index.check().items
    print(json.dumps(results, indent=2))
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    faults = re.findall(r'"5\d\d": \d+', json.dumps(results))
    if faults or not results["alive"]:
        sys.exit(f"faults: {faults}")


if __name__ == "__main__":
    main()
