"""What bounds the F1 on the register? A classifier that has seen all answers, with what a person would look at.

    python benchmarks/register_ceiling.py

Of the pairs of records that agree in two of given name, surname, year, month and day (names in any order), nearly all
true pairs among them, logistic regression learns from the truth itself: equal, one or two edits apart, otherwise
different or missing for every column, names and month and day exchanged, and how common equal names are. Its F1 at the
best threshold is near the most that the columns can tell: different persons have equal names and nearly equal dates.
Nothing here is code of likewise.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np

import register
from record_sets import pairs_of

DATE = ("birth_year", "birth_month", "birth_day")
BLOCKS = tuple(combinations(("given1", "surname1", *DATE), 2))
RIDGE = 0.05
"""Strength of the penalty, which keeps weights finite where a level occurs with matches only."""

ROUNDS = 25
Record = dict[str, str | None]


def edits(one: str, other: str) -> int:
    """Insertions, deletions, replacements and exchanges of neighbours; 3 where lengths differ by as much."""
    if abs(len(one) - len(other)) > 2:
        return 3
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, beside in enumerate(other, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != beside))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == beside:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def level(one: str | None, other: str | None) -> str:
    """How alike two values are."""
    if one is None or other is None:
        return "missing"
    return ("equal", "one edit", "two edits", "different")[min(3, edits(one, other))]


def levels(one: Record, other: Record) -> dict[str, str]:
    """How alike two records are, by column; exchanged values count for both columns."""
    found = {name: level(one[name], other[name]) for name in register.FIELDS}
    close = ("equal", "one edit")
    if level(one["given1"], other["surname1"]) in close and level(one["surname1"], other["given1"]) in close:
        found["given1"] = found["surname1"] = "exchanged"
    elif found["given1"] == "different" and "equal" in (
        level(one["given1"], other["given2"]),
        level(one["given2"], other["given1"]),
    ):
        found["given1"] = "exchanged with given2"
    month, day = one["birth_month"], one["birth_day"]
    if month and day and month != day and (day, month) == (other["birth_month"], other["birth_day"]):
        found["birth_month"] = found["birth_day"] = "exchanged"
    return found


def blocked(rows: list[Record]) -> list[tuple[int, int]]:
    """The pairs of rows that agree in two columns."""
    found: set[tuple[int, int]] = set()
    for block in BLOCKS:
        members: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            values = [value for value in (row[name] for name in block) if value is not None]
            if len(values) == 2 and block != DATE[1:]:
                key = tuple(sorted(values)) if block == ("given1", "surname1") else tuple(values)
                members[key].append(place)
        for some in members.values():
            found.update(combinations(some, 2))
    return sorted(found)


def main() -> None:
    """Print the F1 of the classifier."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=17)
    asked = parser.parse_args()
    records, truth = register.make(asked.records, asked.seed)
    rows: list[Record] = records.drop_columns(["id"]).to_pylist()
    true = pairs_of(truth, True)
    pairs = blocked(rows)
    common = {name: Counter(row[name] for row in rows) for name in ("given1", "surname1")}
    numbers: dict[tuple[str, str], int] = {}
    places: list[list[int]] = []
    rare = np.zeros((len(pairs), 2))
    for place, (one, other) in enumerate(pairs):
        found = levels(rows[one], rows[other])
        places.append([numbers.setdefault(item, len(numbers)) for item in found.items()])
        for side, (name, counts) in enumerate(common.items()):
            if found[name] == "equal":
                rare[place, side] = math.log(counts[rows[one][name]])
    table = np.zeros((len(pairs), len(numbers)))
    table[np.arange(len(pairs))[:, None], np.array(places)] = 1
    table = np.hstack([table, rare, np.ones((len(pairs), 1))])
    answer = np.array([(str(one), str(other)) in true for one, other in pairs], float)
    weights = np.zeros(table.shape[1])
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (answer - chance) - RIDGE * weights
        curve = (table * (chance * (1 - chance))[:, None]).T @ table + RIDGE * np.eye(len(weights))
        weights += np.clip(np.linalg.solve(curve, slope), -3, 3)
    order = np.argsort(-(table @ weights), kind="stable")
    right = np.cumsum(answer[order])
    f1 = 2 * right / (np.arange(1, len(order) + 1) + len(true))
    best = int(np.argmax(f1))
    print(f"{len(pairs):,} pairs compared, {int(answer.sum()):,} of {len(true):,} true ones among them")
    print(f"F1 {f1[best]:.4f}, precision {right[best] / (best + 1):.4f}, recall {right[best] / len(true):.4f}")


if __name__ == "__main__":
    main()
