"""The exact truth: all pairs of documents whose sets of word k-grams have Jaccard similarity >= threshold.

    python benchmarks/truth.py CORPUS [--threshold 0.8] [--k 5] [--words words]

Nothing here is shared with likewise: the words come from Python's `re`, a shingle is a 64-bit hash of k word
numbers, and the pairs come from an exact join with a prefix filter. Documents with the same set are collapsed first
and the pairs are those of distinct sets. A document shorter than k words is its own single shingle; a document
without words has no set. `--words` chooses between our words and those of the peers with rules of their own.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from numba import njit

DATA = Path(__file__).parent / ".data"
Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_ASCII_BREAKS = r"""\t\n\x0c\r !-/:-@\[-`{-~"""
WORDS: dict[str, Callable[[str], list[str]]] = {
    "words": lambda text: re.findall(r"\w+", text.lower()),
    "gaoya": lambda text: re.findall(f"[^{_ASCII_BREAKS}]+", text.lower()),
    "text-dedup": lambda text: re.split(r"\W", text.lower()),
}


@dataclass(frozen=True)
class Truth:
    """`sets[row]` is the number of a document's set, -1 without words; a pair is two sets, first < second."""

    sets: Integers
    first: Integers
    second: Integers
    similarity: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ragged:
    """Sets of integers, one after the other."""

    values: Any
    ends: Integers

    def __len__(self) -> int:
        """How many sets."""
        return len(self.ends) - 1

    def __getitem__(self, number: int) -> Any:
        """One of them."""
        return self.values[self.ends[number] : self.ends[number + 1]]


def truth(corpus: Path, threshold: float = 0.8, k: int = 5, words: str = "words", text: str = "text") -> Truth:
    """The truth about a corpus, remembered beside it in the data folder."""
    name = f"truth-{corpus.stem}-{corpus.stat().st_size}-{words}-{k}-{threshold:g}"
    pairs_file, sets_file = DATA / f"{name}.pairs.parquet", DATA / f"{name}.sets.parquet"
    if not (pairs_file.exists() and sets_file.exists()):
        found = compute(_texts(corpus, text), threshold, k, WORDS[words])
        DATA.mkdir(parents=True, exist_ok=True)
        columns = {"first": found.first, "second": found.second, "similarity": found.similarity}
        pq.write_table(pa.table(columns), pairs_file)
        pq.write_table(pa.table({"set": found.sets}), sets_file)
    pairs = pq.read_table(pairs_file)
    sets = pq.read_table(sets_file).column("set").to_numpy()
    return Truth(sets, *(pairs.column(name).to_numpy() for name in ("first", "second", "similarity")))


def compute(texts: Iterator[str], threshold: float, k: int, words: Callable[[str], list[str]]) -> Truth:
    """The truth about texts."""
    everything = shingle_sets(texts, k, words)
    sets, distinct = collapse(everything)
    del everything
    ranked, order = rank(distinct)
    del distinct
    first, second, similarity = join(ranked.values, ranked.ends, threshold)
    one, other = order[first], order[second]
    first, second = np.minimum(one, other), np.maximum(one, other)
    by_pair = np.lexsort((second, first))
    return Truth(sets, first[by_pair], second[by_pair], similarity[by_pair])


def shingle_sets(texts: Iterator[str], k: int, words: Callable[[str], list[str]]) -> Ragged:
    """The sorted shingle hashes of each text."""
    numbers: dict[str, int] = {}
    parts: list[Hashes] = []
    ends = [0]
    for text in texts:
        found = [numbers.setdefault(word, len(numbers)) for word in words(text)]
        parts.append(np.unique(_shingles(np.array(found, dtype=np.uint64), k)))
        ends.append(ends[-1] + len(parts[-1]))
    return Ragged(np.concatenate(parts), np.array(ends))


def _shingles(words: Hashes, k: int) -> Hashes:
    """Hashes of k word numbers in a row: mixed, one word after the other, by the finaliser of SplitMix64."""
    width = min(k, len(words))
    count = len(words) - width + 1 if width else 0
    state = np.full(count, width, dtype=np.uint64)
    for start in range(width):
        state = _mix(state + words[start : start + count])
    return state


def _mix(state: Hashes) -> Hashes:
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def collapse(everything: Ragged) -> tuple[Integers, Ragged]:
    """The number of each document's set, by first appearance, and the distinct sets."""
    numbers: dict[bytes, int] = {}
    sets = np.full(len(everything), -1, dtype=np.int64)
    rows: list[int] = []
    for row in range(len(everything)):
        one = everything[row]
        if len(one):
            sets[row] = numbers.setdefault(one.tobytes(), len(rows))
            if sets[row] == len(rows):
                rows.append(row)
    kept = [everything[row] for row in rows]
    ends = np.concatenate(([0], np.cumsum([len(one) for one in kept], dtype=np.int64)))
    return sets, Ragged(np.concatenate(kept) if kept else everything.values[:0], ends)


def rank(sets: Ragged) -> tuple[Ragged, Integers]:
    """The sets from small to large, their values renumbered from rare to frequent and sorted; the old numbers."""
    _, inverse, counts = np.unique(sets.values, return_inverse=True, return_counts=True)
    place = np.empty(len(counts), dtype=np.int32)
    place[np.argsort(counts, kind="stable")] = np.arange(len(counts), dtype=np.int32)
    values = place[inverse]
    del inverse
    sizes = np.diff(sets.ends)
    order = np.argsort(sizes, kind="stable")
    ends = np.concatenate(([0], np.cumsum(sizes[order])))
    return Ragged(_reorder(values, sets.ends, order, ends), ends), order


@njit(cache=True)
def _reorder(values: Any, starts: Any, order: Any, ends: Any) -> Any:
    out = np.empty_like(values)
    for place in range(len(order)):
        old = order[place]
        out[ends[place] : ends[place + 1]] = np.sort(values[starts[old] : starts[old + 1]])
    return out


@njit(cache=True)
def join(values: Any, ends: Any, threshold: float) -> tuple[Any, Any, Any]:
    """All pairs of sets, sorted by size, with Jaccard similarity >= threshold: prefix and length filters.

    Two such sets of sizes a >= b share at least t·a values, so they share one among the first a - ceil(t·a) + 1
    of the larger and the first b - ceil(t·b) + 1 of the smaller. Each set asks the lists of its prefix, then
    joins them.
    """
    sets = len(ends) - 1
    highest = values.max() + 1 if len(values) else 0
    heads = np.full(highest, -1, np.int64)
    entries = 0
    for one in range(sets):
        size = ends[one + 1] - ends[one]
        entries += size - _least(threshold * size) + 1
    following = np.empty(entries, np.int64)
    owners = np.empty(entries, np.int64)
    used = 0
    last_seen = np.full(sets, -1, np.int64)
    first, second, similarity = [0][:0], [0][:0], [0.0][:0]
    for one in range(sets):
        start, end = ends[one], ends[one + 1]
        size = end - start
        for position in range(start, start + size - _least(threshold * size) + 1):
            value = values[position]
            entry = heads[value]
            while entry >= 0:
                other = owners[entry]
                if ends[other + 1] - ends[other] < threshold * size - 1e-6:
                    break  # lists go from large to small: the rest is smaller still
                if last_seen[other] != one:
                    last_seen[other] = one
                    shared = _shared(values, start, end, ends[other], ends[other + 1])
                    jaccard = shared / (size + ends[other + 1] - ends[other] - shared)
                    if jaccard >= threshold:
                        first.append(other)
                        second.append(one)
                        similarity.append(jaccard)
                entry = following[entry]
            owners[used] = one
            following[used] = heads[value]
            heads[value] = used
            used += 1
    return np.array(first, np.int64), np.array(second, np.int64), np.array(similarity, np.float64)


@njit(cache=True)
def _least(bound: float) -> int:
    """The smallest integer >= bound, forgiving rounding errors downwards."""
    return int(np.ceil(bound - 1e-6))


@njit(cache=True)
def _shared(values: Any, i: int, i_end: int, j: int, j_end: int) -> int:
    """How many values two sorted ranges share."""
    shared = 0
    while i < i_end and j < j_end:
        if values[i] == values[j]:
            shared += 1
            i += 1
            j += 1
        elif values[i] < values[j]:
            i += 1
        else:
            j += 1
    return shared


def brute_force(texts: list[str], threshold: float, k: int, words: Callable[[str], list[str]]) -> set[tuple[int, int]]:
    """The obvious way, on sets of tuples of words: pairs of documents with words, equal sets included."""
    sets = []
    for text in texts:
        found = words(text)
        count = max(len(found) - k + 1, min(len(found), 1))
        sets.append({tuple(found[start : start + k]) for start in range(count)})
    return {
        (i, j)
        for j, b in enumerate(sets)
        for i, a in enumerate(sets[:j])
        if a and b and len(a & b) / len(a | b) >= threshold
    }


def check(texts: list[str], threshold: float, k: int, words: Callable[[str], list[str]]) -> int:
    """Compare the join with the obvious way; the number of pairs, or an error."""
    found = compute(iter(texts), threshold, k, words)
    distinct = set(zip(found.first.tolist(), found.second.tolist(), strict=True))
    numbers = found.sets.tolist()
    pairs = {
        (i, j)
        for j, b in enumerate(numbers)
        for i, a in enumerate(numbers[:j])
        if a >= 0 and b >= 0 and (a == b or (min(a, b), max(a, b)) in distinct)
    }
    if pairs != brute_force(texts, threshold, k, words):
        raise SystemExit("The exact join and brute force disagree.")
    return len(pairs)


def _texts(corpus: Path, column: str) -> Iterator[str]:
    for batch in pq.ParquetFile(corpus).iter_batches(1_000, columns=[column]):
        yield from batch.column(0).to_pylist()


def main() -> None:
    """Compute and describe the truth about a corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--words", choices=WORDS, default="words")
    parser.add_argument("--check", type=int, metavar="N", help="compare with brute force on the first N documents")
    asked = parser.parse_args()
    if asked.check:
        texts = [text for text, _ in zip(_texts(asked.corpus, "text"), range(asked.check), strict=False)]
        for threshold in (0.3, 0.5, asked.threshold, 0.95, 1.0):
            print(f"threshold {threshold:g}: {check(texts, threshold, asked.k, WORDS[asked.words])} pairs, agreed")
        return
    start = time.perf_counter()
    found = truth(asked.corpus, asked.threshold, asked.k, asked.words)
    sets = int(found.sets.max()) + 1
    wordless = int((found.sets < 0).sum())
    print(f"{len(found.sets):,} documents, {wordless:,} without words, {sets:,} distinct sets")
    print(f"{len(found.first):,} pairs of distinct sets >= {asked.threshold:g}")
    print(f"{time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
