"""How far does it go? `likewise dedup` on planted corpora, each ten times the one before, within a memory budget.

    python benchmarks/scale.py                                   a hundred thousand, a million, ten million documents
    python benchmarks/scale.py --sizes 100000 --memory ""        one size, without a budget
    python benchmarks/scale.py --sizes 1000000 --recall 0.95     other options go to likewise as they are
    python benchmarks/scale.py --model                           with one thread, too: seconds by stage and core
    python benchmarks/scale.py --sizes 15000000 --words 100 980 --out results/scale-web.json     45 GB, as FineWeb-10BT

Every run is the whole command in a fresh process, from the file on disk to the folder of results. Because the corpus
lists its similar pairs (planted.py), recall and mistakes are counted exactly: a mistake is a pair, or a removed
document and the one kept for it, that is not planted, is below the threshold, or has another similarity than it should.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from corpus import DATA, size
from growth import exponent
from planted import LENGTHS, planted
from runs import HERE, Unavailable
from watch import Cost, watched

OUT = DATA / "out" / "scale"
LIKEWISE = [sys.executable, "-c", "from likewise.cli import main; main()"]
NEAR = 0.02
"""Pairs up to this much above the threshold are the hard ones: their recall is given apart."""

PASSED_ON = ("counts", "seconds", "certificate", "forecast", "disk", "banding", "predicted_recall", "abridged")
"""Entries of run.json that are copied where they are there."""

Keys = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
console = Console(highlight=False, width=150)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    documents: int
    text_mb: float
    cost: Cost
    recall: float
    recall_near: float
    planted_pairs: int
    planted_near: int
    mistakes: int
    exponent: float | None = None
    run: dict[str, Any] = field(default_factory=dict)


def dedup(corpus: Path, out: Path, options: list[str]) -> tuple[Cost, dict[str, Any]]:
    """Run the command into an empty folder; what it cost, and its run.json."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    cost, _ = watched([*LIKEWISE, "dedup", str(corpus), "--id", "id", "--out", str(out), *options], out)
    return cost, json.loads((out / "run.json").read_text())


def read_pairs(path: Path, one: str = "id_a", other: str = "id_b") -> tuple[Keys, Floats]:
    """The pairs of a file, each as one number, sorted, and their similarities."""
    parts: list[tuple[Keys, Floats]] = [(np.empty(0, np.uint64), np.empty(0))]
    for batch in pq.ParquetFile(path, pre_buffer=False).iter_batches(columns=[one, other, "similarity"]):
        a, b = (batch.column(name).to_numpy().astype(np.uint64) for name in (one, other))
        keys: Keys = np.minimum(a, b) << np.uint64(32) | np.maximum(a, b)
        parts.append((keys, batch.column("similarity").to_numpy()))
    keys, similarity = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(keys)
    return keys[order], similarity[order]


def places(keys: Keys, among: Keys) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Where each key stands among sorted ones, and whether it is there."""
    if not len(among):
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
    found = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    return found, among[found] == keys


def mistakes(true: tuple[Keys, Floats], said: tuple[Keys, Floats], threshold: float) -> int:
    """How many pairs are not planted, below the threshold, named twice, or of another similarity."""
    place, there = places(said[0], true[0])
    right = there & (said[1] >= threshold)
    right[there] &= true[1][place[there]] == said[1][there]
    right[1:] &= said[0][1:] != said[0][:-1]
    return int((~right).sum())


def measure(documents: int, threshold: float, options: list[str], words: tuple[int, int]) -> Row:
    """Run likewise on a planted corpus and score its answer."""
    corpus, listed = planted(documents, words=words)
    _, megabytes = size(corpus)
    cost, run = dedup(corpus, OUT, ["--threshold", str(threshold), *options])
    true, said = read_pairs(listed), read_pairs(OUT / "pairs.parquet")
    wanted = true[1] >= threshold
    near = wanted & (true[1] <= threshold + NEAR)
    _, found = places(true[0], said[0])
    removed = read_pairs(OUT / "removed.parquet", "id", "kept_id")
    shutil.rmtree(OUT)
    return Row(
        documents=documents,
        text_mb=megabytes,
        cost=cost,
        recall=float(found[wanted].mean()),
        recall_near=float(found[near].mean()),
        planted_pairs=int(wanted.sum()),
        planted_near=int(near.sum()),
        mistakes=mistakes(true, said, threshold) + mistakes(true, removed, threshold),
        run={name: run[name] for name in PASSED_ON if name in run},
    )


def show(rows: list[Row], threshold: float) -> None:
    """Print the table."""
    near = f"recall to {threshold + NEAR:g}"
    table = Table("documents", "MB", "seconds", "exponent", "peak MB", "disk MB", "recall", near, "pairs", "removed")
    table.add_column("mistakes")
    for column in table.columns:
        column.justify = "right"
    for row in rows:
        counts = row.run.get("counts", {})
        table.add_row(
            f"{row.documents:,}",
            f"{row.text_mb:,.0f}",
            f"{row.cost.seconds:,.1f}",
            "" if row.exponent is None else f"{row.exponent:.2f}",
            f"{row.cost.peak_mb:,.0f}",
            f"{row.cost.disk_mb:,.0f}",
            f"{row.recall:.5f}",
            f"{row.recall_near:.5f}",
            f"{counts.get('pairs', 0):,}",
            f"{counts.get('removed', 0):,}",
            f"{row.mistakes:,}",
        )
    console.print(table)


@dataclass(frozen=True)
class Stage:
    """What a stage takes: seconds of any corpus, of a million documents on one core, and of those that cores share."""

    name: str
    fixed: float
    serial: float
    shared: float

    def seconds(self, millions: float, cores: int) -> float:
        """The seconds of a corpus."""
        return self.fixed + millions * (self.serial + self.shared / cores)


def stages_of(row: Row) -> dict[str, float]:
    """The seconds of each stage, with what the command took beside them: to be started, and to end."""
    stages: dict[str, float] = dict(row.run["seconds"])
    return {**stages, "process": row.cost.seconds - sum(stages.values())}


def modelled(rows: list[Row], alone: list[Row], cores: int) -> list[Stage]:
    """A line through the two smallest corpora for each stage and number of threads; its slope by Amdahl's law."""
    few, many = (row.documents / 1e6 for row in rows[:2])
    stages = []
    for name in stages_of(rows[1]):
        (fixed, several), (_, one) = (
            line((few, stages_of(side[0]).get(name, 0.0)), (many, stages_of(side[1]).get(name, 0.0)))
            for side in (rows, alone)
        )
        serial = min(several, max(0.0, (cores * several - one) / (cores - 1)))
        stages.append(Stage(name, fixed, serial, (several - serial) * cores))
    return stages


