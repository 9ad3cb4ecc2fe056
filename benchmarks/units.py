"""Lines and paragraphs that documents repeat: how fast `dedup --unit` cuts them, in how much memory, and what it finds.

    python benchmarks/units.py                                  a gigabyte of text; beside it datatrove
    python benchmarks/units.py --megabytes 100 --peer-megabytes 0

The corpus is made of words drawn by Zipf's law, in lines of 8 to 16 words and paragraphs of 2 to 6 lines, all
different. Every third document gets one to three lines of a pool of boilerplate, every tenth a paragraph of another, in
other case and punctuation. What is cut is compared with what was planted. The whole job is measured, from Parquet to
Parquet, each run in a process of its own.

datatrove's sentence deduplication can split a text at line breaks. It runs so, one line at a time and from five words
on, on the first part of the same documents; its time is that of its process, with the start of Python.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus import DATA
from decontaminate import VOCABULARY, drawn, spelled
from runs import HERE, Unavailable, python_of

LINES, PARAGRAPHS = 2000, 500
"""Boilerplate lines, and paragraphs of three lines."""
BATCH = 10_000
CODE = """
import json, resource, sys, time
import likewise
given = json.loads(sys.argv[1])
likewise.dedup(["a b c d e\\n", "a b c d e\\nf"], unit=given["unit"])  # compiled beforehand
begun, worked = time.perf_counter(), time.process_time()
result = likewise.dedup(given["path"], id="id", unit=given["unit"], out=given["out"], memory=given["memory"])
seconds, worked = time.perf_counter() - begun, time.process_time() - worked
print(json.dumps({"seconds": seconds, "cpu_seconds": worked, "stats": result.stats}))
"""


def respelled(rnd: random.Random, line: str) -> str:
    """A line as another page may write it."""
    case = rnd.choice((str.upper, str.lower, str.title))
    apart = rnd.choice((" ", ", ", "  "))
    return rnd.choice(("{}", "- {}.", "  {} ", "{}!")).format(case(line).replace(" ", apart, 1))


def made(folder: Path, megabytes: int) -> None:
    """Write corpus.parquet, and planted.json: for each unit, the documents and what is to be cut out of them."""
    rng, rnd = np.random.default_rng(1), random.Random(1)
    words = np.array(spelled(range(VOCABULARY)), object)
    serial = 0

    def fresh(count: int) -> list[str]:
        """Lines that no other is equal to: each has a number of its own."""
        nonlocal serial
        lengths = rng.integers(8, 17, count)
        several = np.split(words[drawn(rng, int(lengths.sum()))], np.cumsum(lengths)[:-1])
        serial += count
        return [f"{' '.join(one)} n{serial - number}" for number, one in enumerate(several)]

    pool = fresh(LINES)
    blocks = [fresh(3) for _ in range(PARAGRAPHS)]
    left, row = megabytes * 1_000_000, 0
    seen: set[str] = set()
    cuts: dict[str, list[tuple[int, str]]] = {"lines": [], "paragraphs": []}
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    with pq.ParquetWriter(folder / "corpus.parquet", schema, compression="snappy") as writer:
        while left > 0:
            texts: list[str] = []
            several = rng.integers(2, 60, BATCH)
            lines, at = fresh(int(several.sum())), 0
            for count in several.tolist():
                mine = lines[at : at + count]
                at += count
                planted: list[tuple[str, str]] = []
                if row % 3 == 0:
                    for line in rnd.sample(pool, rnd.randint(1, 3)):
                        mine.insert(rnd.randint(0, len(mine)), respelled(rnd, line))
                        planted.append(("lines", line))
                parts, place = [], 0
                while place < len(mine):
                    stop = place + rnd.randint(2, 6)
                    stop = len(mine) if len(mine) - stop < 2 else stop
                    parts.append("\n".join(mine[place:stop]))
                    place = stop
                if row % 10 == 0:
                    block = rnd.choice(blocks)
                    parts.insert(rnd.randint(0, len(parts)), "\n".join(respelled(rnd, line) for line in block))
                    planted += [("paragraphs", " ".join(block)), *(("lines", line) for line in block)]
                for unit, what in planted:
                    if what in seen:
                        cuts[unit].append((row, what))
                    seen.add(what)
                text = "\n\n".join(parts) + "\n"
                texts.append(text)
                left -= len(text)
                row += 1
                if left <= 0:
                    break
            ids = range(row - len(texts), row)
            writer.write_table(pa.table({"id": ids, "text": texts}, schema), row_group_size=BATCH)
    (folder / "planted.json").write_text(json.dumps(cuts))


def judged(out: Path, planted: list[list[Any]]) -> dict[str, Any]:
    """Compare what was cut with what was planted."""
    table = pq.read_table(out / "cuts.parquet", columns=["id", "text"])
    signs = str.maketrans(dict.fromkeys(",.!-", " "))
    found = {
        (row, " ".join(text.lower().translate(signs).split()))
        for row, text in zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True)
    }
    right = {(row, text) for row, text in planted}
    return {
        "planted": len(right),
        "found": len(right & found),
        "not_planted": len(found - right),
        "cuts": table.num_rows,
    }


def run(folder: Path, unit: str, memory: str | None) -> dict[str, Any]:
    """Measure one unit."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    given = {"path": str(folder / "corpus.parquet"), "out": str(out), "unit": unit, "memory": memory}
    done = subprocess.run([sys.executable, "-c", CODE, json.dumps(given)], check=True, capture_output=True, text=True)
    said = json.loads(done.stdout)
    stats = said["stats"]
    size = stats["counts"]["bytes"] / 1e6
    planted = json.loads((folder / "planted.json").read_text())[unit]
    return {
        "tool": "likewise",
        "unit": unit,
        "megabytes": round(size, 1),
        "documents": stats["counts"]["documents"],
        "memory": memory or "default",
        "seconds": round(said["seconds"], 2),
        "mb_per_second": round(size / said["seconds"], 1),
        "cpu_seconds": round(said["cpu_seconds"], 2),
        "peak_memory_mb": round(stats["peak_memory_bytes"] / 1e6),
        "spilled_mb": round(stats["details"]["spilled_bytes"] / 1e6),
        **judged(out, planted),
        "stages": stats["seconds"],
    }


