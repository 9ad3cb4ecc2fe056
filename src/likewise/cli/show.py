"""What the user sees: progress on stderr, a few lines at the end, JSON for machines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

QUIET_SECONDS = 1.0
STAGES = {
    "read": "reading",
    "identical": "finding identical items",
    "tune": "measuring a sample",
    "sketch": "sketching",
    "candidates": "pairing buckets",
    "verify": "verifying pairs",
    "cluster": "choosing keepers",
    "tables": "making tables",
    "write": "writing",
}


@contextmanager
def progress() -> Iterator[Any]:
    """Yield an observer that draws a bar for each stage once a run takes longer than a second; quiet if no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = [
        TextColumn("{task.description:<24}"),
        BarColumn(30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
    ]
    bars = Progress(*columns, console=Console(stderr=True), transient=True)
    tasks: dict[str, Any] = {}
    begun = time.monotonic()

    def observe(stage: str, done: int, total: int) -> None:
        if time.monotonic() - begun < QUIET_SECONDS:
            return
        if not bars.live.is_started:
            bars.start()
        if stage not in tasks:
            for other in tasks.values():
                bars.remove_task(other)
            tasks.clear()
            tasks[stage] = bars.add_task(STAGES.get(stage, stage), total=total or None)
        bars.update(tasks[stage], completed=done)

    try:
        yield observe
    finally:
        bars.stop()


def announce_compilation() -> None:
    """Say so when the kernels must be compiled, which happens once on a machine."""
    from likewise.kernels import is_compiled

    if not is_compiled():
        click.echo("compiling (first run only, some 20 seconds) …", err=True)


def size(amount: float) -> str:
    """Write a number of bytes for people.

    >>> size(503_316_480)
    '503 MB'
    """
    units = ["bytes", "kB", "MB", "GB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    unit = units[0]
    return f"{amount:,.0f} {unit}" if amount >= 100 or unit == "bytes" else f"{amount:.1f} {unit}"


def count(number: int, noun: str) -> str:
    """Write a number and its noun.

    >>> count(1, "pair"), count(2000, "pair")
    ('1 pair', '2,000 pairs')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def opening(stats: dict[str, Any]) -> Iterator[str]:
    """Tell what was read and how it was searched."""
    counts = stats["counts"]
    amount = f", {size(counts['bytes'])} of text" if "bytes" in counts else ""
    yield f"{count(counts.get('items', 0), 'document')}{amount}; {counts.get('different', 0):,} different"
    if counts["set_aside"]:
        yield f"{count(counts['set_aside'], 'row')} set aside as broken"
    if "banding" in stats:
        banding, threshold = stats["banding"], stats["parameters"]["threshold"]
        yield (
            f"{stats['parameters']['shingle'] or 'sets'}: {count(banding['bands'], 'band')} of "
            f"{count(banding['rows'], 'row')} find a pair at {threshold:g} with probability "
            f"{stats['predicted_recall']:.4f}; {counts['candidates']:,} candidates, {counts['verified']:,} verified"
        )
    if "hint" in stats:
        yield f"hint: {stats['hint']}"
    if "abridged" in stats:
        abridged = stats["abridged"]
        yield (
            f"{count(abridged['groups'], 'large group')} of copies ({abridged['items']:,} documents) "
            "listed as pairs with the first copy only"
        )


def outcome(stats: dict[str, Any]) -> str:
    """Tell what was kept and what was removed."""
    counts = stats["counts"]
    return (
        f"kept {counts['kept']:,}, removed {counts['removed']:,} ({counts['identical']:,} identical, "
        f"{counts['near']:,} near); {count(counts['clusters'], 'cluster')}, "
        f"the largest of {stats['largest_cluster']:,}"
    )


def closing(stats: dict[str, Any], where: str) -> str:
    """Tell what it cost and where the answer is."""
    seconds = sum(stats["seconds"].values())
    memory = f", peak memory {size(stats['peak_memory_bytes'])}" if stats["peak_memory_bytes"] else ""
    return f"{seconds:.1f} s{memory} → {where}"
