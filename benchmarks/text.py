"""likewise beside its peers: from a Parquet file to near-duplicate pairs, with time, memory, recall and precision.

    python benchmarks/text.py                                everything, on 500 MB of text (made on first use)
    python benchmarks/text.py --small                        the same on 20 MB
    python benchmarks/text.py --corpus FILE --peers gaoya    your own Parquet file, with columns id (row number), text
    python benchmarks/text.py --peers none                   likewise and reading only

Every run is a fresh process in the tool's own environment (made on first use). All peers get the same bands and
rows: the smallest signature that reaches the recall at the threshold by 1 - (1 - t^r)^b. Quick tools run three
times and the best counts. Recall and precision are explained in scores.py; "own recall" is measured with the words
of the peer itself, where these are not ours.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import blake2b
from importlib.metadata import version
from math import ceil, log
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from corpus import DATA, environment, size
from runs import HERE, REQUIREMENTS, Run, Unavailable, run
from scores import Score, score
from truth import WORDS, Truth, truth

REPEATS = 3
PATIENCE = 100.0
"""A tool is not started again once its runs have taken this many seconds."""

PEERS: dict[str, tuple[str, list[str]]] = {
    "gaoya": ("gaoya", []),
    "rensa": ("rensa", []),
    "rensa (1 process)": ("rensa", ["--processes", "1"]),
    "datasketch": ("datasketch", []),
    "datasketch (plain)": ("datasketch", ["--processes", "1", "--hash", "sha1"]),
    "datasketch (Bloom)": ("datasketch-bloom", []),
    "FastSketchLSH": ("fastsketchlsh", []),
    "text-dedup": ("text-dedup", []),
}
OUT = DATA / "out"
console = Console(highlight=False, width=130)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    tool: str
    seconds: float
    median: float
    mb_per_second: float
    peak_mb: float
    phases: dict[str, float]
    score: Score | None = None
    own_recall: float | None = None


def banding(threshold: float, recall: float, fewest_rows: int = 5, most_rows: int = 32) -> tuple[int, int]:
    """The bands and rows of the smallest signature that finds a pair at the threshold with this probability."""
    choice = range(fewest_rows, most_rows + 1)
    sizes = [(ceil(log(1 - recall) / log(1 - threshold**rows)), rows) for rows in choice]
    return min(sizes, key=lambda size: size[0] * size[1])


def measure(name: str, tool: str, corpus: Path, options: list[str]) -> Run:
    """The best of up to three runs, its peak the largest and its median noted; the last answer stays in its folder."""
    results: list[Run] = []
    while len(results) < REPEATS and sum(result.total for result in results) < PATIENCE:
        results.append(run(tool, corpus, OUT / name, options))
        console.print(f"  {name}: {results[-1].total:.2f} s")
    best = min(results, key=lambda result: result.total)
    more = {**best.more, "median": median(result.total for result in results)}
    return Run(best.total, best.phases, max(result.peak_mb for result in results), more)


def line(name: str, result: Run, megabytes: float, found: Score | None = None, own: float | None = None) -> Row:
    """A line of the table from a measured run."""
    middle = float(str(result.more["median"]))
    return Row(name, result.total, middle, megabytes / result.total, result.peak_mb, result.phases, found, own)


def faults(known: Truth, threshold: float, folder: Path) -> list[str]:
    """What is wrong with likewise's answer: similarities that are not exact, removals that are not true."""
    similarities = dict(
        zip(zip(known.first.tolist(), known.second.tolist(), strict=True), known.similarity, strict=True)
    )
    wrong = []
    for name, one, other in (("scored", "id_a", "id_b"), ("removed", "id", "kept_id")):
        table = pq.read_table(folder / f"{name}.parquet", columns=[one, other, "similarity"])
        for a, b, said in zip(*(column.to_pylist() for column in table.columns), strict=True):
            first, second = sorted((int(known.sets[a]), int(known.sets[b])))
            true = 1.0 if first == second else float(similarities.get((first, second), 0.0))
            if abs(true - said) > 1e-12 or said < threshold:
                wrong.append(f"{name}: {a} and {b} have similarity {true}, not {said}")
    return wrong


def fingerprint(folder: Path) -> str:
    """A hash of the bytes of likewise's answer: pairs, removals and clusters."""
    sink = pa.BufferOutputStream()
    for name in ("scored", "removed", "clusters"):
        table = pq.read_table(folder / f"{name}.parquet").combine_chunks()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return blake2b(sink.getvalue(), digest_size=8).hexdigest()


def same_everywhere(corpus: Path, options: list[str]) -> dict[str, str]:
    """The fingerprint of the answer with 1, 2 and 4 threads and with two batch sizes."""
    ways = {f"{threads} threads": ["--processes", str(threads)] for threads in (1, 2, 4)}
    ways |= {f"batches of {rows}": ["--batch-rows", str(rows)] for rows in (1_000, 7_000)}
    prints = {}
    for name, way in ways.items():
        run("likewise", corpus, OUT / "same", [*options, *way])
        prints[name] = fingerprint(OUT / "same")
    return prints


