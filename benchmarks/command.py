"""The whole command as the user waits for it: `likewise dedup` until the prompt is back, by stage, on one core and two.

    python benchmarks/command.py                           500 MB of text in one Parquet file (made on first use)
    python benchmarks/command.py --corpus FILE             your own Parquet file, with the column text
    python benchmarks/command.py --before OLD/src          another version of likewise in turns with this one

Beside it, PyArrow reads the same file and writes the rows that were kept with the same codec, every row group to a file
of its own so that all cores are at work. Every run is a fresh process, and the versions take turns, so that a noisy
machine is noisy to all; the quickest run of each counts. Seconds of the CPU are those of all its processes. Writes
results/command.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from corpus import environment, size

HERE = Path(__file__).parent
COMMAND = "import sys; sys.argv[0] = 'likewise'; from likewise.cli import main; main()"

REWRITE = """
import sys

class WithoutPandas:  # which PyArrow imports for a third of a second where it is installed, and does not need
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, WithoutPandas())
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
source, removed, folder, threads = sys.argv[1:]
metadata = pq.read_metadata(source)
codec = metadata.row_group(0).column(0).compression.lower()
keep = np.ones(metadata.num_rows, bool)
keep[pq.read_table(removed, columns=["id"]).column(0).to_numpy()] = False
firsts = np.cumsum([0, *(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))])
pa.set_cpu_count(int(threads))

def rewrite(group):
    with pq.ParquetFile(source, metadata=metadata) as file:
        table = file.read_row_group(group, use_threads=False)
    rows = table.filter(pa.array(keep[firsts[group] : firsts[group + 1]]))
    pq.write_table(rows, Path(folder) / f"{group}.parquet", compression="none" if codec == "uncompressed" else codec)

with ThreadPoolExecutor(int(threads)) as pool:
    list(pool.map(rewrite, range(metadata.num_row_groups)))
assert "pandas" not in sys.modules
lines = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024)
"""


def measured(command: list[str], sources: Path | None = None) -> tuple[dict[str, Any], str]:
    """Run a command; return its wall and CPU seconds, those of its processes included, and what it printed."""
    variables = {**os.environ, **({} if sources is None else {"PYTHONPATH": str(sources)})}
    begun = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_seconds": round(wall, 2), "cpu_seconds": round(cpu, 2)}, done.stdout.decode()


def dedup(corpus: Path, out: Path, threads: int, sources: Path | None) -> dict[str, Any]:
    """Run the command; say also what run.json tells of it."""
    command = [sys.executable, "-c", COMMAND, "dedup", str(corpus), "--threads", str(threads), "--out", str(out)]
    found, _ = measured(command, sources)
    stats = json.loads((out / "run.json").read_text())
    found |= {"peak_mb": round(stats["peak_memory_bytes"] / 1e6), "run_json_seconds": round(stats["total_seconds"], 2)}
    return {**found, "stages": stats["seconds"]}


def rewrite(corpus: Path, removed: Path, folder: Path, threads: int) -> dict[str, Any]:
    """Read the file and write the rows that are kept, with PyArrow alone."""
    folder.mkdir(exist_ok=True)
    found, peak = measured([sys.executable, "-c", REWRITE, str(corpus), str(removed), str(folder), str(threads)])
    return {**found, "peak_mb": round(int(peak) / 1e6)}


def turns(corpus: Path, versions: dict[str, Path | None], repeats: int, most: int) -> dict[str, Any]:
    """Run everything in turns; return for each the quickest run, and the wall seconds of all of them."""
    runs: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(dir=corpus.parent) as name:
        folder = Path(name)
        for _ in range(repeats + 1):
            for threads in range(1, most + 1):
                cores = f"{threads} core" + "s" * (threads > 1)
                for told, sources in versions.items():
                    found = dedup(corpus, folder / told, threads, sources)
                    runs.setdefault(f"{told}, {cores}", []).append(found)
                removed = folder / next(iter(versions)) / "removed.parquet"
                found = rewrite(corpus, removed, folder / "rewritten", threads)
                runs.setdefault(f"pyarrow, {cores}", []).append(found)
    best = {}
    for told, (_, *counted) in runs.items():  # the first compiles, and brings the files to memory
        quickest = min(counted, key=lambda one: one["wall_seconds"])
        best[told] = {**quickest, "all_wall_seconds": [one["wall_seconds"] for one in counted]}
        stages = ", ".join(f"{stage} {spent:.2f}" for stage, spent in quickest.get("stages", {}).items())
        print(f"{told:<20} {quickest['wall_seconds']:6.2f} s, CPU {quickest['cpu_seconds']:6.2f} s, "
              f"{quickest['peak_mb']:5,} MB  {stages}")  # fmt: skip
    return best


def main() -> None:
    """Measure, print and keep the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="a Parquet file with the column text (default: 500 MB)")
    parser.add_argument("--before", type=Path, help="the folder src of another version, to compare with")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="up to how many cores")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "command.json")
    asked = parser.parse_args()
    corpus = asked.corpus or environment(500)
    versions: dict[str, Path | None] = {"now": HERE.parent / "src"}
    if asked.before is not None:
        versions["before"] = asked.before.resolve()
    documents, megabytes = size(corpus)
    summary = {
        "corpus": {"name": corpus.stem, "documents": documents, "text_mb": megabytes},
        "machine": {"cores": os.cpu_count(), "architecture": platform.machine(), "python": platform.python_version()},
        "versions": {"likewise": version("likewise"), "pyarrow": version("pyarrow")},
        "runs": turns(corpus, versions, asked.repeats, asked.threads),
    }
    asked.out.write_text(json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    main()
