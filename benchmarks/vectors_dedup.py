"""Dedup of vectors: how fast near-duplicates go, in how much memory, and how many of those that were planted.

    python benchmarks/vectors_dedup.py                          200,000 vectors of 256 components; beside it semhash
    python benchmarks/vectors_dedup.py --vectors 1800000 --peer-vectors 0

The vectors are of unit length and stand around 2,000 centres, about 60° from each other; one in twenty is turned from
an earlier one by 1° to 14°. All within 15° are near: one of each pair goes. The whole job is measured, from a .npy file
to the folder with the rows that are kept, each run in a process of its own, with its certificate and without its page.

semhash gets the same array and a number for each vector as its record, which is not encoded: its time is that of the
index and of `self_deduplicate`, at the cosine of 15°, with the backend and the settings that it has by default.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from corpus import DATA
from runs import HERE, Unavailable, last_line, pinned, python_of

WITHIN = 15.0
CENTRES, EACH = 2000, 20
"""Centres of the vectors, and one in how many is planted."""
BLOCK = 1 << 16
CODE = """
import json, sys, time
import numpy as np
import likewise
given = json.loads(sys.argv[1])
some = np.random.default_rng(1).standard_normal((4000, 256)).astype(np.float32)
likewise.dedup(some, measure="angle", within=15, method="lsh")  # compiled beforehand
begun, worked = time.perf_counter(), time.process_time()
result = likewise.dedup(given["path"], measure="angle", within=15, out=given["out"], memory=given["memory"])
seconds, worked = time.perf_counter() - begun, time.process_time() - worked
print(json.dumps({"seconds": seconds, "cpu_seconds": worked, "stats": result.stats}))
"""


def unit(rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Give vectors the length 1."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def made(folder: Path, count: int, width: int) -> None:
    """Write vectors.npy, and planted.npy: the later and the earlier row of each planted pair."""
    rng = np.random.default_rng(1)
    centres = unit(rng.standard_normal((CENTRES, width)))
    table = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, (count, width))
    for start in range(0, count, BLOCK):
        rows = min(BLOCK, count - start)
        table[start : start + rows] = unit(
            centres[rng.integers(0, CENTRES, rows)] + unit(rng.standard_normal((rows, width)))
        )
    chosen = rng.permutation(count)[: count // EACH * 2]
    pairs = np.sort(chosen.reshape(-1, 2), axis=1)
    for start in range(0, len(pairs), BLOCK):
        early, late = pairs[start : start + BLOCK].T
        base = table[early].astype(np.float64)
        other = rng.standard_normal(base.shape)
        other = unit(other - (other * base).sum(axis=1, keepdims=True) * base)
        turn = np.radians(rng.uniform(1, 14, (len(base), 1)))
        table[late] = unit(np.cos(turn) * base + np.sin(turn) * other)
    table.flush()
    np.save(folder / "planted.npy", pairs[:, ::-1])


def judged(removed: npt.NDArray[Any], planted: npt.NDArray[Any]) -> dict[str, Any]:
    """Compare what was removed with what was planted."""
    gone = np.isin(planted, removed).any(axis=1)
    return {
        "planted": len(planted),
        "found": int(gone.sum()),
        "recall": round(float(gone.mean()), 5),
        "not_planted": int((~np.isin(removed, planted)).sum()),
        "removed": len(removed),
    }


def run(folder: Path, memory: str | None, most: float) -> dict[str, Any]:
    """Measure likewise."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    table = np.load(folder / "vectors.npy", mmap_mode="r")
    row = {"tool": "likewise", "vectors": len(table), "dimensions": table.shape[1], "memory": memory or "default"}
    given = {"path": str(folder / "vectors.npy"), "out": str(out), "memory": memory}
    command = [sys.executable, "-c", CODE, json.dumps(given)]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=most)
    except subprocess.TimeoutExpired:
        return {**row, "skipped": f"not done after {most:g} s"}
    said = json.loads(done.stdout)
    stats = said["stats"]
    removed = pq.read_table(out / "removed.parquet")["id"].to_numpy()
    return {
        **row,
        "seconds": round(said["seconds"], 2),
        "cpu_seconds": round(said["cpu_seconds"], 2),
        "peak_memory_mb": round(stats["peak_memory_bytes"] / 1e6),
        **judged(removed, np.load(folder / "planted.npy")),
        "method": stats["method"]["taken"],
        "predicted_recall": stats["details"]["predicted_recall"],
        "certificate": stats["certificate"],
        "stages": stats["seconds"],
    }


def peer(folder: Path, most: float) -> dict[str, Any]:
    """Measure semhash on the same vectors."""
    table = np.load(folder / "vectors.npy", mmap_mode="r")
    row = {"tool": "semhash", "vectors": len(table), "dimensions": table.shape[1], "version": pinned("semhash")[0]}
    try:
        python = python_of("semhash")
        script = [python, str(HERE / "peers" / "semhash_run.py"), str(folder / "vectors.npy"), str(folder)]
        done = subprocess.run([*script, str(WITHIN)], capture_output=True, text=True, timeout=most)
    except (Unavailable, subprocess.TimeoutExpired) as error:
        return {**row, "skipped": str(error) if isinstance(error, Unavailable) else f"not done after {most:g} s"}
    if done.returncode:
        return {**row, "skipped": last_line(done.stderr)}
    said = json.loads(done.stdout.strip().splitlines()[-1])
    return {**row, **said, **judged(np.load(folder / "semhash.npy"), np.load(folder / "planted.npy"))}


def main() -> None:
    """Measure, and write benchmarks/results/vectors-dedup.json; rows of other sizes stay there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=200_000)
    parser.add_argument("--peer-vectors", type=int, default=200_000)
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--memory")
    parser.add_argument("--timeout", type=float, default=1800.0)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "vectors-dedup.json")
    asked = parser.parse_args()
    table = json.loads(asked.out.read_text())["table"] if asked.out.exists() else []
    for tool, count in (("likewise", asked.vectors), ("semhash", asked.peer_vectors)):
        if not count:
            continue
        folder = asked.data / f"vectors-dedup-{count}-{asked.dimensions}"
        if not (folder / "planted.npy").exists():
            folder.mkdir(parents=True, exist_ok=True)
            made(folder, count, asked.dimensions)
        new = run(folder, asked.memory, asked.timeout) if tool == "likewise" else peer(folder, asked.timeout)
        table = [old for old in table if (old["tool"], old["vectors"]) != (tool, count)] + [new]
        print(json.dumps(new))
        machine = {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version()}
        asked.out.write_text(json.dumps({"machine": machine, "table": table}, indent=2) + "\n")


if __name__ == "__main__":
    main()
