"""Streams beside files: the same documents deduplicated in the same memory, from a generator of Arrow batches, from
standard input, and from Parquet and Arrow files on this machine.

    python benchmarks/streams.py                                       1 GB in 1 GiB
    python benchmarks/streams.py --gigabytes 10 --only stream arrow-stdin parquet

The documents are made while they are read, 4,000 bytes of random words each; one in ten is a copy of another with five
words changed. No stream is stored but by likewise; the files are written beforehand, and removed. Each run is a process
of its own, from the first document to the finished folder, with `memory="1GiB"`. disk_mb is the most that the folder of
the run held at any time, what it keeps for itself and the result together; made_seconds is what making the documents
takes alone, in the process of the run (stream) or in another one (standard input).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
WORDS, ROWS = 500, 2500
"""Words of a document, of seven letters and a blank each, and documents of a batch."""
CHANGED = 5
KINDS = ("stream", "jsonl-stdin", "arrow-stdin", "parquet", "arrow")
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.large_string()), ("url", pa.string())])


def vocabulary() -> Any:
    """50,000 different words of seven letters, each with a blank."""
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
    digits = np.arange(50_000)[:, None] // 26 ** np.arange(4) % 26
    words = np.full((50_000, 8), ord(" "), np.uint8)
    words[:, :4], words[:, 4:7] = letters[digits], letters[digits[:, :3][:, ::-1]]
    return words


def batches(gigabytes: float) -> Iterator[pa.RecordBatch]:
    """Make the documents."""
    words, chance, first = vocabulary(), np.random.default_rng(1), 0
    for _ in range(max(1, round(gigabytes * 1e9 / (8 * WORDS * ROWS)))):
        chosen = chance.integers(0, len(words), (ROWS, WORDS), np.int32)
        copies = ROWS // 10
        chosen[-copies:] = chosen[:copies]
        places = chance.integers(0, WORDS, (copies, CHANGED))
        chosen[np.arange(ROWS - copies, ROWS)[:, None], places] = chance.integers(0, len(words), (copies, CHANGED))
        offsets = np.arange(ROWS + 1, dtype=np.int64) * 8 * WORDS
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(words[chosen].reshape(-1))]
        text = pa.Array.from_buffers(pa.large_string(), ROWS, buffers)
        ids = pa.array(np.arange(first, first + ROWS))
        yield pa.record_batch([ids, text, pa.array([f"https://made.example/{i}" for i in ids.tolist()])], schema=SCHEMA)
        first += ROWS


def produce(kind: str, gigabytes: float, out: IO[bytes]) -> None:
    """Write the documents to a pipe or a file."""
    if kind == "jsonl-stdin":
        for batch in batches(gigabytes):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            lines = (f'{{"id": {id}, "text": "{text}", "url": "{url}"}}\n' for id, text, url in rows)
            out.write("".join(lines).encode())
    elif kind == "parquet":
        with pq.ParquetWriter(out, SCHEMA) as writer:
            for batch in batches(gigabytes):
                writer.write_batch(batch)
    else:
        with pa.ipc.new_stream(out, SCHEMA) as stream:
            for batch in batches(gigabytes):
                stream.write_batch(batch)


class Disk:
    """How much a folder holds at most, looked at every tenth of a second."""

    def __init__(self, folder: Path) -> None:
        self.most = 0
        self._folder = folder
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Disk:
        self._watch.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._watch.join()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            held = 0
            for place, _, names in os.walk(self._folder):
                for name in names:
                    try:
                        held += os.stat(os.path.join(place, name)).st_blocks * 512
                    except OSError:  # it is gone by now
                        continue
            self.most = max(self.most, held)


STREAM = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
from streams import batches
import likewise
result = likewise.dedup(batches(float(sys.argv[2])), id="id", out=sys.argv[3], memory="1GiB")
"""


def run(kind: str, gigabytes: float, folder: Path) -> dict[str, Any]:
    """Measure one run."""
    home = folder / kind
    home.mkdir()
    out, command = home / "out", [sys.executable, "-m", "likewise", "dedup"]
    options = ["--id", "id", "--memory", "1GiB", "--no-report", "--quiet", "--out", str(out)]
    producer = None
    if kind == "stream":
        command = [sys.executable, "-c", STREAM, str(HERE), str(gigabytes), str(out)]
    elif kind.endswith("-stdin"):
        made = [sys.executable, __file__, "--produce", kind, "--gigabytes", str(gigabytes)]
        producer = subprocess.Popen(made, stdout=subprocess.PIPE)
        command += ["-", *options]
    else:
        target = folder / f"given.{kind}"
        with open(target, "wb") as given:
            produce(kind, gigabytes, given)
        command += [str(target), *options]
    begun = time.perf_counter()
    with Disk(home) as disk:
        process = subprocess.Popen(command, stdin=producer.stdout if producer else subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    if producer is not None:
        producer.wait()
    if status:
        raise SystemExit(f"{kind}: the run failed")
    stats = json.loads((out / "run.json").read_text())
    text = stats["counts"]["bytes"] / 1e6
    for path in (home, folder / f"given.{kind}"):
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
    return {
        "kind": kind,
        "text_mb": round(text),
        "documents": stats["counts"]["items"],
        "removed": stats["counts"]["removed"],
        "seconds": round(seconds, 2),
        "mb_per_second": round(text / seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": round(stats["peak_memory_bytes"] / 1e6),
        "disk_mb": round(disk.most / 1e6),
        "method": stats["method"]["taken"],
    }


def main() -> None:
    """Measure, and write benchmarks/results/streams.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--folder", type=Path, help="where runs take place; by default that of temporary files")
    parser.add_argument("--out", type=Path, help="by default benchmarks/results/streams.json, of all kinds")
    parser.add_argument("--produce", choices=KINDS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.produce:
        produce(asked.produce, asked.gigabytes, sys.stdout.buffer)
        return
    begun = time.process_time()
    rows = sum(batch.num_rows for batch in batches(asked.gigabytes))
    machine = {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "made_seconds": round(time.process_time() - begun, 2),
        "documents": rows,
    }
    print(json.dumps(machine), flush=True)
    table = []
    with tempfile.TemporaryDirectory(prefix="streams-", dir=asked.folder) as folder:
        for kind in asked.only:
            table.append(run(kind, asked.gigabytes, Path(folder)))
            print(json.dumps(table[-1]), flush=True)
    out = asked.out or (HERE / "results" / "streams.json" if tuple(asked.only) == KINDS else None)
    if out is not None:
        out.write_text(json.dumps({"machine": machine, "table": table}, indent=2) + "\n")


if __name__ == "__main__":
    main()
