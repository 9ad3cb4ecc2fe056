"""Do the promises hold on every corpus, by default? Sixteen hostile kinds, three sizes, two budgets of memory.

    python benchmarks/skew.py                                    10^4, 10^5 and 10^6 documents
    python benchmarks/skew.py --sizes 10000,100000               two sizes
    python benchmarks/skew.py --kinds fuzzy                      kinds whose name contains a word

Every run is the whole command in a fresh process with default settings (shingles and threshold are those of the kind);
then again with --memory 64MiB, and the tables must be the same to the byte. CPU: the seconds that a run took of all
cores; exponent: of their growth from the size before, and by least squares over all sizes (other work on the machine
changes the seconds of the clock more than these). Kept documents are checked by brute force: the
share of a sample of them (100) that is similar to any of up to 100,000 others that were kept. The certified recall is
that of the run. An exponent of 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from math import log
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from corpus import DATA
from hostile import KINDS, Hostile, corpus
from runs import HERE, Unavailable
from scale import LIKEWISE
from watch import Cost, watched

OUT = DATA / "out" / "skew"
LEAST = "64MiB"
ASKED, AMONG = 100, 100_000
TABLES = ("removed.parquet", "clusters.parquet", "pairs.parquet")
COLUMNS = ["corpus", "documents", "seconds", "CPU", "exponent", "peak MB", "64 MiB: CPU", "exponent", "peak MB", "same"]
COLUMNS += ["method", "kept", "pairs", "similar kept", "recall", "unchecked"]
console = Console(highlight=False, width=190)


@dataclass(frozen=True)
class Measured:
    """What one run cost and gave."""

    kind: str
    documents: int
    seconds: float
    cpu: float
    peak_mb: float
    small_seconds: float
    small_cpu: float
    small_peak_mb: float
    same: bool
    method: str
    kept: int
    pairs: int
    similar_kept: float
    recall: float | None
    unchecked: int
    crowds: int
    complete: bool


def shingles(text: str, kind: Hostile) -> frozenset[tuple[str, ...]]:
    """The shingles of a document, in plain Python."""
    unit, k = kind.shingle
    parts = text.split() if unit == "words" else list(" ".join(text.split()))
    if not parts:
        return frozenset()
    return frozenset(tuple(parts[i : i + k]) for i in range(max(1, len(parts) - k + 1)))


def similar_kept(path: Path, removed: Path, kind: Hostile) -> float:
    """The share of a sample of the kept documents that is similar to another kept one."""
    gone = set(pq.read_table(removed, columns=["id"]).column("id").to_pylist())
    chance = random.Random(7)
    kept = [number for number in range(pq.read_metadata(path).num_rows) if number not in gone]
    asked = chance.sample(kept, min(ASKED, len(kept)))
    others = set(chance.sample(kept, min(AMONG, len(kept)))) | set(asked)
    chosen = {number: shingles(text, kind) for number, text in _texts(path) if number in others}
    of = {shingle: place for place, shingle in enumerate(sorted({s for number in asked for s in chosen[number]}))}
    table = np.zeros((len(asked), len(of) + 1), np.uint8)
    for row, number in enumerate(asked):
        table[row, [of[shingle] for shingle in chosen[number]]] = 1
    sizes = np.array([len(chosen[number]) for number in asked])
    found = np.zeros(len(asked), bool)
    for number, own in chosen.items():
        if not own:
            continue
        known = [of[shingle] for shingle in own if shingle in of]
        shared = table[:, known].sum(axis=1, dtype=np.int64)
        similarity = shared / (sizes + len(own) - shared)
        similarity[[place for place, other in enumerate(asked) if other == number]] = 0
        found |= similarity >= kind.threshold
    return float(found.mean()) if len(asked) else 0.0


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    for batch in pq.ParquetFile(path).iter_batches(columns=["text"]):
        for text in batch.column("text").to_pylist():
            yield number, text
            number += 1


def run(path: Path, kind: Hostile, *more: str) -> tuple[Cost, float, dict[str, str]]:
    """Run `dedup`; what it cost, CPU seconds apart, and a digest of every table."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    command = [*LIKEWISE, "dedup", str(path), "--id", "id", "--out", str(OUT), "--quiet", *kind.options, *more]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost, _ = watched(command, OUT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cost, cpu, {name: sha256((OUT / name).read_bytes()).hexdigest() for name in TABLES if (OUT / name).exists()}