def first_part(folder: Path, megabytes: int) -> tuple[Path, float, int]:
    """Write the first part of the documents as two files; return their folder, and how many megabytes and rows."""
    part, size = folder / "part", 0
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    rows = 0
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    writers = [pq.ParquetWriter(part / f"{number}.parquet", schema, compression="zstd") for number in range(2)]
    for batch in pq.ParquetFile(folder / "corpus.parquet").iter_batches(1000):
        writers[rows // 1000 % 2].write_batch(batch.cast(schema))
        size += batch.column("text").nbytes
        rows += batch.num_rows
        if size > megabytes * 1_000_000:
            break
    for writer in writers:
        writer.close()
    return part, size / 1e6, rows


def datatrove(script: str, *words: str) -> dict[str, Any]:
    """Run a script of datatrove; return the seconds of its processes, and what it printed last."""
    try:
        python = python_of("datatrove")
    except Unavailable as error:
        return {"skipped": str(error)}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([python, str(HERE / "peers" / script), *words], capture_output=True, text=True)
    seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return {"skipped": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = json.loads(done.stdout.strip().splitlines()[-1])
    return {"seconds": round(seconds, 2), "cpu_seconds": round(worked, 2), **said}


def peer(folder: Path, megabytes: int) -> dict[str, Any]:
    """Measure datatrove on the first part of the documents."""
    part, size, rows = first_part(folder, megabytes)
    row: dict[str, Any] = {"tool": "datatrove", "unit": "lines", "megabytes": round(size, 1), "documents": rows}
    row |= datatrove("datatrove_lines_run.py", str(part), str(folder / "datatrove"))
    seconds = row.get("seconds")
    return row | ({"mb_per_second": round(size / seconds, 1)} if isinstance(seconds, float) else {})


def main() -> None:
    """Measure, and write benchmarks/results/units.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--peer-megabytes", type=int, default=100)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "units.json")
    asked = parser.parse_args()
    folder = asked.data / f"units-{asked.megabytes}"
    if not (folder / "planted.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        made(folder, asked.megabytes)
    runs = [("lines", None), ("paragraphs", None), ("lines", "256MiB")]
    table = []
    for unit, memory in runs:
        table.append(run(folder, unit, memory))
        print(json.dumps(table[-1]))
    if asked.peer_megabytes:
        table.append(peer(folder, asked.peer_megabytes))
        print(json.dumps(table[-1]))
    machine = {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version()}
    asked.out.write_text(json.dumps({"machine": machine, "table": table}, indent=2) + "\n")


if __name__ == "__main__":
    main()
