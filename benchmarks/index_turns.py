"""The rates of queries of the persistent index and of its peers, asked in turns: all indexes are there together.

    python benchmarks/index_turns.py                                          a million documents
    python benchmarks/index_turns.py --items 100000 --peers gaoya --turns 21

On a machine whose speed changes from one minute to the next, what was measured minutes apart cannot be divided. Here
every tool is asked all queries and then a thousand of them one by one, one tool after the other, again and again; a
ratio is that of two tools in the same turn, and the median over the turns is reported with the least and the largest.
Corpus, queries, bands and rows are those of index.py, which measures build time, memory and recall.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from index import PEERS, chosen, command, prepared, setting
from runs import HERE, Unavailable

RESULTS = HERE / "results" / "index-turns.json"
IN_MEMORY = ("gaoya", "rensa", "datasketch")
FACTS = ("batch_per_second", "single_per_second", "p50_us")

console = Console(highlight=False, width=150)


class Asked:
    """A tool with its index, which answers when it is its turn."""

    def __init__(self, tool: str, words: list[str]) -> None:
        self.tool = tool
        self.turns: list[dict[str, float]] = []
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        if self._line() != "ready":
            raise Unavailable(f"{tool} could not be run; index.py says why")

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def turn(self) -> None:
        """Ask once."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self.turns.append(json.loads(self._line()))

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def middle(values: list[float]) -> dict[str, float]:
    """The median, the least and the largest."""
    return {"median": statistics.median(values), "least": min(values), "largest": max(values)}


def compared(tool: Asked, mine: Asked) -> dict[str, Any]:
    """The rates of a tool, and by how many times those of likewise are as high in the same turn."""
    row: dict[str, Any] = {"tool": tool.tool}
    for fact in FACTS:
        row[fact] = statistics.median(turn[fact] for turn in tool.turns)
    for fact in ("batch", "single"):
        name = f"{fact}_per_second"
        row[f"{fact}_ratio"] = middle([a[name] / b[name] for a, b in zip(mine.turns, tool.turns, strict=True)])
    return row


def shown(ratio: dict[str, float]) -> str:
    """A ratio and its range."""
    return f"{ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['largest']:.2f})"


def main() -> None:
    """Build all indexes, ask them in turns, print a table, and write results/index-turns.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--peers", type=chosen, default=list(IN_MEMORY), help=f"some of {','.join(IN_MEMORY)}")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--recall", type=float, default=0.99)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if others := [name for name in asked.peers if name not in IN_MEMORY]:
        parser.error(f"{others[0]} is none of {', '.join(IN_MEMORY)}")
    import likewise

    banding = likewise.tune(asked.threshold, asked.recall, items=asked.items)
    corpus, queries, _ = prepared(asked.items)
    console.print(f"{asked.items:,} documents, {banding}, {asked.turns} turns")
    options = ["--threshold", str(asked.threshold), "--bands", str(banding.b), "--rows", str(banding.r), "--turns"]
    tools: list[Asked] = []
    with ExitStack() as running:
        for name in ("likewise", *asked.peers):
            tools.append(Asked(name, command(name, corpus, queries, asked.items, options)))
            running.callback(tools[-1].close)
            console.print(f"  {name} is ready")
        for _ in range(asked.turns):
            for tool in tools:
                tool.turn()
    rows = [compared(tool, tools[0]) for tool in tools]
    table = Table("tool", "batch q/s", "single q/s", "p50 µs", "likewise is faster in batches", "one by one")
    for row in rows:
        rates = (f"{row[fact]:,.0f}" for fact in ("batch_per_second", "single_per_second", "p50_us"))
        table.add_row(row["tool"], *rates, shown(row["batch_ratio"]), shown(row["single_ratio"]))
    console.print(table)
    about = {
        **setting({name: PEERS[name] for name in asked.peers}),
        "date": time.strftime("%Y-%m-%d"),
        "items": asked.items,
        "turns": asked.turns,
    }
    asked.results.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    console.print(f"→ {asked.results}")


if __name__ == "__main__":
    main()
