"""Parts of documents planted among many others: how many `dedup --measure containment` removes, and what it costs.

    python benchmarks/contained.py                      1,000 parts of each kind among 100,000 documents
    python benchmarks/contained.py --documents 1000000

A document is 200 to 400 words of a vocabulary of 7,000, drawn by Zipf's law. A part is the beginning of a document, its
middle, or three passages of it, and at least nine tenths of its shingles of five words are in it; as many others are
half a passage and half new words, and have to stay. Jaccard similarity on the same documents, by the method that `auto`
chooses and by the exact one, is beside it; each run is a process of its own, and its time is the best of some.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus import DATA

HERE = Path(__file__).parent
KINDS = ("prefix", "middle", "scattered", "half")
RUNS = {
    "containment": {"measure": "containment", "threshold": 0.9},
    "jaccard": {"threshold": 0.9},
    "jaccard, exact": {"threshold": 0.9, "method": "exact"},
}
CODE = """
import json, sys, time, likewise
given = json.loads(sys.argv[1])
begun = time.perf_counter()
result = likewise.dedup(given["path"], id="id", out=given["out"], fresh=True, **given["settings"])
print(json.dumps({"seconds": time.perf_counter() - begun, "memory": result.stats["peak_memory_bytes"]}))
"""


def made(documents: int, parts: int, path: Path) -> None:
    """Write the documents and their parts, in random order."""
    chance = np.random.default_rng(1)
    weights = 1 / np.arange(1, 7001)
    words = np.array([f"w{number}" for number in range(7000)])
    rows: list[tuple[str, str]] = []
    for number in range(documents):
        text = words[chance.choice(7000, int(chance.integers(200, 401)), p=weights / weights.sum())]
        rows.append((f"document {number}", " ".join(text)))
        if number < parts:
            new = words[chance.choice(7000, 60, p=weights / weights.sum())]
            cuts = [text[:120], text[40:160], np.concatenate([text[:50], text[70:120], text[140:190]])]
            for kind, part in zip(KINDS, [*cuts, np.concatenate([text[:60], new])], strict=True):
                rows.append((f"{kind} {number}", " ".join(part)))
    order = chance.permutation(len(rows))
    columns = {"id": [rows[place][0] for place in order], "text": [rows[place][1] for place in order]}
    pq.write_table(pa.table(columns), path, row_group_size=10_000, compression="zstd")


def judged(out: Path, parts: int) -> dict[str, Any]:
    """Count the parts of each kind that name their document, and removals of anything else."""
    removed = pq.read_table(out / "removed.parquet").to_pylist()
    right = dict.fromkeys(KINDS[:3], 0)
    wrong = 0
    for row in removed:
        kind, _, number = row["id"].partition(" ")
        if kind in right and row["kept_id"] == f"document {number}":
            right[kind] += 1
        else:
            wrong += 1
    return {"recall": {kind: count / parts for kind, count in right.items()}, "wrong": wrong}


def main() -> None:
    """Measure, and write benchmarks/results/contained.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--parts", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "contained.json")
    asked = parser.parse_args()
    asked.data.mkdir(parents=True, exist_ok=True)
    path, out = asked.data / f"contained-{asked.documents}.parquet", asked.data / "contained-out"
    if not path.exists():
        made(asked.documents, asked.parts, path)
    table = []
    for name, settings in RUNS.items():
        given = json.dumps({"path": str(path), "out": str(out), "settings": settings})
        times = []
        for _ in range(asked.repeats):
            done = subprocess.run([sys.executable, "-c", CODE, given], check=True, capture_output=True, text=True)
            times.append(json.loads(done.stdout))
        best = min(times, key=lambda one: one["seconds"])
        row = {"run": name, "documents": asked.documents, "parts": asked.parts, **best, **judged(out, asked.parts)}
        table.append(row)
        print(json.dumps(row))
    asked.out.write_text(json.dumps({"table": table}, indent=2) + "\n")


if __name__ == "__main__":
    main()
