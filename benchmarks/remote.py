"""Remote files beside the same files here: a run of dedup on Parquet and JSON lines, from S3 and over HTTP.

    python benchmarks/remote.py                      everything, results to results/remote.json
    python benchmarks/remote.py --documents 5000     fewer documents, for a trial; nothing is written

Documents of some 600 bytes, a tenth of them near-duplicates, with four more columns of 250 random bytes each. They are
in files here, in S3 as moto plays it, and on a web server; both servers are on this machine, behind one that counts
requests and bytes, so what is measured is the work and not a network. "read": the files are opened and all documents
read, as Parquet from the columns text and id alone. "dedup": a whole run, which writes kept/ with all columns. Every
measurement is a fresh process, after one that compiles the kernels; CPU seconds are those of the run alone, without the
servers.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from runs import HERE

sys.path.insert(0, str(HERE.parent / "tests" / "io"))

Row = dict[str, Any]
BUCKET = "bucket"
CHILD = """
import json, re, sys, time
import likewise, likewise.jobs.dedup
from likewise.io.read import ReadOptions, open_source
what, given, out = sys.argv[1:]
begun, before = time.perf_counter(), time.process_time()
if what == "dedup":
    likewise.dedup(given, id="id", out=out, certify=0)
else:
    for batch in open_source(given, ReadOptions(id="id")).batches(2):
        pass
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(json.dumps([time.perf_counter() - begun, time.process_time() - before, peak * 1024]))
"""


def documents(count: int) -> pa.Table:
    """Return documents of random words, of which a tenth are near-duplicates."""
    drawn = np.random.default_rng(1)
    words = np.array([f"word{n}" for n in range(20_000)])
    texts = [" ".join(words[row]) for row in drawn.integers(0, len(words), (count, 70))]
    for row in range(count * 9 // 10, count):
        texts[row] = texts[row - count // 2] + " more"
    table = {"id": pa.array(range(count)), "text": pa.array(texts)}
    more = {f"more{n}": pa.array([drawn.bytes(125).hex() for _ in range(count)]) for n in range(4)}
    return pa.table(table | more)


def measured(what: str, given: str) -> list[float]:
    """Return wall seconds, CPU seconds and peak memory of a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-c", CHILD, what, given, f"{folder}/out"]
        ended = subprocess.run(words, capture_output=True, text=True, check=True)
    found: list[float] = json.loads(ended.stdout.splitlines()[-1])
    return found


def rows(count: int, times: int) -> list[Row]:
    """Measure every format from every place."""
    import s3fs
    from moto.server import ThreadedMotoServer
    from remote_servers import FaultyServer  # type: ignore[import-not-found]

    table = documents(count)
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=max(1, count // 20), compression="zstd")
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in table.to_pylist())
    files = {"a.parquet": out.getvalue(), "a.jsonl": lines}
    behind = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    behind.start()
    host, port = behind.get_host_and_port()
    store, web = FaultyServer(f"{host}:{port}"), FaultyServer()
    os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ["AWS_ENDPOINT_URL"] = store.url
    system = s3fs.S3FileSystem()
    system.mkdir(BUCKET)
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            (Path(folder) / name).write_bytes(data)
            system.pipe_file(f"{BUCKET}/{name}", data)
            web.files[f"/{name}"] = data
        measured("dedup", f"{folder}/a.parquet")
        for name, data in files.items():
            for what in ("read", "dedup"):
                for place, root, server in (
                    ("here", folder, None),
                    ("S3", f"s3://{BUCKET}", store),
                    ("HTTP", web.url, web),
                ):
                    runs: list[Row] = []
                    for _ in range(times):
                        if server is not None:
                            server.reset()
                        wall, cpu, peak = measured(what, f"{root}/{name}")
                        row: Row = {
                            "format": name.partition(".")[2],
                            "what": what,
                            "place": place,
                            "file_bytes": len(data),
                        }
                        row |= {"wall_seconds": round(wall, 2), "cpu_seconds": round(cpu, 2), "peak_bytes": int(peak)}
                        if server is not None:
                            row |= {"requests": len(server.asked), "bytes": server.sent}
                        runs.append(row)
                    found.append(sorted(runs, key=lambda one: one["cpu_seconds"])[len(runs) // 2])
                    print(shown(found[-1]), flush=True)
    behind.stop()
    return found


def shown(row: Row) -> str:
    """Return a line of the table."""
    asked = f"{row['requests']:>9,}{row['bytes'] / 1e6:>9.1f} MB" if "requests" in row else " " * 21
    return (
        f"{row['format']:<9}{row['what']:<8}{row['place']:<6}{row['wall_seconds']:>7.2f} s"
        f"{row['cpu_seconds']:>8.2f} s CPU{asked}  of {row['file_bytes'] / 1e6:.1f} MB"
        f"{row['peak_bytes'] / 1e6:>8.0f} MB peak"
    )


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    found = rows(asked.documents, asked.times)
    if asked.documents == 50_000:
        machine = {"cores": os.cpu_count(), "architecture": platform.machine(), "python": platform.python_version()}
        versions = {name: version(name) for name in ("likewise", "fsspec", "s3fs", "aiohttp", "moto", "pyarrow")}
        about = {
            "machine": machine,
            "versions": versions,
            "documents": asked.documents,
            "runs": asked.times,
            "rows": found,
        }
        (HERE / "results" / "remote.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
