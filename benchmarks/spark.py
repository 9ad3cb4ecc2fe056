"""What Spark costs, and what it gives: one corpus by several engines, more executors, more documents, skewed documents.

    python benchmarks/spark.py                            all of it, with a million documents: an hour on two cores
    python benchmarks/spark.py --documents 20000          a trial
    python benchmarks/spark.py --parts price              likewise and its peers only
    python benchmarks/spark.py --peer-documents 100000    peers on fewer documents, which the result says
    python benchmarks/spark.py --parts growth --sizes 100000 1000000 10000000

price      The planted corpus by the local engine, by the Spark engine on local[2], by Spark MLlib's MinHashLSH and by
           text-dedup's Spark script, at the same recall: seconds, bytes shuffled, memory, recall of the planted pairs.
executors  The steps without a shuffle, read, sketch and write, on a standalone cluster of one worker and of two, each
           with a core to itself (spark_cluster.py): the seconds of the step; those of `read` have the start of Python
           in them. Beside them, what a second core is worth without Spark.
growth     Seconds for several sizes, and the exponent between them.
skew       Identical documents and documents of one template: the longest task of each stage beside the median. Stages
           of short tasks do not count, and are named if they are uneven.
ways       The same corpus with candidates and pairs on the driver, as small ones are searched, and with all of them on
           the cluster, as large ones are: in turns, three times each.
connect    The same corpus by a classic session and by Spark Connect, each on --master, with the processor time of all
           processes. The server is started before, for this one run; its start is told beside. Only the
           classic session writes a log of events, which costs it something.

Each run is a process of its own, and its time is that of the whole command; a small run of both engines goes before.
Shuffled bytes are those that Spark reports, compressed. Needs `pip install 'likewise[spark]'` and Java 17.
`spark_same.py` compares the answers of engines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from corpus import DATA, identical, template
from growth import exponent
from likewise.spark.session import SETTLED
from planted import planted
from runs import HERE, Unavailable, python_of
from spark_cluster import connect_server, second_core, standalone, tree_seconds
from text import banding
from watch import Cost, watched

OUT = DATA / "out" / "spark"
RESULTS = HERE / "results" / "spark.json"
LIKEWISE = [sys.executable, "-m", "likewise", "dedup"]
THRESHOLD, RECALL = 0.8, 0.99
LONG = 0.5
"""Seconds of a task from which its stage counts for skew: shorter ones are as uneven as the start of a process is.
Stages without such a task are named if they are uneven, but not counted."""
MOST_UNEVEN = 5.0
"""How many times the median the longest task of a stage may take."""
PEERS = ("mllib", "text-dedup-spark")
MAPS = ("read", "sketch", "write")
WARM = 2_000
"""Documents of a run before the first one that is measured: it compiles kernels, and leaves an archive of Java's
classes."""
console = Console(highlight=False, width=140)


class EventLog:
    """The folder to which Spark writes what its tasks did, and the settings that make it do so.

    They are not in a folder of settings: Java then has another class path, of which there is no archive of classes.
    """

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self._events = folder / "events"
        self._events.mkdir(parents=True)
        settings = {
            "eventLog.enabled": "true", "eventLog.dir": f"file://{self._events}", "eventLog.compress": "false",
            "eventLog.rolling.enabled": "false", "ui.showConsoleProgress": "false", "ui.enabled": "false",
        }  # fmt: skip
        words = [f"--conf spark.{name}={value}" for name, value in settings.items()]
        self.environment = {"PYSPARK_SUBMIT_ARGS": " ".join([*words, "pyspark-shell"]), "SPARK_LOCAL_IP": "127.0.0.1"}

    @property
    def shuffled(self) -> int:
        """The bytes that all tasks wrote for a shuffle."""
        total = 0
        for path in self._events.iterdir():
            for line in path.read_text().splitlines():
                if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                    metrics = json.loads(line).get("Task Metrics") or {}
                    total += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
        return total


def run(command: list[str], out: Path, most: float | None = None) -> tuple[Cost, EventLog]:
    """Run a command whose files go to `out`, with a log of what Spark does."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    log = EventLog(out.with_suffix(".conf"))
    before = dict(os.environ)
    os.environ.update(log.environment | {"CPU_FILE": str(out / "cpu")})
    try:
        return watched(command, out, most)[0], log
    finally:
        os.environ.clear()
        os.environ.update(before)


