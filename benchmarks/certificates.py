"""Does the certificate's 95 % interval hold the true recall? Many small runs whose true pairs are known.

python benchmarks/certificates.py                200 runs for each of three bandings
python benchmarks/certificates.py --runs 1000
"""

from __future__ import annotations

import argparse
import json
import random
from itertools import combinations
from pathlib import Path

from rich.console import Console
from rich.table import Table

from likewise import Sets, pairs
from runs import HERE

BANDINGS = [(5, 2), (3, 3), (2, 6)]
THRESHOLD = 0.8


def collection(seed: int, documents: int) -> tuple[list[list[int]], set[tuple[int, int]]]:
    """Sets in clusters of one to six, some of them copies, and all pairs with a similarity of 0.8 or more."""
    rng = random.Random(seed)
    lists: list[list[int]] = []
    true: set[tuple[int, int]] = set()
    base = 0
    while len(lists) < documents:
        members: list[list[int]] = []
        for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 6])):
            own = list(range(base, base + 40))
            for i in rng.sample(range(40), rng.choice([0, 1, 3, 4, 5, 6])):
                own[i] += 10**6 + 100 * len(members)
            members.append(own)
        first, base = len(lists), base + 1000
        for (i, a), (j, b) in combinations(enumerate(members), 2):
            if len(set(a) & set(b)) / len(set(a) | set(b)) >= THRESHOLD:
                true.add((first + i, first + j))
        lists += members
    return lists, true


def main() -> None:
    """Measure, print, write as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "certificates.json")
    asked = parser.parse_args()
    table = Table(
        "banding", "runs", "mean recall", "covered", "mean width", title=f"{asked.sample} of {asked.documents}"
    )
    results = []
    for bands, rows in BANDINGS:
        covered, recalls, widths = 0, 0.0, 0.0
        for seed in range(asked.runs):
            lists, true = collection(seed, asked.documents)
            sets = Sets.from_lists(lists)
            found = pairs(sets, threshold=THRESHOLD, bands=bands, rows=rows, seed=seed, certify=asked.sample)
            recall = len(found) / len(true)
            told = found.stats["certificate"]
            covered += told["low"] - 1e-12 <= recall <= told["high"] + 1e-12
            recalls += recall / asked.runs
            widths += (told["high"] - told["low"]) / asked.runs
        table.add_row(f"{bands} x {rows}", str(asked.runs), f"{recalls:.4f}", str(covered), f"{widths:.4f}")
        results.append({"bands": bands, "rows": rows, "runs": asked.runs, "recall": recalls, "covered": covered})
    Console(highlight=False).print(table)
    asked.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
