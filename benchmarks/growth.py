"""Does the time grow with the number of documents, or with its square? likewise on the inputs that tempt it most.

    python benchmarks/growth.py                          ten thousand, a hundred thousand and a million documents
    python benchmarks/growth.py --sizes 1000,10000

Template: a share of every document is the same text. With half of it two documents have a similarity of 0.32, with
three quarters 0.58, with 85 % 0.73, and with 92 % 0.84, so that at the threshold of 0.8 every pair is similar.
Identical: all documents are the same. An exponent of 1 is linear.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from math import log
from pathlib import Path

from rich.console import Console
from rich.table import Table

from corpus import DATA, identical, template
from runs import HERE, run

KINDS: dict[str, Callable[[int], Path]] = {
    "half template": template,
    "three quarters template": partial(template, share=75),
    "85 % template": partial(template, share=85),
    "92 % template": partial(template, share=92),
    "identical": identical,
}


def exponent(sizes: tuple[int, int], values: tuple[float, float]) -> float:
    """The x of values ~ sizes^x."""
    return log(values[1] / values[0]) / log(sizes[1] / sizes[0])


def main() -> None:
    """Measure, print, write as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "growth.json")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")]
    table = Table("corpus", "documents", "seconds", "exponent", "peak MB", "exponent", "pairs", "removed", "recall")
    for column in table.columns[1:]:
        column.justify = "right"
    results: list[dict[str, object]] = []
    for kind, make in KINDS.items():
        before: tuple[int, float, float] | None = None
        for size in sizes:
            result = run("likewise", make(size), DATA / "out" / "growth")
            stats = result.more["stats"]
            counts: dict[str, int] = stats["counts"] if isinstance(stats, dict) else {}
            powers = ["", ""]
            if before:
                last, seconds, peak = before
                powers = [
                    f"{exponent((last, size), (seconds, result.total)):.2f}",
                    f"{exponent((last, size), (peak, result.peak_mb)):.2f}",
                ]
            before = size, result.total, result.peak_mb
            certificate = stats.get("certificate") if isinstance(stats, dict) else None
            certified = f"{certificate['recall']:.4f}" if certificate and certificate["recall"] is not None else ""
            cells = f"{result.total:.2f}", powers[0], f"{result.peak_mb:,.0f}", powers[1]
            table.add_row(
                kind, f"{size:,}", *cells, f"{counts.get('pairs', 0):,}", f"{counts.get('removed', 0):,}", certified
            )
            results.append(
                {"corpus": kind, "documents": size, "seconds": result.total, "peak_mb": result.peak_mb, **counts}
            )
    Console(highlight=False, width=130).print(table)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