def likewise(corpus: Path, out: Path, *more: str, program: Sequence[str] = LIKEWISE) -> dict[str, Any]:
    """Run `likewise dedup`; return the cost, and of a run on Spark what each step did."""
    cost, log = run([*program, str(corpus), "--id", "id", "--method", "lsh", *more, "--out", str(out / "run")], out)
    facts = {key: round(value, 1) for key, value in asdict(cost).items()}
    found = json.loads((out / "run" / "run.json").read_text())
    facts["stages"] = {name: round(seconds, 2) for name, seconds in found["seconds"].items()}
    facts["counts"] = found["counts"]
    if (out / "cpu").exists():
        facts["cpu_seconds"] = round(float((out / "cpu").read_text()), 1)
    if "spark" in found["details"]:
        facts["steps"] = found["details"]["spark"]["steps"]
        facts["shuffle_bytes"] = log.shuffled
    return facts


def on_spark(master: str) -> list[str]:
    """Return the options for the Spark engine."""
    return ["--engine", "spark", "--master", master]


def warm(master: str) -> None:
    """Run both engines once; Java takes an archive of classes for complete when it is a few seconds old."""
    corpus, _ = planted(WARM)
    likewise(corpus, OUT / "warm")
    likewise(corpus, OUT / "warm", *on_spark(master))
    time.sleep(3 * SETTLED)


def words(table: Any) -> Any:
    """Return pairs of ids as one number each."""
    a, b = (np.asarray(table.column(name), np.int64) for name in table.column_names[:2])
    return np.minimum(a, b) << 32 | np.maximum(a, b)


def similar(pairs: Path) -> Any:
    """Return the planted pairs at the threshold or above."""
    known = pq.read_table(pairs)
    return words(known.filter(pc.greater_equal(known.column("similarity"), THRESHOLD)))


def recall_of_pairs(found: Path, known: Any) -> dict[str, Any]:
    """Return how many of the known pairs were found."""
    pairs = words(pq.read_table(found, columns=["id_a", "id_b"]))
    return {"pairs": len(pairs), "recall": round(float(np.isin(known, pairs).mean()), 5)}


def recall_of_components(found: Path, known: Any) -> dict[str, Any]:
    """Return how many of the known pairs are in one component."""
    table = pq.read_table(found, columns=["id", "component"])
    ids, labels = (np.asarray(column, np.int64) for column in table.columns)
    of = np.arange(int(max((known & 0xFFFFFFFF).max(), ids.max())) + 1)
    of[ids] = labels
    together = of[known >> 32] == of[known & 0xFFFFFFFF]
    return {"components": len(np.unique(labels)), "recall": round(float(together.mean()), 5)}


def peer(name: str, documents: int, master: str, most: float) -> dict[str, Any]:
    """Run a peer; what cannot be had or fails is told."""
    corpus, pairs = planted(documents)
    out = OUT / name
    command = [sys.executable if name == "mllib" else "", str(HERE / "peers" / f"{name.replace('-', '_')}_run.py")]
    command += [str(corpus), "--out", str(out), "--master", master, "--threshold", str(THRESHOLD)]
    try:
        if name == "mllib":
            command += ["--recall", str(RECALL)]
        else:
            bands, rows = banding(THRESHOLD, RECALL)
            command[0] = python_of(name)
            command += ["--bands", str(bands), "--rows", str(rows)]
        cost, log = run(command, out, most)
    except Unavailable as error:
        return {"documents": documents, "failed": str(error)}
    facts = {"documents": documents, **{key: round(value, 1) for key, value in asdict(cost).items()}}
    facts["shuffle_bytes"] = log.shuffled
    if name == "mllib":
        return {**facts, **recall_of_pairs(out / "pairs.parquet", similar(pairs))}
    return {**facts, **recall_of_components(out / "kept-assignment" / "assignment.parquet", similar(pairs))}


