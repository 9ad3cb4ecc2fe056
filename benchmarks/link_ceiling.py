"""What bounds the F1 on two tables? What true pairs share, and what an oracle and a classifier with all answers reach.

    python benchmarks/link_ceiling.py --data FOLDER                       films of two databases
    python benchmarks/link_ceiling.py --data FOLDER --set amazon-google

From the truth: the part of the true pairs that share a word in any column, in a column of the same content, and a rare
one; then what becomes of them in `likewise link`: the part that are candidates, the F1 of the run, that of its best
threshold, and that of an oracle that takes all true candidates and no others.

The classifier, of which nothing is code of likewise, compares pairs that share a rare word. For columns of the same
content, and for all words of the records, it has the part of the rarity of the words that both share; logistic
regression learns the weights from all answers, and pairs are then taken one to one, best first, down to the best
threshold. It is fitted to the answers that it is measured by, and yet no bound: it sees whole words only, and of
the true pairs only those that share a word of few pairs. It tells whether labels alone would make up the difference.
"""

from __future__ import annotations

import argparse
import re
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa

from link_scores import Scored, best_threshold, one_to_one, quality, scored_pairs
from record_sets import Collection, answer, from_csv

RARE = 100
"""Records of either table that have a rare word, at most."""

PAIRS_OF_A_WORD = 300
"""Pairs of records, at most, that a word makes for the classifier."""

ROUNDS, RIDGE = 25, 1.0
WORD = re.compile(r"[^\W_]+")
Words = list[frozenset[str]]
Columns = dict[str, Words]


def words_of(table: pa.Table) -> Columns:
    """The words of every value, by column, without case and accents."""
    found = {}
    for name in table.column_names:
        if name != "id":
            folded = (unicodedata.normalize("NFKD", value or "").lower() for value in table[name].to_pylist())
            plain = ("".join(c for c in value if not unicodedata.combining(c)) for value in folded)
            found[name] = [frozenset(WORD.findall(value)) for value in plain]
    return found


def all_words(columns: Columns) -> Words:
    """The words of each record in any column."""
    return [frozenset().union(*row) for row in zip(*columns.values(), strict=True)]


def shares(a: Columns, b: Columns, truth: list[tuple[int, int]], alike: list[tuple[str, str]]) -> None:
    """Print how much true pairs share."""
    whole = all_words(a), all_words(b)
    counts = [Counter(word for row in side for word in row) for side in whole]
    rare = {word for word in counts[0] if max(counts[0][word], counts[1][word]) <= RARE}
    total = len(truth)

    def say(what: str, part: int) -> None:
        print(f"{what:<66} {part:>7,} {part / total:.3f} {2 * part / (total + part):.3f}")

    print(f"{'of ' + format(total, ',') + ' true pairs':<66} {'pairs':>7} part  F1 of an oracle with these")
    say("share a word in any column", sum(bool(whole[0][x] & whole[1][y]) for x, y in truth))
    say(
        "share a word in columns of the same content",
        sum(any(a[one][x] & b[other][y] for one, other in alike) for x, y in truth),
    )
    say(
        f"share a word there that at most {RARE} records have",
        sum(any(a[one][x] & b[other][y] & rare for one, other in alike) for x, y in truth),
    )
    for one, other in alike:
        there = [(x, y) for x, y in truth if a[one][x] and b[other][y]]
        part = sum(bool(a[one][x] & b[other][y]) for x, y in there)
        print(f"  {one}/{other}: both have a value in {len(there) / total:.3f}, share a word in {part / total:.3f}")