def line(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """The line through two points, neither falling nor below zero: where it begins, and its slope."""
    slope = max(0.0, (second[1] - first[1]) / (second[0] - first[0]))
    return max(0.0, second[1] - slope * second[0]), slope


def show_model(rows: list[Row], alone: list[Row]) -> None:
    """Print what the two smallest corpora say of each stage, and hold it against all sizes and numbers of threads."""
    cores = os.cpu_count() or 1
    stages = modelled(rows, alone, cores)
    total = Stage("all", *(sum(getattr(each, part) for each in stages) for part in ("fixed", "serial", "shared")))
    table = Table("stage", "seconds", "of a million documents", "that cores share")
    for stage in (*stages, total):
        table.add_row(stage.name, f"{stage.fixed:.2f}", f"{stage.serial:.2f}", f"{stage.shared:.2f}")
    console.print(table)
    table = Table("documents", "cores", "model s", "measured s", "model / measured")
    for row, threads in [*((row, 1) for row in alone), *((row, cores) for row in rows)]:
        said = total.seconds(row.documents / 1e6, threads)
        table.add_row(
            f"{row.documents:,}",
            str(threads),
            f"{said:,.1f}",
            f"{row.cost.seconds:,.1f}",
            f"{said / row.cost.seconds:.2f}",
        )
    for threads in (8, 32):
        table.add_row(
            f"{rows[-1].documents:,}", str(threads), f"{total.seconds(rows[-1].documents / 1e6, threads):,.1f}"
        )
    console.print(table)


def arguments() -> tuple[argparse.Namespace, list[str]]:
    """What the user asks for, and what likewise shall be told."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100000,1000000,10000000", help="numbers of documents (%(default)s)")
    parser.add_argument("--memory", default="4GiB", help='memory budget; "" for none (%(default)s)')
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--words", type=int, nargs=2, default=LENGTHS, metavar="N", help="of a document (%(default)s)")
    parser.add_argument("--model", action="store_true", help="each size with one thread, too")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scale.json")
    asked, others = parser.parse_known_args()
    return asked, [*(["--memory", asked.memory] if asked.memory else []), *others]


def main() -> None:
    """Measure each size, print the table, write it as JSON."""
    asked, options = arguments()
    watched([*LIKEWISE, "warmup"], OUT)
    for threads in (["1"] if asked.model else []) + [str(os.cpu_count())]:  # the machine is measured once for each
        watched([*LIKEWISE, "plan", str(planted(100_000)[0]), "--threads", threads], OUT)
    rows: list[Row] = []
    alone: list[Row] = []
    for documents in map(int, asked.sizes.split(",")):
        try:
            row = measure(documents, asked.threshold, options, tuple(asked.words))
            if asked.model:
                alone.append(measure(documents, asked.threshold, [*options, "--threads", "1"], tuple(asked.words)))
        except Unavailable as reason:
            raise SystemExit(f"{documents:,} documents: {reason}") from None
        if rows:
            sizes, times = (rows[-1].documents, documents), (rows[-1].cost.seconds, row.cost.seconds)
            row = Row(**{**vars(row), "exponent": exponent(sizes, times)})
        rows.append(row)
        stages = ", ".join(f"{name} {spent:.1f}" for name, spent in row.run.get("seconds", {}).items())
        console.print(f"{documents:,} documents: {row.cost.seconds:.1f} s ({stages})")
        summary = {
            "machine": {"cores": os.cpu_count(), "architecture": platform.machine()},
            "likewise": version("likewise"),
            "options": options,
            "threshold": asked.threshold,
            "words": asked.words,
            "table": [asdict(each) for each in rows],
            "one_thread": [asdict(each) for each in alone],
        }
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(summary, indent=2) + "\n")
    show(rows, asked.threshold)
    if alone:
        show_model(rows, alone)


if __name__ == "__main__":
    main()
