"""The service under load on loopback: requests a second, latency, errors.

    python benchmarks/serve.py                          20,000 documents, 60 seconds, one and eight connections
    python benchmarks/serve.py --items 100000 --items 1000000   more of them, one size after the other
    python benchmarks/serve.py --writing                while items are added
    python benchmarks/serve.py --tool python            without wrk (apt-get install wrk)

Each request asks for the ten items that are most similar to one document. Connections are kept open, and each sends its
next request when it has the answer. The corpus is planted (planted.py), and the queries are copies of its documents, as
in index.py. Load and service share the cores of the machine. Beside it, in the same run, the same server with a route
of FastAPI that reads the body and does nothing: the row of 0 items. Rows of results/serve.json that a run does not
measure stay as they are.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import likewise
from corpus import DATA
from index import prepared

sys.path.append(str(Path(__file__).parent / "peers"))
from index_common import to_ask, to_fill

RESULTS = Path(__file__).parent / "results" / "serve.json"
OUT = DATA / "out" / "serve"
TOKEN = "a-token-of-the-benchmark"
JSON = {"Content-Type": "application/json"}
WRK = """
local bodies, at = {}, 0
for line in io.lines("%s") do bodies[#bodies + 1] = line end
request = function()
  at = at %% #bodies + 1
  return wrk.format("POST", "/query", {["Content-Type"] = "application/json"}, bodies[at])
end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('{"requests": %%d, "seconds": %%f, "p50": %%f, "p99": %%f, "max": %%f, "errors": %%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, e.connect + e.read + e.write + e.status + e.timeout))
end
"""
NOTHING = """
from fastapi import FastAPI, Request, Response
from likewise.serve.server import listen, serve_app
app = FastAPI()
@app.post("/query")
async def query(request: Request) -> Response:
    await request.body()
    return Response(b'{"answers": [[]]}', media_type="application/json")
bound = listen("127.0.0.1", 0)
print('{"url": "http://127.0.0.1:%d"}' % bound.getsockname()[1], flush=True)
serve_app(app, bound, 30.0, None)
"""
console = Console(highlight=False, width=120)


@contextmanager
def served(folder: Path | None) -> Iterator[tuple[int, int]]:
    """Start the service, or one that does nothing; yield its port and its process."""
    words = [sys.executable, "-m", "likewise", "serve", str(folder), "--port", "0", "--quiet"]
    if folder is None:
        words = [sys.executable, "-c", NOTHING]
    environment = {**os.environ, "LIKEWISE_TOKEN": TOKEN}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        start = json.loads(process.stdout.readline())
        log = process.stdout  # what it says of requests that are no HTTP: a pipe that nobody reads would stop it
        threading.Thread(target=lambda: [None for _ in log], daemon=True).start()
        yield int(start["url"].rstrip("/").rpartition(":")[2]), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def by_wrk(port: int, bodies: Path, clients: int, seconds: int) -> dict[str, float]:
    """Load by wrk, from one thread."""
    script = OUT / "load.lua"
    script.write_text(WRK % bodies)
    words = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script)]
    done = subprocess.run([*words, f"http://127.0.0.1:{port}"], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def by_python(port: int, bodies: Path, clients: int, seconds: int) -> dict[str, float]:
    """Load by threads of this process."""
    lines = bodies.read_bytes().splitlines()
    times: list[float] = []
    errors = 0
    end = time.perf_counter() + seconds

    def ask(first: int) -> None:
        nonlocal errors
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for place in range(first, sys.maxsize, clients):
            begun = time.perf_counter()
            if begun > end:
                break
            try:
                connection.request("POST", "/query", lines[place % len(lines)], JSON)
                answer = connection.getresponse()
                answer.read()
                errors += answer.status != 200
            except OSError:
                errors += 1
            times.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    threads = [threading.Thread(target=ask, args=(place,)) for place in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    p50, p99 = (float(np.quantile(times, share)) * 1e3 for share in (0.5, 0.99))
    return {
        "requests": len(times), "seconds": took, "p50": p50, "p99": p99, "max": max(times) * 1e3, "errors": errors,
    }  # fmt: skip


@contextmanager
def writing(port: int, text: str, wanted: bool) -> Iterator[list[int]]:
    """Add ten items about ten times a second meanwhile; yield the statuses."""
    statuses: list[int] = []
    stop = threading.Event()

    def add() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        number = 0
        while not stop.wait(0.1):
            items = [f"{text} {number} {place}" for place in range(10)]
            ids = [10**12 + number * 10 + place for place in range(10)]
            body = json.dumps({"ids": ids, "items": items, "replace": True})
            connection.request("POST", "/items", body, {**JSON, "Authorization": f"Bearer {TOKEN}"})
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
            number += 1

    thread = threading.Thread(target=add)
    if wanted:
        thread.start()
    yield statuses
    stop.set()
    if wanted:
        thread.join()


def memory(pid: int) -> int:
    """The largest resident size of the service and its child, in bytes."""
    sizes = [0]
    for process in [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                sizes.append(int(line.split()[1]) * 1024)
    return max(sizes)


def filled(items: int) -> tuple[Path, Path]:
    """Make an index; return its folder, and the bodies of requests, one in a line."""
    corpus, queries, _ = prepared(items)
    OUT.mkdir(parents=True, exist_ok=True)
    folder = OUT / f"index-{items}"
    shutil.rmtree(folder, ignore_errors=True)
    with likewise.Index.create(folder, threshold=0.8, items=items) as index:
        index.add_batches((None, texts) for _, texts in to_fill(corpus, items))
    bodies = OUT / f"queries-{items}.jsonl"
    bodies.write_text("".join(json.dumps({"text": text}) + "\n" for text in to_ask(queries)))
    return folder, bodies


def measured(items: int, folder: Path | None, bodies: Path, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Serve an index of so many documents, or nothing, and load it with each number of connections."""
    load = by_wrk if given.tool == "wrk" else by_python
    with bodies.open() as lines:
        text = json.loads(lines.readline())["text"]
    rows = []
    with served(folder) as (port, pid):
        load(port, bodies, 2, 1)
        for clients in given.clients or [1, 8]:
            with writing(port, text, given.writing and folder is not None) as statuses:
                found = load(port, bodies, clients, given.seconds)
            rows.append(
                {
                    "items": items,
                    "connections": clients,
                    "writing": given.writing,
                    "requests_per_second": found["requests"] / found["seconds"],
                    "p50_ms": found["p50"],
                    "p99_ms": found["p99"],
                    "max_ms": found["max"],
                    "errors": found["errors"],
                    "additions": len(statuses),
                    "additions_refused": sum(status != 200 for status in statuses),
                    "memory_mb": memory(pid) / 1e6,
                    "requests": found["requests"],
                    "seconds": found["seconds"],
                    "tool": given.tool,
                    "date": time.strftime("%Y-%m-%d"),
                }
            )
    return rows


def keep(rows: list[dict[str, Any]]) -> None:
    """Put rows in place of those of the same kind in the results."""
    before = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    every = {(row["items"], row["writing"], row["connections"]): row for row in [*before, *rows]}
    about = {"likewise": version("likewise"), "machine": platform.machine(), "cores": os.cpu_count()}
    RESULTS.write_text(json.dumps({"about": about, "rows": [every[key] for key in sorted(every)]}, indent=1) + "\n")


def main() -> None:
    """Measure, print a table, and write results/serve.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, action="append")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--clients", type=int, action="append", help="connections; repeatable")
    parser.add_argument("--tool", choices=["wrk", "python"], default="wrk" if shutil.which("wrk") else "python")
    parser.add_argument("--writing", action="store_true", help="add items meanwhile")
    given = parser.parse_args()
    table = Table(title=f"{given.seconds} s each, load by {given.tool}, {platform.machine()}")
    names = ("items", "connections", "requests/s", "p50 ms", "p99 ms", "max ms", "errors", "additions", "memory MB")
    for name in names:
        table.add_column(name, justify="right")
    for items in given.items or [20_000]:
        folder, bodies = filled(items)
        rows = [*measured(0, None, bodies, given), *measured(items, folder, bodies, given)]
        shutil.rmtree(folder)
        keep(rows)
        for row in rows:
            refused = f" ({row['additions_refused']} refused)" if row["additions_refused"] else ""
            table.add_row(
                f"{row['items']:,}",
                f"{row['connections']}",
                f"{row['requests_per_second']:,.0f}",
                *(f"{row[name]:.2f}" for name in ("p50_ms", "p99_ms", "max_ms")),
                f"{row['errors']:.0f}",
                f"{row['additions']}{refused}",
                f"{row['memory_mb']:,.0f}",
            )
    console.print(table)
    console.print(f"→ {RESULTS}")


if __name__ == "__main__":
    main()