def compared(a: Columns, b: Columns, alike: list[tuple[str, str]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs that share a word of few pairs, and what both share, as a part of its rarity: in columns, and in all."""
    whole = all_words(a), all_words(b)
    held: list[dict[str, list[int]]] = []
    for side in whole:
        having: dict[str, list[int]] = defaultdict(list)
        for row, words in enumerate(side):
            for word in words:
                having[word].append(row)
        held.append(having)
    keys = []
    for word, rows in held[0].items():
        others = held[1].get(word, [])
        if 0 < len(rows) * len(others) <= PAIRS_OF_A_WORD:
            keys.append((np.array(rows)[:, None] * len(whole[1]) + np.array(others)).ravel())
    pairs = np.unique(np.concatenate(keys))
    left, right = pairs // len(whole[1]), pairs % len(whole[1])
    size = len(whole[0]) + len(whole[1])
    worth = {w: np.log(size / (len(held[0].get(w, [])) + len(held[1].get(w, [])))) for w in {*held[0], *held[1]}}
    columns = []
    for one, other in [*((a[x], b[y]) for x, y in alike), whole]:
        of = [[sum(worth[w] for w in words) for words in side] for side in (one, other)]
        value = np.zeros(len(pairs))
        for place, (x, y) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            both = one[x] & other[y]
            if both:
                value[place] = 2 * sum(worth[w] for w in both) / (of[0][x] + of[1][y])
        missing = np.array([not w for w in one])[left] | np.array([not w for w in other])[right]
        columns += [value, value**2, (value == 1).astype(float), missing.astype(float)]
    return left, right, np.column_stack([*columns, np.ones(len(pairs))])


def fitted(features: np.ndarray, answer: np.ndarray) -> np.ndarray:
    """The log-odds of logistic regression that learns from the answers."""
    weights = np.zeros(features.shape[1])
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        slope = features.T @ (answer - chance) - RIDGE * weights
        curve = (features * (chance * (1 - chance))[:, None]).T @ features + RIDGE * np.eye(len(weights))
        weights += np.clip(np.linalg.solve(curve, slope), -3, 3)
    scores: np.ndarray = features @ weights
    return scores


def linked(collection: Collection) -> None:
    """Print what likewise makes of the tables."""
    from likewise import link

    found = link(*collection.tables(), id="id", truth=collection.true_pairs())
    details = found.stats["details"]
    scored = scored_pairs(found.scored, found.matches, collection.true_pairs(), collection.two)
    best, _ = best_threshold(scored, details["rule"])
    part = details["truth"]["completeness"]
    f1 = quality(answer(found.matches, found.clusters), collection.truth())
    print(f"likewise: precision {f1[0]:.3f}, recall {f1[1]:.3f}, F1 {f1[2]:.3f}; best threshold {best.f1:.3f}")
    print(
        f"  {part:.3f} of the true pairs are candidates; an oracle with these has an F1 of {2 * part / (1 + part):.3f}"
    )


def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of collections as CSV")
    parser.add_argument("--set", default="movies", help="a collection of two tables (%(default)s)")
    parser.add_argument(
        "--also", default="starring=actor name;writer=director name", help="columns of the same content (%(default)s)"
    )
    asked = parser.parse_args()
    collection = next(one for one in from_csv(asked.data) if one.name == asked.set)
    tables = collection.tables()
    a, b = map(words_of, tables)
    alike = [(name, name) for name in a if name in b]
    alike += [(x, y) for x, y in (pair.split("=") for pair in asked.also.split(";")) if x in a and y in b]
    places = [{row: place for place, row in enumerate(table["id"].to_pylist())} for table in tables]
    truth = [(places[0][x], places[1][y]) for x, y in sorted(collection.truth())]
    shares(a, b, truth, alike)
    linked(collection)
    left, right, features = compared(a, b, alike)
    true = {x * tables[1].num_rows + y for x, y in truth}
    answer = np.isin(left * tables[1].num_rows + right, list(true))
    scores = fitted(features, answer.astype(float))
    order = np.argsort(-scores, kind="stable")
    none = np.zeros(0, np.int64)
    best = one_to_one(Scored(left[order], right[order], scores[order], answer[order], none, len(truth), True))
    print(f"classifier: {len(left):,} pairs, {int(answer.sum()):,} of them true; F1 {best.f1:.3f}, one to one")


if __name__ == "__main__":
    main()
