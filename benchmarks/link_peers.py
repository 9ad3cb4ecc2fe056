"""Record linkage beside its peers on collections that nobody configured them for: F1 and seconds.

    python benchmarks/link_peers.py --data FOLDER
    python benchmarks/link_peers.py --data FOLDER --only "febrl*;people500" --tools likewise,splink

No tool but dedupe gets labels, and none settings for a collection. splink and recordlinkage compare every column by the
kind of its values and block on every column that makes few enough pairs (`--way general` in peers/): what somebody does
who follows their documentation without knowing the data. TF-IDF and the best partner is what needs no method at all.
Auto-FuzzyJoin is for tasks of one column, and is given those; splink and recordlinkage are not, as they learn from how
columns agree with each other (splink refuses, and recordlinkage finds nothing). Each runs in a fresh process with an
environment of its own, from Parquet files to pairs in memory; a tool that takes longer than --timeout is ended.

dedupe learns from labels only, and gets what no other does: 100 matches and 100 other pairs of the sample that it draws
for its questions, or as many as it has, answered by the truth (peers/dedupe_run.py).

splink and TF-IDF give scores and leave the threshold to the user. "F1" is at 0.9 for splink and without a threshold
for TF-IDF; "best" is at the best of all thresholds, which a user without labels cannot know. Of likewise, "best" is
that of link.py: the same scores with the best threshold and the rule of the run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from statistics import mean

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from corpus import DATA
from link_scores import best_threshold, pairs, quality, scored_pairs
from record_sets import MADE, Collection, answered, febrl, from_csv, made
from runs import HERE, REQUIREMENTS, Unavailable, run

WAYS: dict[str, tuple[str, list[str]]] = {
    "likewise": ("link", ["--truth"]),
    "splink": ("splink", ["--way", "general"]),
    "recordlinkage": ("recordlinkage", ["--way", "general"]),
    "dedupe, 200 labels": ("dedupe", []),
    "TF-IDF, best partner": ("tfidf", []),
    "Auto-FuzzyJoin": ("autofj", []),
}
USUAL = {"splink": 0.9, "TF-IDF, best partner": 0.0}
"""Thresholds of the tools that leave it to the user."""

NOT_FOR = {True: ("splink", "recordlinkage", "dedupe"), False: ("autofj",)}
"""Tools that are not run on tasks of name joining, and on other collections."""

ONLY = "febrl*;people500;register;dblp-acm;abt-buy;amazon-google;restaurants, truth completed;names/*"
OUT = DATA / "out" / "link-peers"
console = Console(highlight=False, width=150)


@dataclass(frozen=True)
class Row:
    """One measurement; `failed` says why there is none."""

    collection: str
    tool: str
    size: str
    seconds: float | None = None
    peak_mb: float | None = None
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    best_f1: float | None = None
    best_threshold: float | None = None
    failed: str | None = None


def measured(collection: Collection, way: str, threads: int, timeout: float) -> Row:
    """Run a tool once, and compare what it found with the truth."""
    tool, options = WAYS[way]
    out = OUT / collection.folder.name / tool
    try:
        told = run(tool, collection.folder, out, [*options, "--processes", str(threads)], timeout)
    except Unavailable as reason:
        return Row(collection.name, way, collection.size, failed=str(reason))
    found = pq.read_table(out / "pairs.parquet")
    best = None
    if way == "likewise":
        stats = told.more["stats"]
        assert isinstance(stats, dict)
        scored = scored_pairs(pq.read_table(out / "scored.parquet"), found, collection.true_pairs(), collection.two)
        best, _ = best_threshold(scored, stats["details"]["rule"])
    elif way in USUAL:
        best = pairs(scored_pairs(found, found, collection.true_pairs(), collection.two))
        found = found.filter(pc.greater_equal(found["score"], pa.scalar(USUAL[way])))
    precision, recall, f1 = quality(answered(found, collection, out), collection.truth())
    return Row(
        collection.name, way, collection.size, told.total, told.peak_mb, precision, recall, f1,
        None if best is None else best.f1, None if best is None else best.threshold,
    )  # fmt: skip


def show(rows: list[Row]) -> None:
    """Print the table; tasks of name joining are one row, with means over those that every tool finished."""
    table = Table("collection", "records", "tool", "precision", "recall", "F1", "best", "seconds", "peak MB")
    for row in (row for row in rows if not row.collection.startswith("names/")):
        _add(table, row)
    joins = [row for row in rows if row.collection.startswith("names/")]
    for way in WAYS:
        mine = [row for row in joins if row.tool == way and row.f1 is not None]
        if mine:
            table.add_row(f"names, {len(mine)} tasks", "", way, *_means(mine))
    done = {row.collection for row in joins if row.tool == "Auto-FuzzyJoin" and row.f1 is not None}
    for way in WAYS if done else ():
        mine = [row for row in joins if row.tool == way and row.collection in done and row.f1 is not None]
        if mine:
            table.add_row(f"those that Auto-FuzzyJoin finished, {len(mine)}", "", way, *_means(mine))
    console.print(table)


def _add(table: Table, row: Row) -> None:
    if row.failed:
        table.add_row(row.collection, row.size, row.tool, row.failed)
    else:
        table.add_row(row.collection, row.size, row.tool, *_means([row]))


def _means(rows: list[Row]) -> list[str]:
    columns = [[getattr(row, name) for row in rows] for name in ("precision", "recall", "f1", "best_f1")]
    cells = ["" if None in column else f"{mean(column):.3f}" for column in columns]
    seconds, memory = (mean(getattr(row, name) for row in rows) for name in ("seconds", "peak_mb"))
    return [*cells, f"{seconds:.1f}", f"{memory:,.0f}"]


def main() -> None:
    """Measure all, print the table, write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of collections as CSV")
    parser.add_argument("--only", default=ONLY, help="collections by name (%(default)s)")
    parser.add_argument("--tools", default=",".join(tool for tool, _ in WAYS.values()), help="(%(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that a tool may take (%(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "link-peers.json")
    asked = parser.parse_args()
    found = from_csv(asked.data) if asked.data else []
    try:
        found += febrl()
    except Unavailable as reason:
        console.print(f"FEBRL 1 to 4 are left out: {reason}")
    found += [made(name) for name in MADE]
    chosen = [one for one in found if any(fnmatchcase(one.name, some) for some in asked.only.split(";"))]
    tools = ["link" if tool == "likewise" else tool for tool in asked.tools.split(",")]
    before = json.loads(asked.out.read_text())["table"] if asked.out.exists() else []
    rows = {(one["collection"], one["tool"]): Row(**one) for one in before}
    for collection in sorted(chosen, key=lambda one: one.records):
        for way, (tool, _) in WAYS.items():
            if tool not in tools or tool in NOT_FOR[collection.name.startswith("names/")]:
                continue
            row = measured(collection, way, asked.threads, asked.timeout)
            rows[collection.name, way] = row
            console.print(f"{collection.name}, {way}: {row.failed or f'F1 {row.f1:.4f}, {row.seconds:.1f} s'}")
            machine = {"cores": os.cpu_count(), "architecture": platform.machine()}
            pins = {tool: REQUIREMENTS[tool] for tool, _ in WAYS.values() if tool in REQUIREMENTS}
            whole = {"machine": machine, "versions": {"likewise": version("likewise"), "peers": pins}}
            whole["table"] = [asdict(one) for one in rows.values()]
            asked.out.write_text(json.dumps(whole, indent=1) + "\n")
    show(list(rows.values()))
    shutil.rmtree(OUT, ignore_errors=True)


if __name__ == "__main__":
    main()