def price(asked: argparse.Namespace) -> dict[str, Any]:
    """Compare engines and peers on one corpus."""
    corpus, pairs = planted(asked.documents)
    found = {
        "local": likewise(corpus, OUT / "local"),
        "spark": likewise(corpus, OUT / "spark", *on_spark(asked.master)),
    }
    for name, one in found.items():
        one |= {"documents": asked.documents}
        one |= recall_of_pairs(OUT / name / "run" / "pairs.parquet", similar(pairs))
    for name in asked.peers:
        found[name] = peer(name, asked.peer_documents or asked.documents, asked.master, asked.timeout)
    table = Table("", "documents", "seconds", "shuffled MB", "memory MB", "recall")
    for name, one in found.items():
        if "failed" in one:
            table.add_row(name, f"{one['documents']:,}", one["failed"])
            continue
        shuffled = f"{one['shuffle_bytes'] / 1e6:,.1f}" if "shuffle_bytes" in one else ""
        row = [f"{one['seconds']:,.1f}", shuffled, f"{one['peak_mb']:,.0f}", f"{one['recall']:.4f}"]
        table.add_row(name, f"{one['documents']:,}", *row)
    console.print(table)
    console.print(f"price of Spark: {found['spark']['seconds'] / found['local']['seconds']:.1f} times the local engine")
    return found


def executors(asked: argparse.Namespace) -> dict[str, Any]:
    """Compare one executor of one core with two."""
    corpus, _ = planted(asked.documents)
    found: dict[str, Any] = {}
    for count in (1, 2):
        with standalone(count) as master:
            found[str(count)] = likewise(corpus, OUT / f"executors-{count}", *on_spark(master))
    table = Table("step", "one executor", "two", "times faster")
    for step in MAPS:
        one, two = (found[count]["steps"][step]["seconds"] for count in ("1", "2"))
        table.add_row(step, f"{one:.1f}", f"{two:.1f}", f"{one / two:.2f}")
    console.print(table)
    found["second_core"] = round(second_core(), 2)
    console.print(f"two processes of likewise without Spark do as much as {found['second_core']:.2f} on one core")
    return found


def growth(asked: argparse.Namespace) -> dict[str, Any]:
    """Run several sizes."""
    found = {}
    for documents in asked.sizes:
        found[str(documents)] = likewise(planted(documents)[0], OUT / "growth", *on_spark(asked.master))
    seconds = [found[str(documents)]["seconds"] for documents in asked.sizes]
    table = Table("documents", "seconds", "exponent")
    for place, documents in enumerate(asked.sizes):
        first, last = max(0, place - 1), place
        power = exponent((asked.sizes[first], documents), (seconds[first], seconds[last])) if place else None
        table.add_row(f"{documents:,}", f"{seconds[place]:,.1f}", "" if power is None else f"{power:.2f}")
    console.print(table)
    return found


def uneven(steps: dict[str, Any]) -> Iterable[tuple[str, int, float, float]]:
    """Yield step, tasks, median and longest of every stage with several tasks."""
    for step, one in steps.items():
        for stage in one["stages"]:
            if stage["tasks"] > 1 and "task_seconds_most" in stage:
                yield step, stage["tasks"], stage["task_seconds_median"], stage["task_seconds_most"]


def skew(asked: argparse.Namespace) -> dict[str, Any]:
    """Run documents that all go to one place."""
    found = {}
    makers: dict[str, Callable[[int], Path]] = {"identical": identical, "template": template}
    table = Table("corpus", "step", "tasks", "median s", "longest s", "ratio")
    for name, make in makers.items():
        found[name] = likewise(make(asked.documents), OUT / name, *on_spark(asked.master))
        ratios, short = [0.0], []
        for step, tasks, median, most in uneven(found[name]["steps"]):
            ratio = most / max(median, 1e-3)
            if most >= LONG:
                ratios.append(ratio)
                table.add_row(name, step, str(tasks), f"{median:.2f}", f"{most:.2f}", f"{ratio:.1f}")
            elif ratio > MOST_UNEVEN:
                short.append(f"{step} ({tasks} tasks, {most:.2f} s, {ratio:.1f} times the median)")
        found[name]["longest_over_median"] = round(max(ratios), 2)
        found[name]["not_counted"] = short
    console.print(table)
    for name, one in found.items():
        if one["not_counted"]:
            console.print(f"{name}: uneven, but shorter than {LONG:g} s: {', '.join(one['not_counted'])}")
    return found


