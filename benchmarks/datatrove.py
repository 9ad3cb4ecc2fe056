"""likewise beside datatrove, each from Parquet files to the folder of kept documents, on a planted corpus.

    python benchmarks/datatrove.py                                      a million documents
    python benchmarks/datatrove.py --documents 20000 --ways 14x8,plain

datatrove runs with its default 14 buckets of 8 hashes, and with two configurations that find a pair at the threshold
with the recall likewise is asked for: the smallest signature, and the fewest buckets of its usual 8 hashes. `plain` is
the way of its documentation, several times slower; what the others do differently is told in
peers/datatrove_run.py. The corpus is split into a file for each process beforehand, because datatrove shares out files.

datatrove lists no pairs. So for both tools a planted pair counts as found when its documents are in one cluster, which
forgives a pair that is missed but joined by others. Precision is asked of removed documents, 20,000 at most, chosen by
chance: does the cluster hold any document with a similarity >= the threshold ("rightly"), and is the one that is kept
for it such a document ("stands")? These similarities are computed from the texts. The corpus has many pairs a little
below the threshold, which a tool that does not verify cannot tell from those above.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from corpus import DATA, ROWS_IN_GROUP, size
from likewise import Words
from likewise.measures import jaccard
from planted import K, planted
from runs import HERE, REQUIREMENTS, Unavailable, python_of
from scale import LIKEWISE, NEAR, dedup
from text import banding
from watch import Cost, watched

PROCESSES = 2
MOST_CHECKED = 20_000
OUT = DATA / "out" / "datatrove"
Integers = npt.NDArray[np.int64]
console = Console(highlight=False, width=150)


@dataclass(frozen=True)
class Answer:
    """What a tool said: the cluster of every document, the removed ones, and the one kept for each of these."""

    clusters: Integers
    removed: Integers
    kept: Integers


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    tool: str
    cost: Cost
    phases: dict[str, float]
    recall: float
    recall_near: float
    removed: int
    rightly: float
    stands: float


def ways(threshold: float, recall: float) -> dict[str, list[str]]:
    """The configurations of datatrove."""
    smallest = banding(threshold, recall)
    usual = banding(threshold, recall, fewest_rows=8, most_rows=8)
    found = {f"{bands}x{rows}": (bands, rows) for bands, rows in ((14, 8), smallest, usual)}
    options = {name: ["--bands", str(bands), "--rows", str(rows)] for name, (bands, rows) in found.items()}
    return {**options, "plain": [*options["14x8"], "--plain"]}


def split(corpus: Path, files: int) -> Path:
    """The corpus as a folder of files of equal size, with ids as text: datatrove loses the id 0."""
    folder = DATA / f"{corpus.stem}-in-{files}"
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        unfinished.mkdir(parents=True, exist_ok=True)
        source = pq.ParquetFile(corpus, pre_buffer=False)
        groups = np.array_split(np.arange(source.num_row_groups), files)
        for number, some in enumerate(groups):
            _copy(source, some.tolist(), unfinished / f"{number:05d}.parquet")
        unfinished.rename(folder)
    return folder


def _copy(source: pq.ParquetFile, groups: list[int], target: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    with pq.ParquetWriter(target, schema, compression="zstd", use_dictionary=False) as writer:
        for group in groups:
            writer.write_table(source.read_row_group(group).cast(schema), row_group_size=ROWS_IN_GROUP)


def run_likewise(corpus: Path, rows: int, options: list[str]) -> tuple[Cost, dict[str, float], Answer]:
    """Run likewise and read its answer."""
    cost, run = dedup(corpus, OUT, options)
    clusters = np.empty(rows, np.int64)
    table = pq.read_table(OUT / "clusters.parquet")
    clusters[table.column("id").to_numpy()] = table.column("cluster").to_numpy()
    removed = pq.read_table(OUT / "removed.parquet", columns=["id", "kept_id"])
    return cost, run["seconds"], Answer(clusters, *(column.to_numpy() for column in removed.columns))


def run_datatrove(folder: Path, rows: int, options: list[str]) -> tuple[Cost, dict[str, float], Answer]:
    """Run datatrove and read its answer."""
    script = HERE / "peers" / "datatrove_run.py"
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    command = [python_of("datatrove"), str(script), str(folder), "--out", str(OUT), "--k", str(K), *options]
    cost, output = watched([*command, "--processes", str(PROCESSES)], OUT)
    table = pq.read_table(OUT / "clusters.parquet")
    members, numbers = table.column("row").to_numpy(), table.column("cluster").to_numpy()
    removed = pq.read_table(OUT / "removed.parquet").column("row").to_numpy()
    clusters = np.arange(rows) + numbers.max(initial=-1) + 1
    clusters[members] = numbers
    survives = ~np.isin(members, removed)
    keepers = np.empty(numbers.max(initial=-1) + 1, np.int64)
    keepers[numbers[survives]] = members[survives]
    phases: dict[str, float] = json.loads(output.splitlines()[-1])["phases"]
    return cost, phases, Answer(clusters, removed, keepers[clusters[removed]])


def recalls(listed: Path, clusters: Integers, threshold: float) -> tuple[float, float]:
    """The share of planted pairs in one cluster: of all at or above the threshold, and of those little above."""
    table = pq.read_table(listed)
    a, b, similarity = (table.column(name).to_numpy() for name in ("id_a", "id_b", "similarity"))
    together = clusters[a] == clusters[b]
    wanted = similarity >= threshold
    return float(together[wanted].mean()), float(together[wanted & (similarity <= threshold + NEAR)].mean())


def precisions(corpus: Path, answer: Answer, threshold: float) -> tuple[float, float]:
    """The shares of removed documents with a similar one in their cluster, and with a similar one kept for them."""
    if not len(answer.removed):
        return 1.0, 1.0
    count = min(MOST_CHECKED, len(answer.removed))
    checked = np.sort(np.random.default_rng(0).choice(len(answer.removed), count, replace=False))
    order = np.argsort(answer.clusters, kind="stable")
    by_cluster = answer.clusters[order]
    wanted = answer.clusters[answer.removed[checked]]
    starts, ends = (np.searchsorted(by_cluster, wanted, side) for side in ("left", "right"))
    companies = [order[start:end] for start, end in zip(starts, ends, strict=True)]
    sets = _sets(corpus, np.unique(np.concatenate((*companies, answer.kept[checked]))))
    rightly = stands = 0
    for row, keeper, company in zip(answer.removed[checked], answer.kept[checked], companies, strict=True):
        similar = {int(other) for other in company if other != row and jaccard(sets[row], sets[other]) >= threshold}
        rightly += bool(similar)
        stands += int(keeper) in similar
    return rightly / count, stands / count


def _sets(corpus: Path, rows: Integers) -> dict[int, list[int]]:
    """The shingles of some documents."""
    found: dict[int, list[int]] = {}
    start = 0
    for batch in pq.ParquetFile(corpus, pre_buffer=False).iter_batches(columns=["text"]):
        here = rows[(rows >= start) & (rows < start + batch.num_rows)]
        texts = batch.column(0).take(pa.array(here - start))
        found |= zip(here.tolist(), (one.tolist() for one in Words(K).sets(texts)), strict=True)
        start += batch.num_rows
    return found


def show(rows: list[Row], threshold: float) -> None:
    """Print the table."""
    table = Table("tool", "seconds", "peak MB", "disk MB", "recall", f"recall to {threshold + NEAR:g}")
    for title in ("removed", "rightly", "stands", "x likewise"):
        table.add_column(title)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        costs = f"{row.cost.seconds:,.1f}", f"{row.cost.peak_mb:,.0f}", f"{row.cost.disk_mb:,.0f}"
        shares = f"{row.recall:.5f}", f"{row.recall_near:.5f}"
        marks = f"{row.removed:,}", f"{row.rightly:.4f}", f"{row.stands:.4f}"
        table.add_row(row.tool, *costs, *shares, *marks, f"{row.cost.seconds / rows[0].cost.seconds:.1f}")
    console.print(table)


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--recall", type=float, default=0.99)
    parser.add_argument("--memory", default="4GiB", help='memory budget of likewise; "" for none (%(default)s)')
    parser.add_argument("--ways", help="configurations of datatrove, comma-separated (default: all but plain)")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "datatrove.json")
    return parser.parse_args()


def main() -> None:
    """Measure, print the table, write it as JSON."""
    asked = arguments()
    corpus, listed = planted(asked.documents)
    documents, megabytes = size(corpus)
    console.print(f"{corpus.stem}: {documents:,} documents, {megabytes:,.0f} MB of text")
    folder = split(corpus, PROCESSES)
    known = ways(asked.threshold, asked.recall)
    chosen = asked.ways.split(",") if asked.ways else [name for name in known if name != "plain"]
    rows: list[Row] = []

    def score(tool: str, measured: tuple[Cost, dict[str, float], Answer]) -> None:
        cost, phases, answer = measured
        stages = ", ".join(f"{name} {spent:.1f}" for name, spent in phases.items())
        console.print(f"  {tool}: {cost.seconds:.1f} s ({stages})")
        shares = recalls(listed, answer.clusters, asked.threshold)
        rows.append(Row(tool, cost, phases, *shares, len(answer.removed), *precisions(corpus, answer, asked.threshold)))

    try:
        watched([*LIKEWISE, "warmup"], OUT)
        options = ["--threshold", str(asked.threshold), "--recall", str(asked.recall)]
        options += ["--memory", asked.memory] if asked.memory else []
        score("likewise", run_likewise(corpus, documents, options))
        for name in chosen:
            score(f"datatrove {name}", run_datatrove(folder, documents, known[name]))
    except Unavailable as reason:
        raise SystemExit(str(reason)) from None
    finally:
        shutil.rmtree(OUT, ignore_errors=True)
    show(rows, asked.threshold)
    summary = {
        "corpus": {"name": corpus.stem, "documents": documents, "text_mb": megabytes},
        "machine": {"cores": os.cpu_count(), "architecture": platform.machine()},
        "versions": {"likewise": version("likewise"), "datatrove": REQUIREMENTS["datatrove"]},
        "parameters": {"threshold": asked.threshold, "recall": asked.recall, "memory": asked.memory},
        "table": [asdict(row) for row in rows],
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    main()
