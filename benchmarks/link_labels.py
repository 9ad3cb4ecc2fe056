"""Record linkage with a few labels: the F1 of `likewise link` after 10, 30 and 100 answers.

    python benchmarks/link_labels.py --data FOLDER
    python benchmarks/link_labels.py --data FOLDER --only "amazon-google;names/*" --answers 30

The collections are those of link.py: CSV files, and generated persons (register.py) and CDs (discs.py). Who answers
knows the truth. For each collection: the F1 without labels, after so many answers, and the F1 that the best threshold
would reach without labels, with the rule of the run (link_scores.py). F1 is over all pairs, those that were asked about
included, as that is what a user gets; "unasked" leaves them out, of the matches and of the truth. "stated" is the F1
that the run estimates from the labels, with its interval; it does not count matches that were no candidates or that
have a better rival, and is too high where there are many.

Constants of the method (labels.py, training.py) were chosen by looking at these collections.
"""

from __future__ import annotations

import argparse
import json
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from likewise import link
from link_scores import best_threshold, quality, scored_pairs
from record_sets import MADE, Collection, Pairs, answer, from_csv, made
from runs import HERE

ANSWERS = "10,30,100"
NEAR = 0.01
"""An F1 that is at most this much below that of the best threshold has reached it."""

console = Console(highlight=False, width=150)


class Oracle:
    """Answers every question by the truth."""

    def __init__(self, truth: Pairs, two: bool) -> None:
        self._truth, self._two = truth, two
        self.asked: Pairs = set()

    def __call__(self, question: Any) -> bool:
        """Say whether the two records are one."""
        one, other = str(question.id_a), str(question.id_b)
        pair = (one, other) if self._two else (min(one, other), max(one, other))
        assert pair not in self.asked, "a question is asked once"
        self.asked.add(pair)
        return pair in self._truth


def measured(collection: Collection, answers: list[int], seed: int) -> dict[str, Any]:
    """Link a collection without labels, and with more and more of them."""
    tables, truth = collection.tables(), collection.truth()
    found = link(*tables, seed=seed)
    first = answer(found.matches, found.clusters)
    scored = scored_pairs(found.scored, found.matches, collection.true_pairs(), collection.two)
    best, _ = best_threshold(scored, found.stats["details"]["rule"])
    row: dict[str, Any] = {"collection": collection.name, "size": collection.size, "seed": seed}
    row |= {"without": quality(first, truth)[2], "best_f1": best.f1, "answers": {}}
    for most in answers:
        oracle = Oracle(truth, collection.two)
        after = link(*tables, ask=oracle, questions=most, seed=seed)
        pairs = answer(after.matches, after.clusters)
        details = after.stats["details"]
        told = details["labels"]
        row["answers"][str(most)] = {
            "asked": len(oracle.asked),
            "matching": told["matching"],
            "f1": quality(pairs, truth)[2],
            "unasked_f1": quality(pairs - oracle.asked, truth - oracle.asked)[2],
            "unasked_without": quality(first - oracle.asked, truth - oracle.asked)[2],
            "stated": told.get("after"),
            "rule": details["rule"],
            "seconds_labelling": after.stats["seconds"]["label"],
        }
    return row


def show(rows: list[dict[str, Any]], answers: list[int]) -> None:
    """Print a table of all collections, and how many reach the best threshold."""
    table = Table("collection", "records", "without", *(f"{most} labels" for most in answers), "best threshold")
    for most in answers:
        table.add_column(f"unasked, {most}")
    table.add_column(f"stated, {answers[-1]}")
    for row in rows:
        cells = [f"{row['answers'][str(most)]['f1']:.3f}" for most in answers]
        alone = [f"{row['answers'][str(most)]['unasked_f1']:.3f}" for most in answers]
        told = row["answers"][str(answers[-1])]["stated"]
        stated = f"{told['f1']:.2f} ({told['f1_low']:.2f}–{told['f1_high']:.2f})" if told else ""
        best = f"{row['best_f1']:.3f}"
        table.add_row(row["collection"], row["size"], f"{row['without']:.3f}", *cells, best, *alone, stated)
    console.print(table)
    console.print(f"means: without {mean(r['without'] for r in rows):.3f}, best {mean(r['best_f1'] for r in rows):.3f}")
    for most in answers:
        f1 = [row["answers"][str(most)]["f1"] for row in rows]
        reached = sum(one >= row["best_f1"] - NEAR for one, row in zip(f1, rows, strict=True))
        alone = mean(row["answers"][str(most)]["unasked_f1"] for row in rows)
        console.print(
            f"{most} labels: mean F1 {mean(f1):.3f} (unasked pairs {alone:.3f}); within {NEAR} of the best threshold, "
            f"or above it, in {reached} of {len(rows)} collections"
        )


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Write what is known so far, beside the rows of other collections from earlier runs."""
    measured = {(row["collection"], row["seed"]) for row in rows}
    before = json.loads(out.read_text())["table"] if out.exists() else []
    kept = [row for row in before if (row["collection"], row["seed"]) not in measured]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"table": kept + rows}, indent=2) + "\n")


def main() -> None:
    """Measure all, print the table, write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of collections as CSV")
    parser.add_argument("--only", default="*", help="collections by name, such as amazon-google;names/*")
    parser.add_argument("--answers", default=ANSWERS, help="numbers of labels (%(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each, with other questions (%(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "link_labels.json")
    asked = parser.parse_args()
    answers = [int(word) for word in asked.answers.split(",")]
    found = (from_csv(asked.data) if asked.data else []) + [made(name) for name in MADE]
    chosen = [one for one in found if any(fnmatchcase(one.name, pattern) for pattern in asked.only.split(";"))]
    rows = []
    for collection in chosen:
        for seed in range(1, asked.seeds + 1):
            rows.append(measured(collection, answers, seed))
            after = ", ".join(f"{most}: {told['f1']:.3f}" for most, told in rows[-1]["answers"].items())
            console.print(f"{collection.name}: without {rows[-1]['without']:.3f}; {after}")
            write(asked.out, rows)
    show(rows, answers)


if __name__ == "__main__":
    main()