def ways(asked: argparse.Namespace) -> dict[str, Any]:
    """Compare both ways of the Spark engine."""
    corpus, _ = planted(asked.documents)
    turns: dict[str, list[float]] = {"driver": [], "cluster": []}
    for _ in range(3):
        for name, least in (("driver", 1 << 60), ("cluster", 0)):
            patch = f"from likewise.spark import corpus; corpus.LARGE = {least}; from likewise.cli import main; main()"
            program = [sys.executable, "-c", patch, "dedup"]
            cost = likewise(corpus, OUT / f"way-{name}", *on_spark(asked.master), program=program)
            turns[name].append(cost["seconds"])
    ratios = sorted(cluster / driver for driver, cluster in zip(turns["driver"], turns["cluster"], strict=True))
    console.print(f"{asked.documents:,} documents: {turns}; the cluster takes {ratios[1]:.1f} times as long")
    return {"documents": asked.documents, "seconds": turns, "ratio": round(ratios[1], 2)}


def connect(asked: argparse.Namespace) -> dict[str, Any]:
    """Compare a classic session with Spark Connect."""
    corpus, _ = planted(asked.documents)
    program = [sys.executable, "-c", "from spark_cluster import counted_main; counted_main()", "dedup"]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    found = {"classic": likewise(corpus, OUT / "classic", *on_spark(asked.master), program=program)}
    begun = time.perf_counter()
    with connect_server(asked.master) as (url, server):
        start, cpu = time.perf_counter() - begun, tree_seconds(server)
        one = found["connect"] = likewise(corpus, OUT / "connect", *on_spark(url), program=program)
        one["client_cpu_seconds"] = one["cpu_seconds"]
        one["cpu_seconds"] = round(one["cpu_seconds"] + tree_seconds(server) - cpu, 1)
        one |= {"start_seconds": round(start, 1), "start_cpu_seconds": round(cpu, 1)}
    kept = [pq.read_table(OUT / name / "run" / "removed.parquet").sort_by("id") for name in found]
    table = Table("session", "documents", "seconds", "cpu seconds")
    for name, one in found.items():
        one["documents"] = asked.documents
        table.add_row(name, f"{asked.documents:,}", f"{one['seconds']:,.1f}", f"{one['cpu_seconds']:,.1f}")
    console.print(table)
    console.print(
        f"the server took {one['start_seconds']} s to start, {one['start_cpu_seconds']} s of a core; its client"
        f" {one['client_cpu_seconds']} s of a core; the same documents removed: {kept[0].equals(kept[1])}"
    )
    found["machine"] = machine()
    return found


def machine() -> dict[str, Any]:
    """Return where this runs."""
    return {"processor": platform.machine(), "cores": os.cpu_count(), "pyspark": version("pyspark")}


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "price": price, "executors": executors, "growth": growth, "skew": skew, "ways": ways, "connect": connect,
}  # fmt: skip


def main() -> None:
    """Measure, print, and write what was measured beside what was known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--peer-documents", type=int, help="documents for the peers, if other than --documents")
    parser.add_argument(
        "--sizes", type=int, nargs="+", help="sizes of growth  [default: a tenth of --documents, and it]"
    )
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--timeout", type=float, default=3600, help="the most seconds for a peer")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    asked.sizes = asked.sizes or [asked.documents // 10, asked.documents]
    OUT.mkdir(parents=True, exist_ok=True)
    known = json.loads(asked.results.read_text()) if asked.results.exists() else {}
    warm(asked.master)
    for part in asked.parts:
        console.print(f"[bold]{part}[/bold]")
        known[part] = PARTS[part](asked)
        known["machine"] = machine()
        asked.results.write_text(json.dumps(known, indent=2) + "\n")


if __name__ == "__main__":
    main()