def measured(name: str, documents: int) -> Measured:
    """Run a corpus with default settings and with little memory, and check what was kept."""
    kind = KINDS[name]
    path = corpus(name, documents)
    small, small_cpu, small_tables = run(path, kind, "--memory", LEAST)
    cost, cpu, tables = run(path, kind)
    stats = json.loads((OUT / "run.json").read_text())
    crowds = stats["details"].get("crowds") or {}
    certificate = stats.get("certificate") or {}
    result = Measured(
        name,
        documents,
        cost.seconds,
        cpu,
        cost.peak_mb,
        small.seconds,
        small_cpu,
        small.peak_mb,
        tables == small_tables,
        stats["method"]["taken"],
        documents - stats["counts"]["removed"],
        stats["counts"]["pairs"],
        similar_kept(path, OUT / "removed.parquet", kind),
        certificate.get("recall"),
        crowds.get("unchecked", 0),
        crowds.get("documents", 0),
        crowds.get("complete", True),
    )
    shutil.rmtree(OUT)
    return result


def exponents(results: list[Measured]) -> tuple[float, float] | None:
    """The x of CPU seconds ~ documents^x, by least squares: with default settings, and with little memory."""
    if len(results) < 2:
        return None
    x = [log(one.documents) for one in results]
    y = [[log(one.cpu), log(one.small_cpu)] for one in results]
    default, small = np.polyfit(x, y, 1)[0]
    return float(default), float(small)


def main() -> None:
    """Measure, print, write as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--kinds", default="", help="only kinds whose name contains this")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "skew.json")
    asked = parser.parse_args()
    table = Table(*COLUMNS)
    for column in table.columns[1:]:
        column.justify = "right"
    every: list[dict[str, object]] = []
    watched([*LIKEWISE, "warmup"], DATA)
    for name in KINDS:
        if asked.kinds not in name:
            continue
        results: list[Measured] = []
        for size in (int(size) for size in asked.sizes.split(",")):
            try:
                one = measured(name, size)
            except Unavailable as error:
                console.print(f"{name}, {size:,}: {error}")
                every.append({"kind": name, "documents": size, "error": str(error)})
                continue
            powers = exponents([*results[-1:], one])
            results.append(one)
            every.append({**asdict(one), "exponents": powers})
            power, small_power = (f"{power:.2f}" for power in powers) if powers else ("", "")
            cells = [f"{size:,}", f"{one.seconds:.1f}", f"{one.cpu:.1f}", power, f"{one.peak_mb:,.0f}"]
            cells += [f"{one.small_cpu:.1f}", small_power, f"{one.small_peak_mb:,.0f}"]
            cells += ["yes" if one.same else "NO", one.method]
            cells += [f"{one.kept:,}", f"{one.pairs:,}", f"{one.similar_kept:.2f}"]
            cells += ["" if one.recall is None else f"{one.recall:.4f}", f"{one.unchecked:,}"]
            table.add_row(name, *cells)
            console.print(name, *cells)
            asked.out.parent.mkdir(parents=True, exist_ok=True)
            asked.out.write_text(json.dumps(every, indent=2) + "\n")
        overall = exponents(results)
        if overall is not None:
            table.add_row(name, "", "", "", f"{overall[0]:.2f}", "", "", f"{overall[1]:.2f}", *[""] * 7)
            every.append({"kind": name, "exponents": overall})
            asked.out.write_text(json.dumps(every, indent=2) + "\n")
    console.print(table)


if __name__ == "__main__":
    main()