def recalls(corpus: Path, known: Truth, options: list[str], seeds: Iterable[int]) -> dict[int, float]:
    """The recall of likewise for each seed."""
    found = {}
    for seed in seeds:
        run("likewise", corpus, OUT / "seeds", [*options, "--seed", str(seed)])
        found[seed] = score(known, OUT / "seeds").recall
    return found


def show(rows: list[Row], ours: Row) -> None:
    """Print the table."""
    table = Table("tool", *(("best s", "median s", "MB/s", "peak MB", "recall", "own recall", "precision")))
    for title in ("copies", "x likewise"):
        table.add_column(title)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        marks = [row.score.recall, row.own_recall, row.score.precision, row.score.copies] if row.score else [None] * 4
        numbers = ["" if mark is None else f"{mark:.4f}" for mark in marks]
        costs = f"{row.seconds:.2f}", f"{row.median:.2f}", f"{row.mb_per_second:.0f}", f"{row.peak_mb:,.0f}"
        table.add_row(row.tool, *costs, *numbers, f"{row.seconds / ours.seconds:.2f}")
    console.print(table)


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="a Parquet file (default: the environment, 500 MB)")
    parser.add_argument("--small", action="store_true", help="20 MB of the environment")
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--recall", type=float, default=0.99)
    parser.add_argument("--bands", type=int, help="bands of the peers")
    parser.add_argument("--rows", type=int, help="rows of the peers")
    parser.add_argument("--peers", default=",".join(PEERS), help="comma-separated, or none (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds likewise is tried with")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "text.json")
    return parser.parse_args()


def main() -> None:
    """Measure everything, print the table, write it as JSON."""
    asked = arguments()
    corpus = asked.corpus or environment(20 if asked.small else 500)
    bands, rows_each = banding(asked.threshold, asked.recall)
    if asked.bands and asked.rows:
        bands, rows_each = asked.bands, asked.rows
    documents, megabytes = size(corpus)
    console.print(f"{corpus.stem}: {documents:,} documents, {megabytes:,.0f} MB of text; truth ...")
    known = truth(corpus, asked.threshold)
    console.print(f"{len(known.first):,} pairs of distinct sets >= {asked.threshold:g}")

    common = ["--threshold", str(asked.threshold)]
    options = [*common, "--recall", str(asked.recall)]
    run("likewise", corpus, OUT / "likewise", options)  # compiles, if need be
    reading = line("pyarrow, reading only", measure("reading", "read", corpus, []), megabytes)
    answered = measure("likewise", "likewise", corpus, options)
    ours = line("likewise", answered, megabytes, score(known, OUT / "likewise"))
    wrong = faults(known, asked.threshold, OUT / "likewise")
    table = [reading, ours]
    skipped = {}
    for name in () if asked.peers == "none" else asked.peers.split(","):
        tool, more = PEERS[name]
        try:
            result = measure(name, tool, corpus, [*common, "--bands", str(bands), "--rows", str(rows_each), *more])
        except Unavailable as reason:
            skipped[name] = str(reason)
            continue
        own = score(truth(corpus, asked.threshold, words=tool), OUT / name).recall if tool in WORDS else None
        table.append(line(name, result, megabytes, score(known, OUT / name), own))
    prints = same_everywhere(corpus, options)
    by_seed = recalls(corpus, known, options, range(1, asked.seeds + 1))

    show(table, ours)
    console.print(f"peers: {bands} bands of {rows_each} rows")
    for name, why in skipped.items():
        console.print(f"{name} was skipped: {why}")
    console.print("likewise by stage: " + ", ".join(f"{stage} {spent:.2f}" for stage, spent in ours.phases.items()))
    console.print(f"likewise / reading: {ours.seconds / reading.seconds:.2f}")
    console.print(f"peak memory / text: {ours.peak_mb / megabytes:.2f}")
    console.print("recall by seed: " + ", ".join(f"{share:.5f}" for share in by_seed.values()))
    stats = answered.more["stats"]
    counts = stats["counts"] if isinstance(stats, dict) else {}
    console.print(f"likewise's counts: {counts}")
    console.print(f"wrong similarities or removals: {len(wrong)}", *wrong[:5])
    verdict = "the same" if len(set(prints.values())) == 1 else f"NOT the same: {prints}"
    console.print(f"answer with {', '.join(prints)}: {verdict}")
    summary = {
        "corpus": {"name": corpus.stem, "documents": documents, "text_mb": megabytes, "true_pairs": len(known.first)},
        "machine": {"cores": os.cpu_count(), "architecture": platform.machine(), "python": platform.python_version()},
        "versions": {"likewise": version("likewise"), "peers": REQUIREMENTS},
        "parameters": {"threshold": asked.threshold, "recall": asked.recall, "bands": bands, "rows": rows_each},
        "table": [asdict(row) for row in table],
        "ratios": {row.tool: row.seconds / ours.seconds for row in table},
        "skipped": skipped,
        "likewise_to_reading": ours.seconds / reading.seconds,
        "peak_memory_to_text": ours.peak_mb / megabytes,
        "recall_by_seed": by_seed,
        "counts": counts,
        "wrong": len(wrong),
        "same_answer": len(set(prints.values())) == 1,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    main()
